"""The catalogue of fact kinds: every kind that may exist, with the type of every field.

A rule or signal that names a kind or field which is not here is refused at load. To teach memdoctor a new line shape, add one
entry to ``KINDS`` and one signal to ``rules/signals/``.

Field types: ``str``, ``int``, ``float``, ``bool``, ``bytes`` (text such as "15.66 GiB" is read as a size), ``seconds`` (text such
as "600000 ms"; a bare number is seconds), ``ms`` (a bare number of milliseconds, kept as seconds), ``hex``, ``version``, ``map``, ``list``.
Most kinds have a ``name``: a slug, set by the signal, that tells the shapes of one kind apart; rules ask for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from memdoctor import units
from memdoctor.lazy import lazy
from memdoctor.records import record

TYPES = ("str", "int", "float", "bool", "bytes", "seconds", "ms", "hex", "version", "map", "list")

# Fields that any fact from a log may carry; filled by the log source, never by a signal.
COMMON: Mapping[str, str] = {
    "site": "str",  # where in training the raising frame is: see SITES
    "owner": "str",  # package of the raising frame: user, torch, megatron, deepspeed, transformers, launcher, ...
    "caller": "str",  # package that called into the owner's code
    "exception": "str",  # bare class name of the exception whose message the line is part of
    "phase": "str",  # see PHASES
    "iteration": "int",  # last iteration seen before, job-wide
    "pid": "int",
    "local_rank": "int",
    "level": "str",  # of the logger's prefix: DEBUG, INFO, WARNING, ERROR, CRITICAL
    "frameworks": "list",
    "stream": "str",  # key of the stream within the file
}
SITES = (
    "model_build", "weight_load", "ddp_init", "forward", "attention", "output_layer", "loss", "backward", "optimizer_step", "eval",
    "generate", "ckpt_load", "ckpt_save", "dataloader", "collective", "launch", "unknown",
)  # fmt: skip
PHASES = ("startup", "training", "evaluation", "save", "load", "shutdown", "unknown")


@record
class Kind:
    """One kind of fact: what it means, its fields with their types, fields computed from the others, and the sources that can yield it.

    ``subject`` names the field (or fields) by which facts of the kind tell of different things: a rule then gives one diagnosis for
    each of its values, such as one for each variable that is set wrongly. ``readings`` are printed again and again with every step: of many
    a sample is read, and their number means nothing. Those with ``beside`` are read only from the chunk of a log on in which a fact of that
    kind was found.
    """

    doc: str
    fields: Mapping[str, str]
    computed: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], Any]]] = field(default_factory=dict)
    sources: tuple[str, ...] = ("log",)
    subject: tuple[str, ...] = ()
    readings: bool = False
    beside: str = ""

    def type_of(self, name: str) -> str | None:
        if name in self.fields:
            return self.fields[name]
        if name in self.computed:
            return self.computed[name][0]
        return COMMON.get(name) or {"rank": "int", "host": "str", "attempt": "int"}.get(name)


def _ratio(top: str, bottom: str) -> tuple[str, Callable[[Mapping[str, Any]], Any]]:
    def compute(fields: Mapping[str, Any]) -> float | None:
        above, below = fields.get(top), fields.get(bottom)
        return above / below if above is not None and below else None

    return "float", compute


def _oom_unused(fields: Mapping[str, Any]) -> int | None:
    """Reserved by the caching allocator but not allocated, whatever the torch version printed."""
    if fields.get("unallocated") is not None:
        return int(fields["unallocated"])
    if fields.get("cached") is not None:
        return int(fields["cached"])
    if fields.get("reserved") is not None and fields.get("allocated") is not None:
        return int(fields["reserved"]) - int(fields["allocated"])
    return None


def _oom_unused_ratio(fields: Mapping[str, Any]) -> float | None:
    unused, tried = _oom_unused(fields), fields.get("tried")
    return unused / tried if unused is not None and tried else None


def _oom_unused_share(fields: Mapping[str, Any]) -> float | None:
    unused, capacity = _oom_unused(fields), fields.get("capacity")
    return unused / capacity if unused is not None and capacity else None


def _oom_reserved(fields: Mapping[str, Any]) -> int | None:
    """What the caching allocator held, whatever the torch version printed."""
    if fields.get("reserved") is not None:
        return int(fields["reserved"])
    allocated, unused = fields.get("allocated"), _oom_unused(fields)
    return int(allocated) + unused if allocated is not None and unused is not None else None


_OOM_PROCESS = lazy(r"Process (\d+) has ([\d.]+ \w+) memory in use")
_OOM_OVERHEAD = 8 * 1024**3  # a process holds its context, NCCL and cuBLAS buffers outside the allocator: hardly ever more than this


def _oom_processes(fields: Mapping[str, Any]) -> tuple[int | None, list[tuple[str, int]]]:
    """The bytes of this process, and (pid, bytes) of the others, out of the "Process N has ..." part of the message.

    In a container pids do not match, so this process is listed as a foreign one and "this process has" is missing: then it is the
    entry that holds about what the allocator had reserved.
    """
    listed = [(pid, units.parse_size(size)) for pid, size in _OOM_PROCESS.findall(fields.get("processes") or "")]
    own, reserved = fields.get("in_process"), _oom_reserved(fields)
    if own is not None or not listed:
        return own, listed
    near = [entry for entry in listed if reserved is None or 0.99 * reserved <= entry[1] <= reserved + _OOM_OVERHEAD]
    if not near or (reserved is None and len(listed) > 1):
        return None, listed
    mine = min(near, key=lambda entry: entry[1])
    listed.remove(mine)
    return mine[1], listed


def _oom_own(fields: Mapping[str, Any]) -> int | None:
    return _oom_processes(fields)[0]


def _oom_others(fields: Mapping[str, Any]) -> int | None:
    """Bytes that other processes hold; None where the message does not tell (before torch 2.1)."""
    own, others = _oom_processes(fields)
    return None if own is None and not others else sum(size for _, size in others)


def _oom_other_pids(fields: Mapping[str, Any]) -> tuple[str, ...] | None:
    return tuple(pid for pid, _ in _oom_processes(fields)[1]) or None


def _oom_others_share(fields: Mapping[str, Any]) -> float | None:
    """Share of the card that other processes hold."""
    others, capacity = _oom_others(fields), fields.get("capacity")
    return others / capacity if others is not None and capacity else None


def _oom_others_over_tried(fields: Mapping[str, Any]) -> float | None:
    others, tried = _oom_others(fields), fields.get("tried")
    return others / tried if others is not None and tried else None


def _oom_elsewhere_share(fields: Mapping[str, Any]) -> float | None:
    """Share of the card that is neither free nor known to be this process's: the others, also those that a container cannot see.

    Where the message does not tell the whole of this process (before torch 2.1), its context and NCCL buffers count as elsewhere.
    """
    capacity, free, own = fields.get("capacity"), fields.get("free"), _oom_own(fields)
    own = own if own is not None else _oom_reserved(fields)
    return (capacity - free - own) / capacity if capacity and free is not None and own is not None else None


def _oom_non_torch(fields: Mapping[str, Any]) -> int | None:
    """What this process holds outside the allocator: CUDA context, NCCL, cuBLAS."""
    own, reserved = _oom_own(fields), _oom_reserved(fields)
    return own - reserved if own is not None and reserved is not None else None


def _difference(top: str, bottom: str) -> tuple[str, Callable[[Mapping[str, Any]], Any]]:
    def compute(fields: Mapping[str, Any]) -> Any:
        above, below = fields.get(top), fields.get(bottom)
        return above - below if above is not None and below is not None else None

    return "float", compute


def _least(type_: str, *names: str) -> tuple[str, Callable[[Mapping[str, Any]], Any]]:
    def compute(fields: Mapping[str, Any]) -> Any:
        return min((fields[name] for name in names if fields.get(name) is not None), default=None)

    return type_, compute


def _cpus_per_rank(fields: Mapping[str, Any]) -> float | None:
    usable = min((fields[name] for name in ("allowed", "quota") if fields.get(name) is not None), default=None)
    return usable / fields["local_ranks"] if usable is not None and fields.get("local_ranks") else None


def _probed(
    doc: str,
    fields: Mapping[str, str],
    computed: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], Any]]] | None = None,
    *,
    subject: tuple[str, ...] = (),
) -> Kind:
    """A kind that probes of the machine yield, or that is derived from such."""
    return Kind(doc, fields, computed or {}, ("probe",), subject)


def _peak(fields: Mapping[str, Any]) -> int | None:
    """The most memory that a rank ever had allocated, in bytes."""
    for name, unit in (("peak_mib", 1024**2), ("peak_gib", 1024**3)):
        if fields.get(name) is not None:
            return int(fields[name] * unit + 0.5)
    return None


# One kind a line where it fits on the screen of a wide editor: the table is read by its columns.
# fmt: off
KINDS: Mapping[str, Kind] = {
    # --- the run -------------------------------------------------------------------------------------------------
    "run.start": Kind("A job or a restart begins (printed once per job or node, not per rank).", {"name": "str", "agent_pid": "int"}),
    "run.world": Kind(
        "Sizes of the parallel layout.",
        {"world_size": "int", "tp": "int", "pp": "int", "dp": "int", "cp": "int", "ep": "int", "nodes": "int"},
    ),
    "run.version": Kind("A framework or library and its version ('' where only its presence is known).", {"name": "str", "version": "version"}),
    "run.args": Kind("Arguments or configuration as the framework dumped them.", {"name": "str", "values": "map"}),
    "run.config": Kind("A configuration printed as JSON; name: deepspeed, transformers.", {"name": "str", "values": "map"}),
    "run.shape": Kind("A size of the model or the batch that a line of its own tells; name: vocabulary, batch, arguments.", {"name": "str", "padded_vocab": "int", "seq": "int", "micro_batch": "int", "accumulation": "int", "parameters": "int"}),
    "run.trainable": Kind("How many parameters are trained, as PEFT prints it, and what says that it is LoRA: with its rank ``r`` and the modules that are ``saved`` (trained whole).", {"name": "str", "trainable": "int", "total": "int", "percent": "float", "r": "int", "saved": "str"}),
    "run.phase": Kind("The job enters a phase.", {"name": "str", "step": "int", "path": "str"}),
    "run.bar": Kind("A progress bar: ``done`` of ``total``; ``text`` is what stands before it.", {"name": "str", "text": "str", "done": "int", "total": "int"}, readings=True, beside="watchdog.timeout"),
    "run.took": Kind("How long a step took in which the ranks may wait for one of them; name: save, load, evaluation, index.", {"name": "str", "took": "seconds", "took_ms": "ms"}),
    "run.end": Kind(
        "A sign of how a process or the job ended: name is completed, failed or killed.",
        {"name": "str", "exitcode": "int", "signal": "str", "by": "str"},
    ),
    "run.ended": Kind("How the attempt ended (derived): completed, failed, killed, cut, running, unknown.", {"status": "str", "exitcode": "int", "signal": "str", "by": "str", "text": "str", "diagnosed": "bool"}),
    "rank.place": Kind(
        "Where a rank runs.",
        {"of_rank": "int", "on_host": "str", "local": "int", "of_pid": "int", "gpu": "int", "bus_id": "str", "world_size": "int", "comm": "str"},
    ),
    "progress": Kind("Iterations that the attempt reached (derived).", {"first": "int", "last": "int", "lines": "int"}),
    # --- exceptions and error-like lines ----------------------------------------------------------------------------
    "exception": Kind(
        "A Python exception: its class, message and raising frame; says: what it complains of by its own words, where no signal knows them.",
        {"type": "str", "message": "str", "says": "str", "complete": "bool", "file": "str", "function": "str", "source": "str", "chained": "bool", "root": "bool", "logged": "bool"},
    ),
    "error.line": Kind("A line that looks like an error and that no signal knows.", {"text": "str"}),
    "last.words": Kind("What a job said last before it failed, where nothing in it looks like an error.", {"said": "str"}),
    "native.crash": Kind("A process died in native code.", {"name": "str", "signal": "str", "message": "str"}),
    # --- memory ---------------------------------------------------------------------------------------------------
    "cuda.oom": Kind(
        "A GPU allocation failed; name: torch, driver, cublas, cudnn, nccl, async_allocator.",
        {
            "name": "str", "gpu": "int", "tried": "bytes", "capacity": "bytes", "free": "bytes", "allocated": "bytes", "reserved": "bytes",
            "unallocated": "bytes", "cached": "bytes", "in_process": "bytes", "processes": "str", "private_pools": "bytes",
            "allowed": "bytes", "backend": "str", "call": "str",
            "tensor": "str", "tensor_place": "str", "shape_text": "str",  # which tensor has this size, or that none has (derive/allocation.py)
        },
        {
            "unused": ("bytes", _oom_unused),
            "unused_over_tried": ("float", _oom_unused_ratio),
            "unused_over_capacity": ("float", _oom_unused_share),
            "own": ("bytes", _oom_own),
            "others": ("bytes", _oom_others),
            "other_pids": ("list", _oom_other_pids),
            "others_over_capacity": ("float", _oom_others_share),
            "others_over_tried": ("float", _oom_others_over_tried),
            "elsewhere_over_capacity": ("float", _oom_elsewhere_share),
            "allocated_over_capacity": _ratio("allocated", "capacity"),
            "tried_over_capacity": _ratio("tried", "capacity"),
            "non_torch": ("bytes", _oom_non_torch),
        },
    ),
    "allocation.match": Kind(
        "Whether a tensor of this model at this layout has the size of an allocation that failed (derived): which, and the arithmetic.",
        {"explained": "bool", "tensor": "str", "tensor_place": "str", "tensors": "list", "tried": "bytes", "text": "str"},
    ),
    "rank.memory": Kind(
        "GPU memory of one rank so far; name: megatron, deepspeed. The log prints MiB or GiB without a unit.",
        {"name": "str", "allocated_mib": "float", "peak_mib": "float", "reserved_mib": "float", "peak_reserved_mib": "float", "peak_gib": "float"},
        {"peak": ("bytes", _peak)},
        readings=True,
    ),
    "rank.parameters": Kind(
        "Parameters that one rank holds; name: megatron, deepspeed.",
        {"name": "str", "tensor_rank": "int", "stage": "int", "parameters": "int", "layers": "int", "first_layer": "int", "end_layer": "int"},
    ),
    "stage.memory": Kind("The largest memory of any rank of a pipeline stage (derived).", {"stage": "int", "peak": "bytes", "ranks": "list", "layers": "int"}),
    "host.oom": Kind("Host memory ran out; name: kernel, cgroup, slurm, limit, kubernetes, ray, malloc, dataloader, dataloader_exit.", {"name": "str", "tried": "bytes", "rss": "bytes", "victim": "str", "victim_pid": "int", "task": "int"}),
    "shm.error": Kind("Shared memory (/dev/shm) is too small or unusable.", {"name": "str", "path": "str", "wanted": "bytes"}),
    "pinned.error": Kind("Page-locked memory cannot be had.", {"name": "str", "tried": "bytes", "call": "str"}),
    # --- numerics -----------------------------------------------------------------------------------------------------
    "loss_scale": Kind(
        "A line about the fp16 loss scale or a skipped step; name: overflow, at_minimum, stuck, growth, nonfinite_grads.",
        {"name": "str", "from": "float", "to": "float", "step": "int", "hysteresis": "int", "skipped": "int"},
        {"to_over_from": _ratio("to", "from")},
    ),
    "numeric.bad": Kind(
        "A check found NaN or Inf, or a result that does not repeat; name: nan, inf, spiky, large_grads, reproducible, transient, persistent, nan_check, grad_norm (not finite when it was to be clipped), fused_backward (a fused kernel's backward gave NaN), overflow_report (a module's values left the range, as transformers' debugging tool found).",
        {"name": "str", "where": "str", "value": "str", "step": "int", "device": "int", "node": "str", "bucket": "int", "text": "str"},
    ),
    "series.numerics": Kind(
        "What the loss, gradient norm and loss scale of one attempt did (derived from its step lines).",
        {
            "steps": "int", "first_loss": "float", "last_finite_loss": "float", "max_loss": "float", "min_loss": "float", "rise": "float",
            "nan_steps": "int", "first_nan_step": "int", "finite_before_nan": "int", "nan_grad_steps": "int", "first_nan_grad_step": "int",
            "nonfinite_at_end": "bool", "bad_at_end": "int", "finite_loss_at_end": "bool", "skipped_steps": "int", "skipped_at_end": "int", "skipped_share": "float",
            "scale_first": "float", "scale_last": "float", "scale_min": "float", "at_floor_steps": "int", "recovered": "bool", "zero_grad_steps": "int",
            "zero_loss_steps": "int", "zero_loss_at_end": "int", "first_zero_loss_step": "int", "loss_before_zero": "float",
            "finished": "bool", "has_scale": "bool", "max_lr": "float",
        },
        {"climb": _ratio("last_finite_loss", "min_loss"), "last_over_first": _ratio("last_finite_loss", "first_loss")},
    ),
    # --- balance and speed ---------------------------------------------------------------------------------------------
    "timer": Kind("A timer of Megatron-LM over all ranks: least and greatest, or one for each rank (`values`: rank → ms); name is the timer's.", {"name": "str", "low": "ms", "high": "ms", "values": "map"}, readings=True),
    "rank.speed": Kind(
        "A straggler report: the slowest and the fastest rank (Megatron-LM), or ranks that are called slow (name: resiliency).",
        {"name": "str", "slow_rank": "int", "fast_rank": "int", "slow": "float", "fast": "float", "bottom": "str", "ranks_text": "str"},
        {"slow_over_fast": _ratio("slow", "fast")},
        readings=True,
    ),
    "pipeline.wait": Kind("What one rank of a DeepSpeed pipeline computed (name: compute) or waited for its neighbours (name: wait).", {"name": "str", "forward": "ms", "backward": "ms", "recv_input": "ms", "recv_grad": "ms", "send_output": "ms", "send_grad": "ms"}, readings=True),
    "stage.time": Kind("Compute time of a pipeline stage in one step, the median of its ranks (derived).", {"stage": "int", "seconds": "float", "ranks": "list", "layers": "int"}),
    "stage.uneven": Kind(
        "Pipeline stages or ranks differ (derived); what: memory, time, parameters, headroom (nearly full beside one that is not). `reason`: embedding, logits, warm_up, layers, moe, fewer_layers, light (a stage that idles), rank or unknown.",
        {
            "what": "str", "stage": "int", "other_stage": "int", "stages": "int", "most": "str", "least": "str", "over": "float", "reason": "str", "because": "str",
            "split": "str", "proposal": "str", "proposal_split": "str", "gain": "str", "bubble": "str", "per_rank": "bool", "text": "str",
        },
    ),
    "rank.slow": Kind(
        "A rank, or a tensor-parallel group of ranks, that is steadily slower than others at the same work (derived); how: replicas, report, stages, or spread (which rank is not told).",
        {"slow_ranks": "list", "stage": "int", "by": "float", "seconds": "float", "peers": "float", "samples": "int", "text": "str", "how": "str"},
    ),
    "series.divergence": Kind(
        "A loss that left its trend for good (derived); name: rise (finite to the end), nan (a rise that ends in NaN), norm (only the gradient norm rose before NaN). ``sign`` is what showed it first.",
        {"name": "str", "before": "float", "after": "float", "ramp": "int", "sign": "str", "sign_iteration": "int", "nan_iteration": "int", "norm_before": "float", "norm_after": "float", "lr": "float", "lr_before": "float"},
        {"ratio": _ratio("after", "before")},
    ),
    "series.spike": Kind("A loss that leapt far above its trend and came back (derived).", {"before": "float", "peak": "float", "steps": "int", "grad_norm": "float"}, {"ratio": _ratio("peak", "before")}),
    "series.plateau": Kind("A loss that does not fall (derived); name: lr_zero, constant, frozen (it had moved), high.", {"name": "str", "level": "float", "first": "float", "steps": "int", "lr": "float"}, {"level_over_first": _ratio("level", "first")}),
    "series.anew": Kind("A restart that begins at the first iteration, with the loss of a beginning, after a checkpoint of iteration ``saved`` (derived). ``path``: what was looked for and not found.", {"saved": "int", "saved_path": "str", "path": "str"}),
    "series.resume_jump": Kind("A loss that begins far higher after a resume than it was for the same iterations (derived). ``over``: it came back.", {"before": "float", "after": "float", "over": "bool", "steps": "int"}, {"ratio": _ratio("after", "before")}),
    "series.scale_collapse": Kind("A loss scale that fell to the bottom while every step was skipped (derived). ``good``: lines with a step taken before.", {"before": "float", "after": "float", "skipped": "int", "good": "int"}),
    "series.slowdown": Kind("Steps that take longer than the run's own best (derived); name: step, drift, passing (over by the end).", {"name": "str", "before": "seconds", "after": "seconds", "ratio": "float", "until": "int"}),
    "series.periodic": Kind("Single steps that are slow at a regular beat (derived); name: evaluation, checkpoint (or both), garbage collection, memory report, unknown.", {"name": "str", "period": "int", "typical": "seconds", "extra": "seconds", "share": "float", "times": "int"}),
    "series.growth": Kind("Memory that grows step by step up to the end (derived); name: allocated, reserved, device, host. ``full_iteration``: where the capacity is reached if it goes on so, by ``peak``, which a step rises to; ``oom``: memory ran out after it.", {"name": "str", "first": "bytes", "last": "bytes", "per_step": "bytes", "capacity": "bytes", "peak": "bytes", "assumed": "bool", "full_iteration": "int", "oom": "bool"}, {"growth": _ratio("last", "first")}),
    "series.bound": Kind("What a large part of each step goes to (derived); name: data, offload, communication.", {"name": "str", "share": "float", "seconds": "seconds", "of": "seconds", "timer": "str"}),
    "series.experts": Kind("A load balancing loss far above the value of even experts (derived); name: rise (it had been even), level (high all the time).", {"name": "str", "first": "float", "last": "float"}),
    "memory.flush": Kind("The caching allocator gave memory back and asked for it again within a step.", {"flushes": "int"}),
    "memory.retries": Kind("How often, since the start of the process, an allocation succeeded only after the allocator had emptied its cache.", {"retries": "int"}),
    # --- communication ---------------------------------------------------------------------------------------------
    "watchdog.timeout": Kind(
        "The NCCL watchdog reports a collective that timed out; name: timeout, exception, blocking_wait, dump_own, dump_sent (of the rank that timed out), dump_signal, dump_observed (of others).",
        {
            "name": "str", "seq": "int", "op": "str", "numel_in": "int", "numel_out": "int", "shape": "str", "limit": "ms", "ran": "ms", "pg": "str", "pg_desc": "str",
            "pg_rank": "int", "last_enqueued": "int", "last_started": "int", "last_completed": "int", "from_rank": "int",
        },
    ),
    "watchdog.short": Kind(
        "A time-out in a phase that lasts longer than its limit, as the log itself shows (derived); name: save, load, evaluation, index.",
        {"name": "str", "limit": "seconds", "took": "seconds"},
    ),
    "watchdog.taken_down": Kind("The watchdog ends its process, after a time-out or an error of NCCL.", {"name": "str", "pg": "str", "pg_desc": "str", "pg_rank": "int"}),
    "watchdog.heartbeat": Kind("The watchdog thread itself got stuck.", {"name": "str", "limit": "seconds"}),
    "collective.timeout": Kind("A gloo collective or a barrier timed out.", {"name": "str", "op": "str", "limit": "ms", "missing_ranks": "list", "missing_rank": "int"}),
    "collective.verdict": Kind(
        "What flight-recorder dumps show of the ranks' collectives (derived), one fact a rank at fault; name: missing, late, not_seen, extra, mismatch_type, mismatch_dtype, mismatch_size, order, cycle, p2p_mismatch, not_started, stuck_all, undecided, ok.",
        {
            "name": "str", "of_rank": "int", "missing_rank": "int", "pg": "str", "pg_desc": "str", "seq": "int", "op": "str", "expected": "str", "got": "str",
            "waiting": "int", "waiting_ranks": "list", "others": "list", "late": "seconds", "limit": "seconds", "frame": "str", "place": "str",
        },
        sources=("dump",),
    ),
    "collective.dump": Kind("The flight recorder of one rank was read: the rank was alive when it was written.", {"entries": "int", "open": "int", "backend": "str"}, sources=("dump",)),
    "collective.mismatch": Kind(
        "Ranks are in different collectives, or in one with different sizes or types.",
        {"name": "str", "rank_a": "int", "rank_b": "int", "difference": "str", "got": "bytes", "expected": "bytes", "seq": "int", "op": "str"},
    ),
    "collective.odd": Kind(
        "A rank that timed out in another collective than the majority of its group (derived). ``sure``: the log names the group; else only number and moment agree.",
        {"seq": "int", "op": "str", "pg_desc": "str", "difference": "str", "sure": "bool", "place": "str"},
    ),
    "watchdog.verdict": Kind(
        "A rank that held up those that timed out, by what all of them say (derived), one fact a suspect; name: silent, behind, late, mixed, untold, unclear, stuck. ``waiting`` ranks wait "
        "for it; ``suspects`` are as good as each other, ``alone`` where there is one; ``not_seen`` of the ``world`` said nothing; ``place`` is its place on the axes of the job; ``witness`` is the rank whose line shows it, -1 where that is unknown; ``known`` ranks are those of a group whose size is not told.",
        {
            "name": "str", "seq": "int", "op": "str", "pg_desc": "str", "difference": "str", "sure": "bool", "missing_rank": "int", "waiting": "int", "suspects": "int",
            "alone": "bool", "members": "int", "last_enqueued": "int", "late": "seconds", "limit": "ms", "place": "str", "not_seen": "int", "world": "int", "alive": "bool",
            "signalled": "bool", "no_file": "bool", "unheard": "bool", "exited": "bool", "witness": "int", "known": "int",
        },
    ),
    "watchdog.working": Kind(
        "A rank that went on with work of its own while others timed out waiting for it (derived): ``done`` of ``total`` steps of ``text`` by its last line, ``begun`` by the first after a time-out.",
        {"name": "str", "text": "str", "begun": "int", "done": "int", "total": "int", "waiting": "int", "limit": "ms", "op": "str", "witness": "int"},
    ),
    "peer.gone_first": Kind("A connection that broke long before the first collective timed out (derived): ``before`` is by how much.", {"peer": "str", "peer_rank": "int", "before": "seconds", "witness": "int"}),
    "peer.gone": Kind("The other end of a connection went away; name: closed, reset, refused, broken_pipe, connect_failed, unreachable, timed_out, aborted, proxy, proxy_accept, store, store_server.", {"name": "str", "backend": "str", "peer": "str", "peer_rank": "int", "attempts": "int"}),
    "rendezvous.error": Kind(
        "Workers do not meet; name: timeout, clients_missing, connect_timeout, store_wait, connection, closed, resolve. ``node_list``: the address is a list of nodes.",
        {"name": "str", "limit": "seconds", "limit_ms": "ms", "joined": "int", "expected": "int", "address": "str", "node_list": "str", "port": "int", "missing_rank": "int", "key": "str"},
    ),
    "port.in_use": Kind("A port to listen on is taken.", {"name": "str", "port": "int"}),
    "nccl.error": Kind("An NCCL call failed, as torch reports it; name is NCCL's error in slug form (unhandled_cuda, unhandled_system, internal, invalid_argument, invalid_usage, remote, in_progress, timeout).", {"name": "str", "version": "version", "last_error": "str", "where": "str"}),
    "nccl.warn": Kind(
        "An NCCL WARN line that names its fault; name is a slug.",
        {"name": "str", "file": "str", "device": "int", "text": "str", "peer": "str", "hca": "str", "status": "int", "vendor": "int", "interface": "str", "rank_a": "int", "rank_b": "int", "bus_id": "str", "got": "int", "expected": "int", "errno": "int", "version_a": "version", "version_b": "version", "path": "str", "wanted": "int"},
    ),
    "nccl.info": Kind("A fact from NCCL INFO lines; name is a slug.", {"name": "str", "device": "int", "interface": "str", "transport": "str", "hca": "str", "variable": "str", "value": "str", "peer_rank": "int", "channels": "int", "nodes": "int"}),
    "nccl.setup": Kind(
        "What the NCCL INFO lines of one process tell, summed up. Rank, size and place are those within its greatest communicator; ``stage`` is how far the set-up came "
        "(network, bootstrap, topology, graph, connect, trees, finish, complete), of a communicator that is not complete where there is one: ``open_rank`` and ``open_size`` are its.",
        {
            "of_pid": "int", "of_rank": "int", "file_rank": "int", "world_size": "int", "comm": "str", "gpu": "int", "bus_id": "str", "local": "int", "nodes": "int", "local_ranks": "int",
            "channels": "int", "stage": "str", "open_rank": "int", "open_size": "int", "open_comm": "str", "open_line": "int", "begun": "bool", "starts": "bool",
            "communicators": "int", "seconds": "seconds", "timings": "map", "interface": "str", "address": "str", "network": "str", "cards": "list", "socket": "str",
            "gdr": "bool", "nvls": "bool", "nvlink_read": "bool", "connecting": "bool", "edges": "map", "variables": "map", "lines": "map", "whole": "bool",
        },
    ),
    "nccl.verdict": Kind(
        "What is wrong with the way NCCL set itself up (derived), one fact a rank; name: sockets, tcp, gdr_off, gdr_not_offered, shm, few_channels, interface, interface_odd, nodes, duplicate_gpu, stopped, unfinished (nothing shows that it stands still), mixed (another network than the ``usual``).",
        {
            "name": "str", "reason": "str", "value": "str", "usual": "str", "variable": "str", "stage": "str", "transport": "str", "way": "str", "waiting": "int", "of": "int",
            "rank_a": "int", "rank_b": "int", "bus_id": "str", "channels": "int", "nodes": "int", "hosts": "int", "sure": "bool", "text": "str", "witness": "int",
        },
    ),
    "nccl.odd": Kind("A rank whose NCCL set itself up otherwise than that of its peers (derived): ``what`` differs.", {"what": "str", "value": "str", "usual": "str", "others": "int"}, subject=("what",)),
    # --- a running job --------------------------------------------------------------------------------------------------
    "process.live": Kind(
        "A process of a running job, as /proc shows it: ``state`` is its letter, ``waits`` the kernel function that it sleeps in, ``cpu`` its share of one CPU in percent.",
        {"of_pid": "int", "of_rank": "int", "local": "int", "world_size": "int", "on_host": "str", "state": "str", "waits": "str", "cpu": "float", "age": "seconds", "command": "str"},
    ),
    "process.stack": Kind(
        "The Python stack of the main thread of a process, as py-spy prints it: ``values`` are its frames, the innermost first, function → file:line.",
        {"of_pid": "int", "status": "str", "values": "map"},
    ),
    "thread.stack": Kind(
        "The stack of a thread as faulthandler or gdb printed it (``tool``): ``values`` are its frames, the innermost first; ``name`` is the thread's number.",
        {"name": "str", "tool": "str", "of_pid": "int", "values": "map"},
    ),
    "ras.section": Kind(
        "A finding in a report of NCCL's RAS; name: incomplete, mismatch, error, dead. The keys of ``values`` are its lines; ``group`` and ``index`` number the communicator, the largest is 0-0.",
        {"name": "str", "comm": "str", "group": "int", "index": "int", "values": "map"},
    ),
    "live.verdict": Kind(
        "What a running job waits for (derived), one fact a rank; name: absent (not in the collective of the others), apart (not at the line where nearly all others stand), differs (in another one), together (all are in the same), "
        "behind (has launched fewer operations, by RAS), silent (does not answer RAS).",
        {
            "name": "str", "of_rank": "int", "op": "str", "place": "str", "frame": "str", "others": "str", "waiting": "int", "waiting_ranks": "list", "operation": "int", "usual": "int",
            "steady": "bool", "node": "str", "of_pid": "int",
        },
    ),
    # --- devices ------------------------------------------------------------------------------------------------------
    "xid": Kind(
        "The NVIDIA driver logged an Xid.",
        {"number": "int", "bus_id": "str", "process": "str", "victim_pid": "int", "text": "str", "link": "int", "class": "str", "fatal": "bool", "recovery": "str", "what": "str", "asks": "str", "remedy": "str"},
    ),
    "sxid": Kind("The NVSwitch driver logged an SXid.", {"number": "int", "bus_id": "str", "text": "str", "fatal": "bool", "link": "int"}),
    "kernel": Kind(
        "The kernel, or a driver in it, tells of the machine; name: read_only, fs_down, device_gone, io, timeout (survived so far), server_away, server_evicted, server_back (storage); panic, machine_check, memory, "
        "uncorrected, lockup, hung_task, oops (the machine); link_down, card_dead, card_ill (network cards); pcie_fatal, pcie_nonfatal, nvlink; harmless.",
        {"name": "str", "device": "str", "bus_id": "str", "server": "str", "driver": "str", "process": "str", "victim_pid": "int", "text": "str"},
    ),
    "gpu.error": Kind("The runtime reports a broken, lost, busy or unready GPU; name: ecc, lost, busy, fabric, nvml_mismatch, reset_required, no_answer, crashed.", {"name": "str", "gpu": "int", "bus_id": "str", "text": "str", "code": "int"}, sources=("log", "probe")),
    "gpu.state": Kind(
        "A reading of a GPU that names a fault, from `nvidia-smi -q` given as a file or from NVML; or its NVLink counters (name nvlink) as `nvidia-smi nvlink -e` prints them, the first of each kind that counts.",
        {"name": "str", "gpu": "int", "bus_id": "str", "model": "str", "value": "float", "text": "str", "link": "int", "recoveries": "int", "replays": "int", "crc": "int"},
        sources=("log", "probe"),
    ),
    "cuda.error": Kind("A CUDA error that is not an OOM; name: illegal_access, misaligned, launch_failure, device_assert, no_kernel_image, invalid_device, ...", {"name": "str", "code": "int", "text": "str", "kernel": "str", "index": "str"}),
    "cublas.error": Kind("A cuBLAS, cuDNN or cuSOLVER status; name is the status in lower case without prefix.", {"name": "str", "library": "str", "call": "str"}),
    # --- environment ---------------------------------------------------------------------------------------------------
    "env.error": Kind("The environment lacks something; name is a slug (no_driver, no_gpu, driver_old, arch, bf16_unsupported, open_files, ...).", {"name": "str", "what": "str", "have": "version", "need": "version", "text": "str", "gpu": "str", "arch": "str"}),
    "build.error": Kind("An extension cannot be built, found or loaded; name is a slug.", {"name": "str", "op": "str", "what": "str", "have": "version", "need": "version"}),
    "abi.error": Kind("A binary does not fit another; name: undefined_symbol, glibc, missing_library, torch_mismatch.", {"name": "str", "symbol": "str", "library": "str", "have": "version", "need": "version"}),
    "import.error": Kind("A Python package is missing or of another version; name: missing, cannot_import, api.", {"name": "str", "module": "str", "symbol": "str", "text": "str", "have": "version", "need": "version"}),
    # --- configuration ---------------------------------------------------------------------------------------------------
    "config.error": Kind(
        "A framework refuses its configuration; name is a slug.",
        {"name": "str", "framework": "str", "key": "str", "value": "str", "given": "int", "micro": "int", "accumulation": "int", "dp": "int", "wanted": "int", "allowed": "str", "text": "str", "source": "str"},
    ),
    # --- files, checkpoints, launch ------------------------------------------------------------------------------------------
    "file.error": Kind("A file or disk problem; name: missing, corrupt, lacks (a part of it is not there), no_space, quota, io, permission, read_only.", {"name": "str", "path": "str", "what": "str"}),
    "checkpoint.error": Kind("A checkpoint cannot be loaded or saved; name is a slug.", {"name": "str", "path": "str", "key": "str", "have": "str", "need": "str", "what": "str"}),
    "process.exit": Kind("A launcher says how a worker ended; name: failed, box (torchrun's), shell, and terminated or forced for those that it ended itself.", {"name": "str", "exitcode": "int", "signal": "str", "of_rank": "int", "local": "int", "of_pid": "int", "agent_pid": "int", "by": "str", "box": "str", "note": "str", "task": "int"}),
    "scheduler": Kind("A line of Slurm, Kubernetes or a shell about the job; name: cancelled, time_limit, preempted, node_failure, oom, task_exit, task_signal, step_ended, sigterm, sighup, evicted.", {"name": "str", "job": "str", "step": "str", "node": "str", "task": "str", "exitcode": "int", "signal": "str", "state": "str"}),
    "node.state": Kind("A node as `scontrol show node` shows it; ``state`` only where it is out of use.", {"node": "str", "state": "str", "text": "str"}),
    "jit.lock": Kind("A rank builds, or waits for the build of, a JIT extension.", {"name": "str", "op": "str", "path": "str"}),
    # --- the machine: what probes read ------------------------------------------------------------------------------------
    "host.system": _probed("The machine and its system.", {"kernel": "version", "os": "str", "machine": "str", "libc": "version", "container": "str", "virtual": "str", "nodes": "int"}),
    "host.memory": _probed(
        "RAM and swap; ``limit`` is that of the cgroup.",
        {"total": "bytes", "available": "bytes", "limit": "bytes", "limit_used": "bytes", "swap": "bytes", "swap_used": "bytes"},
        {"usable": _least("bytes", "total", "limit"), "available_share": _ratio("available", "total"), "limit_share": _ratio("limit_used", "limit")},
    ),
    "host.shm": _probed("/dev/shm.", {"path": "str", "size": "bytes", "free": "bytes"}, {"free_share": _ratio("free", "size")}),
    "host.cpu": _probed(
        "CPUs (logical): all, those this process may use, and the cgroup's quota; ``local_ranks`` are those of this host, where known.",
        {"model": "str", "cores": "int", "allowed": "int", "quota": "float", "numa_nodes": "int", "numa_allowed": "int", "local_ranks": "int"},
        {"usable": _least("float", "allowed", "quota"), "per_rank": ("float", _cpus_per_rank)},
    ),
    "host.limit": _probed(
        "A limit of this process; name: open_files, processes, memlock, cgroup_processes. ``soft`` is unknown where there is none.",
        {"name": "str", "soft": "int", "hard": "int", "unlimited": "bool", "used": "int"},
        {"left": _difference("soft", "used")},
    ),
    "host.disk": _probed(
        "A place where a job writes; name: tmp, cache, extensions, triton, huggingface, home, work. ``unwritable``: this user may not write in ``path``, where it is or would be made.",
        {"name": "str", "path": "str", "filesystem": "str", "size": "bytes", "free": "bytes", "files_free": "int", "read_only": "bool", "missing": "bool", "unwritable": "bool"},
        {"free_share": _ratio("free", "size")},
        subject=("path",),
    ),
    "host.kernel": _probed("A kernel parameter; name: numa_balancing, overcommit, iommu, huge_pages, pid_max, map_count.", {"name": "str", "value": "str", "number": "int"}),
    "host.lock": _probed("A lock of a JIT build; ``builder``: a compiler of this user runs.", {"op": "str", "path": "str", "age": "seconds", "builder": "bool"}, subject=("path",)),
    "gpu.driver": _probed("The NVIDIA driver: of the library, and of the kernel module.", {"driver": "version", "cuda": "version", "module": "version"}),
    "gpu.count": _probed(
        "GPUs that NVML lists, and those that should be there; ``pci``: on the bus with an NVIDIA driver or none; ``claims``: variables that say how many.",
        {"found": "int", "expected": "int", "by": "str", "pci": "int", "container": "bool", "confined": "bool", "reason": "str", "claims": "list"},
        {"missing": _difference("expected", "found"), "hidden": _difference("pci", "found")},
    ),
    "gpu.device": _probed(
        "One GPU, as NVML numbers it; what its architecture can do is from rules/tables/gpus.yaml.",
        {
            "gpu": "int", "uuid": "str", "bus_id": "str", "model": "str", "arch": "version", "memory": "bytes", "used": "bytes", "reserved": "bytes",
            "free": "bytes", "compute_mode": "str", "mig": "bool", "ecc": "bool", "ecc_default": "bool", "persistence": "bool", "temperature": "float", "slowdown_at": "float",
            "power": "float", "power_limit": "float", "power_default": "float", "clock": "int", "clock_max": "int", "clock_set": "int", "reasons": "list",
            "ecc_volatile": "int", "ecc_total": "int", "rows_remapped": "int", "remap_pending": "bool", "remap_failure": "bool", "pages_pending": "bool",
            "width": "int", "width_max": "int", "links_up": "int", "links_down": "int", "links_expected": "int", "link_replays": "int", "link_recoveries": "int",
            "link_crc": "int", "fabric": "str", "fabric_status": "int", "processes": "int", "processes_used": "bytes", "unexplained": "bytes", "siblings": "int",
            "family": "str", "bf16": "str", "tf32": "str", "fp8": "str", "fp4": "str", "flash2": "str", "flash3": "str",
        },
        {
            "used_share": _ratio("used", "memory"), "width_missing": _difference("width_max", "width"), "power_share": _ratio("power_limit", "power_default"),
            "clock_share": _ratio("clock_set", "clock_max"), "links_missing": _difference("links_expected", "links_up"), "headroom": _difference("slowdown_at", "temperature"),
            "unexplained_share": _ratio("unexplained", "memory"),
        },
    ),
    "gpu.pair": _probed("Two GPUs of one host: how far apart (nvlink, internal, switch, switches, bridge, node, system), and whether P2P works.", {"gpu": "int", "peer": "int", "path": "str", "links": "int", "p2p": "str"}),
    "gpu.process": _probed("A process that holds memory of a GPU; ``orphan``: its parent is gone; ``seen``: false where the number is not one of this name space; ``within``: how much it can be at most, where its own share is not told.", {"gpu": "int", "of_pid": "int", "command": "str", "user": "str", "memory": "bytes", "within": "bytes", "age": "seconds", "orphan": "bool", "zombie": "bool", "parent": "int", "seen": "bool", "mine": "bool"}, subject=("of_pid",)),
    "gpu.xid": _probed("An Xid in the kernel log of this boot; what it means is from rules/tables/xids.yaml.", {"number": "int", "bus_id": "str", "gpu": "int", "age": "seconds", "times": "int", "what": "str", "class": "str", "asks": "str", "fatal": "bool", "remedy": "str"}, subject=("number",)),
    "stack.python": _probed("The Python interpreter that was examined.", {"path": "str", "version": "version"}),
    "stack.package": _probed("A Python package; state: installed, broken, crashed, slow.", {"package": "str", "version": "version", "state": "str", "text": "str", "cause": "str", "place": "str", "python": "str"}, subject=("package",)),
    "stack.torch": _probed(
        "PyTorch as it is built, and what it sees.",
        {"version": "version", "cuda": "version", "hip": "version", "cudnn": "version", "nccl": "version", "archs": "list", "cxx11_abi": "bool", "available": "bool", "devices": "int", "text": "str"},
    ),
    "stack.device": _probed("A GPU as CUDA numbers it; ``gpu`` is its number for NVML, by UUID.", {"index": "int", "gpu": "int", "uuid": "str", "bus_id": "str", "model": "str", "arch": "version"}, {"moved": _difference("index", "gpu")}),
    "stack.tool": _probed("A tool that builds extensions; name: nvcc, cxx, ninja, cuda_home.", {"name": "str", "version": "version", "path": "str", "wanted": "version"}),
    "stack.library": _probed("A shared library that a process may load; name: nccl, cudart, cublas, cudnn. ``origin``: package, search_path, preload, system.", {"name": "str", "path": "str", "version": "version", "origin": "str", "major": "str"}),
    "stack.clash": _probed("Two libraries of one name (derived): the one that is loaded first and the one that was meant; name: nccl, cudart, cublas, cudnn.", {"name": "str", "first": "str", "first_version": "version", "meant": "str", "meant_version": "version", "by": "str"}, subject=("name",)),
    "stack.driver": _probed("Driver against torch (derived); name: too_old, minor, enough.", {"name": "str", "driver": "version", "driver_cuda": "version", "torch_cuda": "version", "need": "version"}),
    "stack.arch": _probed("A GPU against the architectures of torch (derived); name: served, ptx, missing.", {"name": "str", "gpu": "int", "model": "str", "arch": "version", "archs": "str", "need": "version"}, subject=("arch",)),
    "stack.nvcc": _probed("nvcc against torch's CUDA (derived); name: same, minor, major.", {"name": "str", "nvcc": "version", "torch_cuda": "version", "path": "str"}),
    "kernel.run": _probed(
        "A fused kernel, tried on a tiny tensor; state: ok, wrong, failed, crashed, slow, incompatible, needs_build, built.",
        {"kernel": "str", "package": "str", "state": "str", "device": "str", "text": "str", "cause": "str", "missing": "str", "difference": "float", "weight": "str"},
        subject=("kernel",),
    ),
    "net.interface": _probed("A network interface; type: loopback, bridge, virtual, physical.", {"interface": "str", "type": "str", "up": "bool", "speed": "int", "mtu": "int", "addresses": "list"}),
    "net.rdma": _probed(
        "A port of an RDMA device.",
        {"device": "str", "port": "int", "state": "str", "physical": "str", "layer": "str", "rate": "float", "firmware": "str", "board": "str", "gids": "int", "roce_v2": "int", "interface": "str"},
        subject=("device", "port"),
    ),
    "net.stack": _probed("What RDMA needs on the host; name: verbs_library, device_files, peer_memory.", {"name": "str", "present": "bool", "text": "str"}),
    "net.address": _probed(
        "An address that the ranks meet at; name: master, host.",
        {"name": "str", "address": "str", "port": "int", "resolved": "list", "resolves": "bool", "loopback": "bool", "here": "bool", "free": "bool", "nodes": "int", "text": "str"},
    ),
    "env.setting": _probed("An environment variable that matters to training, with its value; ``from``: environment or a file; ``absent``: it is a path at which nothing is; ``cut``: there is more of the value.", {"variable": "str", "value": "str", "from": "str", "absent": "bool", "cut": "bool"}),
    "env.variable": _probed(
        "What is wrong with a variable (derived); name: misspelt, unknown, read_otherwise, ignored, refused, removed, renamed, contradiction, leftover, risky, device_list, no_interface, no_file, launch. ``env_variable`` is the variable where it is set in the environment, else ``file`` is where it stands.",
        {"name": "str", "variable": "str", "env_variable": "str", "file": "str", "value": "str", "read": "str", "meant": "str", "text": "str", "use": "str", "other": "str", "ranks": "int"},
        subject=("variable", "value"),
    ),
    "node.difference": _probed(
        "A node, or a GPU of a node, that is not like the others (derived).",
        {"what": "str", "value": "str", "usual": "str", "nodes": "str", "number": "int", "others": "int", "gpu": "int", "scope": "str"},
        subject=("what", "value", "scope"),
    ),
}
# fmt: on


ABORTS = ("native.crash", "watchdog.taken_down")  # kinds that tell the end of a process
SEVERAL = 2  # ranks that abort: the job does not live on without them
_LAUNCHERS = ("torchrun", "launcher", "deepspeed", "accelerate", "lightning", "mpirun", "mpiexec", "slurm", "pdsh")
_ENDS = ("cancelled", "time_limit", "preempted", "node_failure", "task_exit", "task_signal", "evicted")


def ends_job(kind: str, fields: Mapping[str, Any]) -> bool:
    """True for a fact by which a launcher tells that workers failed, or a scheduler that a job, a step or a task is over. Fields may be texts."""
    if kind == "scheduler":
        return fields.get("name") in _ENDS and fields.get("state") != "shell"
    code = fields.get("exitcode")
    return kind == "process.exit" and fields.get("name") != "terminated" and code not in (None, 0, "0") and fields.get("by") in _LAUNCHERS


def convert(kind: str, name: str, text: Any) -> Any:
    """A captured text as the value its field's type asks for; None where it does not parse. ``kind`` must be known."""
    if text is None or not isinstance(text, str):
        return text
    type_ = KINDS[kind].type_of(name)
    try:
        match type_:
            case "int":
                return int(text.replace(",", ""))
            case "float":
                return float(text)
            case "bytes":
                return units.parse_size(text)
            case "seconds":
                return units.parse_duration(text)
            case "ms":
                return float(text) / 1000
            case "hex":
                return int(text, 16)
            case "bool":
                return text.strip().lower() in ("1", "true", "yes", "fatal")
            case "list":
                return tuple(part for part in text.replace("[", "").replace("]", "").replace(",", " ").split())
            case _:
                return text.strip()
    except ValueError:
        return None


def with_computed(kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """``fields`` with the kind's computed fields added where they can be computed."""
    result = dict(fields)
    for name, (_, compute) in KINDS[kind].computed.items():
        value = compute(fields)
        if value is not None:
            result[name] = value
    return result


def show(kind: str, name: str, value: Any) -> str:
    """A field's value as a person reads it: sizes and durations with their unit, numbers grouped."""
    type_ = KINDS[kind].type_of(name) if kind in KINDS else None
    if type_ == "bytes":
        return units.format_size(value)
    if type_ in ("seconds", "ms"):
        return units.format_duration(value)
    if isinstance(value, float) and name == "share":
        return f"{100 * value:.0f} %" if value >= 0.1 else f"{100 * value:.2g} %"
    if isinstance(value, float):
        return units.format_count(value) if abs(value) < 1e6 else f"{value:.3g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(str(part) for part in value)
    return str(value)

"""How each attempt ended: completed, failed, killed, cut off, still running or unknown; and the fact that says so."""

from __future__ import annotations

from collections.abc import Sequence

from memdoctor.model import Ended, Fact, FileRead, Marks, Origin

RUNNING = 120.0  # seconds since the file changed within which a log without an end counts as one of a live job
HUNG = 120.0  # seconds from the word that the work is done to a signal that ended a job which did not come to its end by itself
NEAR_END = 40  # lines before the end of a file in which an error-like line is taken for the reason of the end
_BYSTANDERS = (
    "make",
    "shell",
    "zsh",
    "time",
    "kubectl",
    "supervisord",
    "runner",
    "docker",
    None,
)  # tell of any process, the job's or another
_KILLS = ("cancelled", "time_limit", "preempted", "node_failure", "sigterm", "sighup", "evicted")
_LEFT = ("port.in_use", "rendezvous.error", "peer.gone")
_LEAVING = ("nccl.error",)  # also of a communicator that is taken down; where it ends a process, an exit or an exception tells so
_FATAL = (
    "watchdog.timeout",
    "watchdog.taken_down",
    "watchdog.heartbeat",
    "nccl.error",
    "cuda.oom",
    "cuda.error",
    "gpu.error",
    "host.oom",
    "exception",
    "native.crash",
    "rendezvous.error",
    "port.in_use",
    "collective.mismatch",
    "collective.timeout",
    "config.error",
)


def how_it_ended(facts: Sequence[Fact], steps: Marks, files: Sequence[FileRead], *, last: bool) -> tuple[Ended, Fact | None]:
    """Status of one attempt, and the fact that shows it best (None where nothing does).

    ``facts`` and ``steps`` are the attempt's; ``last`` tells whether a later attempt exists.
    """
    kills = [fact for fact in facts if fact.kind == "scheduler" and fact.fields.get("name") in _KILLS]
    kills = [fact for fact in kills if fact.fields.get("state") != "shell" or not _progress_after(fact, steps)]
    done = [fact for fact in facts if fact.kind == "run.end" and fact.fields.get("name") == "completed"]
    exits = [fact for fact in facts if _is_failure(fact) and not _goes_on(fact, steps, done)]
    ended = [fact for fact in facts if _says_its_end(fact) and not (fact.fields.get("name") == "failed" and _goes_on(fact, steps, done))]
    raised = [fact for fact in facts if fact.kind in _FATAL and _uncaught(fact) and not _progress_after(fact, steps)]
    if exits:
        return ("killed", kills[0]) if kills and _before(kills[0], exits[0]) else ("failed", _best_exit(exits))
    well = bool(done) and not any(_before(done[-1], fact) for fact in raised if fact.kind not in _LEAVING)
    if kills and well and all(_soon_after(done[-1], fact) for fact in kills):
        return "completed", done[-1]
    if kills:
        return "killed", kills[0]
    if well:
        return "completed", done[-1]
    if ended:
        return ("failed" if ended[0].fields.get("name") == "failed" else "killed"), ended[0]
    if raised:
        return "failed", raised[0]
    if done:
        return "completed", done[-1]
    lines = {file.number: file.lines for file in files}
    errors = [fact for fact in facts if fact.kind == "error.line" and not _progress_after(fact, steps)]
    near = [fact for fact in errors if last and (fact.origin.line or 0) > lines.get(fact.seq >> 44, 0) - NEAR_END]
    if near:
        return "failed", near[0]
    if not last:
        return "unknown", None
    if any(fact.kind == "process.live" for fact in facts):
        return "running", None
    if any(file.truncated or file.ends_mid_line for file in files):
        return "cut", None
    if steps and all(file.series is not None and file.series.through for file in files):
        return "completed", None
    ages = [file.age for file in files if file.age is not None]
    if steps and ages and min(ages) < RUNNING:
        return "running", None
    return "unknown", None


def ended_fact(attempt: int, status: Ended, shown_by: Fact | None, files: Sequence[FileRead]) -> Fact:
    """The derived fact ``run.ended`` of one attempt; it stands where the sign of the end stands, else at the end of the last file."""
    fields: dict[str, object] = {"status": status}
    if shown_by is None:
        file = files[-1]
        return Fact(
            "run.ended",
            fields,
            Origin("derived", file.path, file.lines, ""),
            None,
            None,
            file.last,
            attempt,
            (file.number << 44) | (file.lines << 8),
            f"ended:{attempt}",
        )
    for name in ("exitcode", "signal", "by", "phase", "iteration", "local_rank"):
        if shown_by.fields.get(name) is not None:
            fields[name] = shown_by.fields[name]
    if shown_by.kind == "error.line":
        fields["text"] = shown_by.fields.get("text", "")
    return Fact(
        "run.ended",
        fields,
        shown_by.origin,
        shown_by.rank,
        shown_by.host,
        shown_by.time,
        attempt,
        shown_by.seq,
        f"ended:{attempt}",
        shown_by.after,
    )


def is_debris(facts: Sequence[Fact]) -> bool:
    """True where an attempt saw nothing but the leavings of the one before: a taken port, a dead store, a peer that never came."""
    left = {fact.event for fact in facts if fact.kind in _LEFT}
    return bool(left) and all(
        fact.event in left or fact.kind in _LEFT or fact.kind in ("process.exit", "error.line") or fact.kind.startswith(("run.", "rank."))
        or (fact.kind == "exception" and fact.fields.get("owner") == "launcher")
        for fact in facts
    )  # fmt: skip


def _is_failure(fact: Fact) -> bool:
    code = fact.fields.get("exitcode")
    if fact.kind == "process.exit":
        return code not in (None, 0, -15, 143) and fact.fields.get("name") != "terminated"
    return (
        fact.kind == "scheduler"
        and fact.fields.get("name") in ("task_exit", "task_signal")
        and (code or fact.fields.get("signal")) not in (None, 0, "SIGTERM", "Terminated")
    )


def _anybodys(fact: Fact) -> bool:
    """True for an exit that a shell or a supervisor tells, without the rank or the process: perhaps not of the job at all."""
    fields = fact.fields
    return fact.kind == "process.exit" and fields.get("by") in _BYSTANDERS and fields.get("of_pid") is None and fact.rank is None


def _goes_on(fact: Fact, steps: Marks, done: Sequence[Fact]) -> bool:
    """True for an exit that was of no rank: the job made progress after it, and it may be anybody's, or came before the training began, or the
    job reached its end all the same."""
    began = next((step.seq for step in steps if step.seq >> 44 == fact.seq >> 44), 0)
    return (_anybodys(fact) or fact.seq < began or any(_before(fact, end) for end in done)) and _progress_after(fact, steps)


def _says_its_end(fact: Fact) -> bool:
    return fact.kind == "run.end" and fact.fields.get("name") in ("failed", "killed")


def _soon_after(done: Fact, kill: Fact) -> bool:
    """True where the signal came when the job was just leaving; without times a time limit is taken for late, anything else for soon."""
    if not _before(done, kill):
        return False
    first, second = done.time or done.after, kill.time
    if first is None or second is None:
        return kill.fields.get("name") != "time_limit"
    return second.epoch - first.epoch < HUNG


def _uncaught(fact: Fact) -> bool:
    return not fact.fields.get("logged") and not (fact.kind == "exception" and fact.fields.get("owner") == "launcher")


def _best_exit(exits: Sequence[Fact]) -> Fact:
    """The exit that tells most: one with a rank, in the launcher's own line before its box."""
    return next((fact for fact in exits if fact.rank is not None), exits[0])


def _before(first: Fact, second: Fact) -> bool:
    if first.time is not None and second.time is not None and first.seq >> 44 != second.seq >> 44:
        return first.time.epoch <= second.time.epoch
    return first.seq <= second.seq


def _progress_after(fact: Fact, steps: Marks) -> bool:
    """Two step lines or more after the fact: the job went on."""
    own = steps.of_rank(fact.rank)
    later = 0
    for step in own or steps:
        if fact.time is not None and step.epoch is not None:
            later += step.epoch > fact.time.epoch
        elif step.seq >> 44 == fact.seq >> 44:
            later += step.seq > fact.seq >= step.since
    return later >= 2

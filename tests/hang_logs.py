"""Watchdog text of made-up jobs of many ranks in which one holds up the others, in the wordings of torch 1.13 to 2.13.

``make(seed, ...)`` decides size, version, prefix and fault by the seed and says what is to be found. Nothing here is copied from a log.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

START = 13 * 3600  # seconds of the day at which the others begin to wait
LIMIT = 600  # seconds
VERSIONS = ("1.13", "2.0", "2.1", "2.2", "2.3", "2.4", "2.6", "2.7", "2.13")
SIGNALS = ("2.7", "2.13")  # whose ranks tell each other to write their dumps
STAMPED = ("2.4", "2.6", "2.7", "2.13")
NAMED = ("2.3", "2.4", "2.6", "2.7", "2.13")  # whose lines name the group
WORLDS = (8, 16, 24, 32, 64, 128, 256, 512, 1024)
FAULTS = ("silent", "dead", "late", "operation", "size", "fewer", "more")
PREFIXES = ("none", "srun", "openmpi", "pdsh", "kubectl", "ray")
BY_HOST = ("pdsh", "kubectl", "ray")  # prefixes that tell the host and no rank
PER_NODE = 8


@dataclass
class Hang:
    """A job of ``world`` ranks, ``tp`` of a tensor-parallel group, in which ``culprit`` holds up its group.

    ``group``: world or tensor. ``fault``: silent (it is busy and prints nothing), dead (the others exchange signals, it does not answer),
    late (alive, had not called), operation or size (it called something else), fewer or more (it waits in another number of calls). ``told``: how the log tells the size of the job.
    """

    world: int
    culprit: int
    version: str
    fault: str = "silent"
    group: str = "world"
    tp: int = 8
    prefix: str = "none"
    told: str = "megatron"  # megatron, nccl
    shuffled: bool = False
    split: bool = False  # a file for each rank
    lost: float = 0.0  # share of the watchdog's lines that are missing
    seed: int = 0
    box: bool = True
    _rng: random.Random = field(default_factory=random.Random)

    @property
    def causes(self) -> set[str]:
        return {
            "silent": {"hang.straggler"}, "dead": {"hang.rank_died"}, "late": {"hang.straggler"},
            "operation": {"hang.desync"}, "size": {"hang.desync"}, "fewer": {"hang.desync"}, "more": {"hang.desync"},
        }[self.fault]  # fmt: skip

    @property
    def host(self) -> str | None:
        """The culprit's host, where the log tells hosts at all."""
        return self._host(self.culprit) if (self.prefix in BY_HOST and not self.split) or self.told == "nccl" else None

    @property
    def members(self) -> tuple[int, ...]:
        if self.group == "world":
            return tuple(range(self.world))
        first = self.culprit - self.culprit % self.tp
        return tuple(range(first, first + self.tp))

    def files(self) -> dict[str, str]:
        """Name → text."""
        self._rng = random.Random(self.seed)
        begin = self._begin()
        words = [(second, rank, text) for second, rank, text in self._watchdog() if self._rng.random() >= self.lost]
        if self.shuffled:
            self._rng.shuffle(words)
        else:
            words.sort(key=lambda word: word[0])
        lines = [*begin, *words, *self._end()]
        if not self.split:
            return {"train.log": "".join(self._prefixed(rank, text) + "\n" for _, rank, text in lines)}
        own: dict[str, list[str]] = {f"rank_{rank}.log": ["worker is up"] for rank in range(self.world)}
        own["launcher.log"] = []
        for _, rank, text in lines:
            own["launcher.log" if rank is None else f"rank_{rank}.log"].append(text)
        return {name: "".join(f"{line}\n" for line in texts) for name, texts in own.items()}

    # --- the job ----------------------------------------------------------------------------------------------------

    def _host(self, rank: int) -> str:
        node = rank // PER_NODE
        return {"kubectl": f"worker-{node}", "ray": f"10.0.{node}.1"}.get(self.prefix, f"node-{node:03d}")

    def _prefixed(self, rank: int | None, text: str) -> str:
        if rank is None:
            rank = 0
            if self.prefix in ("none", "openmpi", "ray"):
                return text
        match self.prefix:
            case "srun":
                return f"{rank}: {text}"
            case "openmpi":
                return f"[1,{rank}]<stderr>:{text}"
            case "pdsh":
                return f"{self._host(rank)}: {text}"
            case "kubectl":
                return f"[pod/{self._host(rank)}/pytorch] {text}"
            case "ray":
                return f"(RayTrainWorker pid={4000 + rank}, ip={self._host(rank)}) {text}"
        return text

    def _begin(self) -> list[tuple[float, int | None, str]]:
        lines: list[tuple[float, int | None, str]] = []
        last = self.world - 1
        if self.told == "megatron":
            lines.append((0, 0, f"using world size: {self.world}, data-parallel size: {self.world // self.tp}, context-parallel size: 1, "
                f"tensor-model-parallel size: {self.tp}, pipeline-model-parallel size: 1"))  # fmt: skip
        else:
            for rank in self._rng.sample(range(self.world), self.world):  # they come as they are ready
                lines.append((0, rank, f"{self._host(rank)}:{7000 + rank % PER_NODE}:{7100 + rank % PER_NODE} [{rank % PER_NODE}] NCCL INFO ncclCommInitRank comm "
                    f"0x{0x55D2C0 + rank:x} rank {rank} nranks {self.world} cudaDev {rank % PER_NODE} nvmlDev {rank % PER_NODE} busId {rank % PER_NODE + 1}b000 "
                    "commId 0x8ba2d0f7 - Init COMPLETE"))  # fmt: skip
        for step in range(1, 6):
            lines.append((step * 5, last, f" iteration {1190 + step:8d}/  500000 | consumed samples: {step * 1024:12d} | elapsed time per iteration (ms): 5012.3 | "
                f"learning rate: 1.500000E-04 | global batch size:  1024 | lm loss: {2.5 - step * 1e-3:.6E} | loss scale: 1.0 | grad norm: 0.312 | "
                "number of skipped iterations:   0 | number of nan iterations:   0 |"))  # fmt: skip
        return lines

    def _end(self) -> list[tuple[float, int | None, str]]:
        """The launcher of the first node: it names the first process that it saw end, a victim."""
        victim = next(rank for rank in self.members if rank != self.culprit)
        lines = [f"E1129 {self._clock(LIMIT + 20)[:-3]}000 4242 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -6) "
            f"local_rank: {victim % PER_NODE} (pid: {9000 + victim}) of binary: /opt/venv/bin/python3"]  # fmt: skip
        if self.box:
            rule = "=" * 60
            lines += [
                "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ", rule, "pretrain_gpt.py FAILED", "-" * 60, "Failures:",
                "  <NO_OTHER_FAILURES>", "-" * 60, "Root Cause (first observed failure):", "[0]:", "  time      : 2026-11-29_13:10:21",
                f"  host      : {self._host(victim)}", f"  rank      : {victim} (local_rank: {victim % PER_NODE})",
                f"  exitcode  : -6 (pid: {9000 + victim})", "  error_file: <N/A>", f"  traceback : Signal 6 (SIGABRT) received by PID {9000 + victim}", rule,
            ]  # fmt: skip
        return [(LIMIT + 20, None, line) for line in lines]

    # --- the watchdog -----------------------------------------------------------------------------------------------

    def _watchdog(self) -> list[tuple[float, int | None, str]]:
        words: list[tuple[float, int | None, str]] = []
        members = self.members
        sends = self.version in SIGNALS
        for place, rank in enumerate(members):
            if rank == self.culprit:
                words += self._of_culprit(rank, place)
                continue
            watches = sends and self.group == "world" and self._rng.random() < 0.5 and place > 1
            second = LIMIT + 0.02 * self._rng.random()
            words += self._watches(second + 1, rank, place, 48213) if watches else self._times_out(second, rank, place, *self._call())
        if self.group == "tensor":  # the others wait for the ranks of that group, and give up later
            for rank in range(self.world):
                if rank not in members and self._rng.random() < 0.7:
                    words += self._times_out(
                        LIMIT + 30 + self._rng.random(),
                        rank,
                        rank // self.tp,
                        "ALLREDUCE",
                        1,
                        977,
                        name=f"DATA_PARALLEL_GROUP:{rank % self.tp}",
                    )
        return words

    def _call(self) -> tuple[str, int, int]:
        return "ALLREDUCE", 1048576, 48213

    def _of_culprit(self, rank: int, place: int) -> list[tuple[float, int | None, str]]:
        match self.fault:
            case "operation":
                return self._times_out(LIMIT + 0.01, rank, place, "_ALLGATHER_BASE", 1048576, 48213)
            case "size":
                return self._times_out(LIMIT + 0.01, rank, place, "ALLREDUCE", 4096, 48213)
            case "fewer" | "more":
                return self._times_out(
                    LIMIT + 0.01, rank, place, "_REDUCE_SCATTER_BASE", 65536, 48213 + (3 if self.fault == "more" else -3)
                )
            case "late":
                if self.version in SIGNALS:
                    return self._watches(LIMIT + 1, rank, place, 48212)
                return self._times_out(LIMIT * 2 - 60, rank, place, *self._call())  # it came ten minutes later, and then waited itself
        return []

    def _times_out(
        self, second: float, rank: int, place: int, op: str, size: int, seq: int, name: str = ""
    ) -> list[tuple[float, int | None, str]]:
        ran = f"ran for {LIMIT * 1000 + self._rng.randrange(10, 90)} milliseconds before timing out."
        sizes = {"1.13": f"TensorShape=[{size}], ", "2.0": ""}.get(self.version, f"NumelIn={size}, NumelOut={size}, ")
        caught = f"[Rank {place}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, {sizes}Timeout(ms)={LIMIT * 1000}) {ran}"
        group = self._group(place, name)
        failed = "Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data."
        down = "To avoid data inconsistency, we are taking the entire process down."
        own = f"[Rank {place}] " if self.version not in ("1.13", "2.0") else ""
        texts = [caught]
        match self.version:
            case "2.3":
                texts += [f"{group} Timeout at NCCL work: {seq}, last enqueued NCCL work: {seq + 1}, last completed NCCL work: {seq - 1}."]
            case "2.4":
                state = f"{seq}, last enqueued NCCL work: {seq + 1}, last completed NCCL work: {seq - 1}."
                texts += [
                    f"{group} Exception (either an error or timeout) detected by watchdog at work: {state}",
                    f"{group} Timeout at NCCL work: {state}",
                ]
            case "2.6" | "2.7" | "2.13":
                texts += [
                    f"{group}  failure detected by watchdog at work sequence id: {seq} PG status: last enqueued work: {seq + 1}, last completed work: {seq - 1}",
                    "Stack trace of the failed collective not found, potentially because FlightRecorder is disabled. You can enable it by setting TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero value.",
                ]
        if self.version in SIGNALS:
            texts.append(
                f"{self._group(place, name)} Received a dump signal due to a collective timeout from this local rank and we will try our best to dump the debug info. "
                f"Last enqueued NCCL work: {seq + 1}, last completed NCCL work: {seq - 1}.This is most likely caused by incorrect usages of collectives, e.g., wrong sizes used across ranks."
            )
        ends = {
            "1.13": "",
            "2.0": "",
            "2.1": f"{own}NCCL watchdog thread terminated with exception: ",
            "2.2": f"{own}NCCL watchdog thread terminated with exception: ",
        }
        end = ends.get(self.version, f"{group} Process group watchdog thread terminated with exception: ")
        aborted = ["terminate called after throwing an instance of 'c10::DistBackendError'", f"  what():  {end}{caught}"]
        texts += [own + failed, own + down, *([end + caught] if end else [])]
        lines = [*(self._logged(second, rank, text) for text in texts), *aborted]
        return [(second + number * 0.001, rank, line) for number, line in enumerate(lines)]

    def _watches(self, second: float, rank: int, place: int, enqueued: int) -> list[tuple[float, int | None, str]]:
        group = self._group(place, "")
        texts = [
            f"{group} Observed flight recorder dump signal from another rank via TCPStore.",
            f"{group} Received a dump signal due to a collective timeout from  rank {next(one for one in self.members if one != self.culprit)} and we will try our best to dump the debug "
            f"info. Last enqueued NCCL work: {enqueued}, last completed NCCL work: 48212.This is most likely caused by incorrect usages of collectives, e.g., wrong sizes used across ranks.",
            f"{group} ProcessGroupNCCL preparing to dump debug info. Include stack trace: 1, only active collectives: 0",
        ]
        return [(second + number * 0.001, rank, self._logged(second, rank, text)) for number, text in enumerate(texts)]

    def _group(self, place: int, name: str) -> str:
        """The prefix with the process group. Its name is a number that is counted up on all ranks alike."""
        desc, _, part = name.partition(":")
        if name:
            number = 200 + int(part)
        elif self.group == "world":
            number, desc = 0, "default_pg"
        else:
            number, desc = 10 + self.members[0] // self.tp, "TENSOR_MODEL_PARALLEL_GROUP"
        match self.version:
            case "1.13" | "2.0" | "2.1" | "2.2":
                return ""
            case "2.3" | "2.4":
                return f"[PG {number} Rank {place}]"
        return f"[PG ID {1 if number else 0} PG GUID {number}({desc}) Rank {place}]"

    def _logged(self, second: float, rank: int, text: str) -> str:
        line = 607
        if self.version in ("1.13", "2.0", "2.1"):
            return f"[E ProcessGroupNCCL.cpp:{line}] {text}"
        if self.version in ("2.2", "2.3"):
            return f"[rank{rank}]:[E ProcessGroupNCCL.cpp:{line}] {text}"
        return f"[rank{rank}]:[E1129 {self._clock(second)}{self._rng.randrange(1000):03d} ProcessGroupNCCL.cpp:{line}] {text}"

    def _clock(self, second: float) -> str:
        total = START + second
        return f"{int(total // 3600):02d}:{int(total // 60 % 60):02d}:{total % 60:09.6f}"


def make(seed: int, *, group: str = "world", lost: float = 0.0, most: int = 1024) -> Hang:
    """The hang that ``seed`` decides, of at most ``most`` ranks; one that can be told from its text alone."""
    rng = random.Random(f"{group} {lost} {seed}")
    worlds = [world for world in WORLDS if world <= most and (group == "world" or world >= 16)]
    version = rng.choice(VERSIONS)
    fault = rng.choice(FAULTS)
    if fault == "dead" and version not in SIGNALS:
        fault = "silent"
    if fault == "silent" and version in SIGNALS and group == "world":
        fault = "dead"
    if fault == "size" and version == "2.0":
        fault = "operation"  # no size is told
    if fault == "late" and version not in STAMPED:
        fault = "silent"  # without times nothing tells that it came later
    if fault == "dead" and group == "tensor":
        fault = "silent"
    if fault in ("fewer", "more") and version not in NAMED:
        fault = "operation"  # nothing tells that these numbers are of one group
    world = rng.choice(worlds)
    old = version in ("1.13", "2.0", "2.1")
    split = rng.random() < 0.3 and world <= 256
    prefix = rng.choice(PREFIXES)
    if old and group == "tensor" and prefix in ("none", *BY_HOST):
        prefix = "srun"  # nothing else tells whose lines they are
    return Hang(
        world=world,
        culprit=rng.randrange(world),
        version=version,
        fault=fault,
        group=group,
        tp=rng.choice((4, 8)) if world % 8 == 0 and group == "world" else 8,
        prefix=prefix,
        told=rng.choice(("megatron", "nccl")) if not (old and group == "tensor") else "megatron",
        shuffled=rng.random() < 0.5,
        split=split,
        lost=lost,
        seed=seed,
        box=rng.random() < 0.5,
    )

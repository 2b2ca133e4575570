"""Made-up logs of many ranks, in the formats that real jobs print. Used by tests; nothing here is copied from a public log."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

START = 13 * 3600  # 13:00:00 on 2026-11-29
TIMEOUT_MS = 600_000


@dataclass
class ManyRanks:
    """A job of ``world`` ranks in which rank ``culprit`` runs out of GPU memory at iteration 1201 and all others time out.

    ``lines`` gives (seconds since start, rank or None for the launcher, text without rank prefix) in order of time.
    """

    world: int = 64
    culprit: int = 7
    stamps: bool = True
    start: float = START
    fault: str = "oom"
    first_iteration: int = 1191
    port: int = 29500
    _lines: list[tuple[float, int | None, str]] = field(default_factory=list)

    def clock(self, second: float) -> str:
        total = self.start + second
        return f"{int(total // 3600):02d}:{int(total // 60 % 60):02d}:{total % 60:09.6f}"

    def lines(self) -> list[tuple[float, int | None, str]]:
        self._lines = []
        self._begin()
        last = self.world - 1
        for step in range(10):
            self._add(10 + step * 5, last, self._iteration(self.first_iteration + step, 10 + step * 5))
        fault_at = 61.0
        if self.fault == "oom":
            for line in self._oom():
                self._add(fault_at, self.culprit, line)
        elif self.fault == "key":
            for line in self._key_error():
                self._add(fault_at, self.culprit, line)
        for rank in range(self.world):
            if rank != self.culprit:
                self._add(fault_at + 600 + rank * 0.01, rank, self._watchdog(rank, fault_at + 600 + rank * 0.01))
        self._add(fault_at + 605, None, self._elastic(fault_at + 605))
        return self._lines

    def one_file(self) -> str:
        """One stdout of the whole job, every rank's lines with its prefix where the rank prints one."""
        return "\n".join(self._prefixed(rank, text) for _, rank, text in self.lines()) + "\n"

    def files(self) -> dict[str, str]:
        """One file a rank, and one of the launcher."""
        result: dict[str, list[str]] = {f"rank_{rank}.log": [] for rank in range(self.world)}
        result["launcher.log"] = []
        for _, rank, text in self.lines():
            result["launcher.log" if rank is None else f"rank_{rank}.log"].append(self._prefixed(rank, text))
        return {name: "\n".join(lines) + ("\n" if lines else "") for name, lines in result.items()}

    # --- pieces -----------------------------------------------------------------------------------------------------

    def _add(self, second: float, rank: int | None, text: str) -> None:
        self._lines.append((second, rank, text))

    def _prefixed(self, rank: int | None, text: str) -> str:
        if rank is None or text.startswith((" [", " iteration", "[E ", "using world")):
            return text
        return f"[rank{rank}]:{'' if text.startswith('[E') else ' '}{text}"

    def _begin(self) -> None:
        head = f"W1129 {self.clock(0)[:-3]}000 4242 torch/distributed/run.py:874] " if self.stamps else "WARNING:torch.distributed.run:"
        stars = "*****************************************"
        omp = (
            "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being overloaded, "
            "please further tune the variable for optimal performance in your application as needed. "
        )
        for text in ("", stars, omp, stars):
            self._add(0, None, head + text)
        self._add(
            5, 0,
            f"using world size: {self.world}, data-parallel size: {self.world // 8}, context-parallel size: 1, hierarchical context-parallel sizes: None, "
            "tensor-model-parallel size: 4, pipeline-model-parallel size: 2",
        )  # fmt: skip

    def _iteration(self, number: int, second: float) -> str:
        stamp = f" [2026-11-29 {self.clock(second)}]" if self.stamps else ""
        return (
            f"{stamp} iteration {number:8d}/  500000 | consumed samples: {number * 1024:12d} | elapsed time per iteration (ms): 5012.3 | "
            f"throughput per GPU (TFLOP/s/GPU): 401.2 | learning rate: 1.500000E-04 | global batch size:  1024 | lm loss: {2.5 - number * 1e-5:.6E} | "
            "loss scale: 1.0 | grad norm: 0.312 | number of skipped iterations:   0 | number of nan iterations:   0 |"
        )

    def _oom(self) -> list[str]:
        site = "/opt/venv/lib/python3.12/site-packages/"
        return [
            "Traceback (most recent call last):",
            '  File "/workspace/Megatron-LM/pretrain_gpt.py", line 301, in <module>',
            "    pretrain(",
            '  File "/workspace/Megatron-LM/megatron/training/training.py", line 2153, in train',
            "    loss_dict, skipped_iter = train_step(forward_step_func, train_data_iterator, model, optimizer)",
            '  File "/workspace/Megatron-LM/megatron/core/pipeline_parallel/schedules.py", line 402, in forward_step',
            "    output_tensor, loss_func = forward_step_func(data_iterator, model)",
            '  File "/workspace/Megatron-LM/megatron/core/transformer/mlp.py", line 122, in forward',
            "    intermediate_parallel = self.activation_func(intermediate_parallel)",
            f'  File "{site}torch/nn/functional.py", line 1712, in gelu',
            "    return torch._C._nn.gelu(input)",
            "           ^^^^^^^^^^^^^^^^^^^^^^^^",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB of which 1.20 GiB is free. "
            "Including non-PyTorch memory, this process has 77.90 GiB memory in use. Of the allocated memory 74.10 GiB is allocated by PyTorch, and "
            "512.00 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
            "PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
        ]

    def _key_error(self) -> list[str]:
        return [
            "Traceback (most recent call last):",
            '  File "/workspace/train/loop.py", line 88, in step',
            "    weight = weights[batch['source']]",
            "             ~~~~~~~^^^^^^^^^^^^^^^^^",
            "KeyError: 'web-2024'",
        ]

    def _watchdog(self, rank: int, second: float) -> str:
        work = f"WorkNCCL(SeqNum=48213, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, Timeout(ms)={TIMEOUT_MS})"
        ran = f"ran for {TIMEOUT_MS + 42 + rank} milliseconds before timing out."
        if self.stamps:
            return f"[E1129 {self.clock(second)}000 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation timeout: {work} {ran}"
        return f"[E ProcessGroupNCCL.cpp:474] [Rank {rank}] Watchdog caught collective operation timeout: {work} {ran}"

    def _elastic(self, second: float) -> str:
        local = 0 if self.culprit else 1
        text = f"failed (exitcode: -6) local_rank: {local} (pid: 9001) of binary: /opt/venv/bin/python3"
        if self.stamps:
            return f"E1129 {self.clock(second)[:-3]}000 4242 torch/distributed/elastic/multiprocessing/api.py:1002] {text}"
        return f"ERROR:torch.distributed.elastic.multiprocessing.api:{text}"


def shuffled(names: list[str], seed: int) -> list[str]:
    """``names`` in an order that a seed decides."""
    result = list(names)
    random.Random(seed).shuffle(result)
    return result

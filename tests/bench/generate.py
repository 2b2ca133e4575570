"""Training logs of any size, made up: what Megatron-LM, DeepSpeed, NCCL on 64 ranks and tqdm print, in one file. Seeded.

Wordings follow the public sources of those programs; numbers are random. About one line in ten thousand tells of something that a
signal knows. ``python tests/bench/generate.py BYTES [SEED]`` writes to standard output.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

# ruff: noqa: UP031 - percent formats, as in the programs whose lines these are
RANKS = 64
TIMERS = (
    "forward-backward", "forward-compute", "backward-compute", "batch-generator", "forward-recv", "forward-send", "backward-recv",
    "backward-send", "layernorm-grads-all-reduce", "embedding-grads-all-reduce", "all-grads-sync", "params-all-gather",
    "optimizer-copy-to-main-grad", "optimizer-clip-main-grad", "optimizer-inner-step", "optimizer",
)  # fmt: skip
CHATTER = (
    "INFO:megatron.core.timers:(min, max) time across ranks (ms):",
    "INFO:megatron.core.optimizer:Setting up optimizer with config OptimizerConfig(optimizer='adam', lr=0.00015, min_lr=1.5e-05)",
    "DEBUG:megatron.core.models.common.embeddings.language_module.language_module:allocating main grad buckets of size 40000000",
    "INFO:megatron.core.num_microbatches_calculator:setting number of microbatches to constant 128",
    "> rank {rank} finished warming up the data loader in {a:.3f} seconds, shard {b:06d} of the corpus is next",
    "[rank{rank}]: data shard /data/corpus/part-{b:06d}.bin opened, {b} documents, {a:.1f} MiB mapped",
    "2026-03-0{day} 11:{minute:02d}:07 | INFO | trainer.callbacks | throughput {a:.2f} tokens/s/GPU, memory {a:.1f} GiB, queue depth {b}",
    "{host}: sampler state: epoch {b} seed {rank} position {b} of {b}1000 on data-parallel rank {rank}",
    "/opt/conda/lib/python3.11/site-packages/torch/utils/checkpoint.py:{b}: UserWarning: use_reentrant should be passed explicitly",
    "  warnings.warn(",
)


class Job:
    """One made-up job: a clock, an iteration counter, and the pieces of its log."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seconds = 0.0
        self.iteration = 0

    def clock(self) -> tuple[int, int, int, int, int]:
        whole = int(self.seconds)
        return 1 + whole // 86_400 % 28, whole // 3600 % 24, whole // 60 % 60, whole % 60, int(self.seconds % 1 * 1e6)

    def megatron(self) -> str:
        """An iteration with its timers, as both come with every log interval."""
        self.iteration += 1
        self.seconds += 5.2
        loss = 2.0 + self.random.random() / 5
        lines = [
            " [2026-03-%02d %02d:%02d:%02d.%06d] iteration %8d/ 5000000 | consumed samples: %12d | elapsed time per iteration (ms): %.1f | "
            "throughput per GPU (TFLOP/s/GPU): %.1f | learning rate: %.6E | global batch size:  1024 | lm loss: %.6E | loss scale: 1.0 | "
            "grad norm: %.3f | num zeros: 0 | params norm: 3021.114 | number of skipped iterations:   0 | number of nan iterations:   0 |"
            % (
                *self.clock(), self.iteration, self.iteration * 1024, 5200 + 9 * loss, 410 - loss, 1.5e-4 - 2e-11 * self.iteration, loss,
                0.2 + loss / 10,
            ),
            "(min, max) time across ranks (ms):",
        ]  # fmt: skip
        for name in TIMERS:
            low = self.random.random() * 5000
            lines.append("    %s: (%.2f, %.2f)" % ((name + " ").ljust(47, "."), low, low * 1.01))
        return "\n".join(lines) + "\n"

    def deepspeed(self) -> str:
        """Ten steps with their timers, and the line that DeepSpeed prints after every tenth."""
        lines = []
        for _ in range(10):
            self.iteration += 1
            self.seconds += 1.7
            day, hour, minute, second, micro = self.clock()
            stamp = "[2026-03-%02d %02d:%02d:%02d,%03d] [INFO]" % (day, hour, minute, second, micro // 1000)
            fast = self.random.random() * 90
            lines.append(
                f"{stamp} [logging.py:96:log_dist] [Rank 0] time (ms) | fwd_microstep: {fast:.2f} | bwd_microstep: {fast * 2:.2f} | "
                f"bwd_inner_microstep: {fast * 1.9:.2f} | bwd_allreduce_microstep: {fast / 9:.2f} | step_microstep: {fast / 7:.2f}"
            )
            lines.append(
                f"{stamp} [logging.py:96:log_dist] [Rank 0] time (ms) | fwd: {fast:.2f} | bwd: {fast * 2:.2f} | bwd_inner: {fast * 1.9:.2f} | "
                f"bwd_allreduce: {fast / 9:.2f} | step: {fast / 7:.2f}"
            )
        lines.append(
            f"{stamp} [logging.py:96:log_dist] [Rank 0] step={self.iteration}, skipped=0, lr=[1.2e-05, 1.2e-05], mom=[(0.9, 0.95), (0.9, 0.95)]"
        )
        lines.append(
            f"{stamp} [timer.py:260:stop] epoch=0/micro_step={self.iteration * 8}/global_step={self.iteration}, RunningAvgSamplesPerSec={fast:.3f}, "
            f"CurrSamplesPerSec={fast:.3f}, MemAllocated=21.4GB, MaxMemAllocated=63.9GB"
        )
        return "\n".join(lines) + "\n"

    def tqdm(self) -> str:
        """One epoch's bar; every second one with the loss in it."""
        parts = []
        loss = self.random.random()
        told = self.random.choice(["", f", loss={2 + loss:.3f}"])
        for step in range(0, 10_000, 40):
            share = step // 100
            parts.append(
                "Epoch 7: %3d%%|%s| %d/10000 [%02d:%02d<24:12, %6.2fit/s%s]"
                % (share, ("█" * (share // 10)).ljust(10), step, step // 600, step // 10 % 60, 9 + loss, told)
            )
        return "\r".join(parts) + "\n"

    def nccl(self) -> str:
        """One more communicator of all ranks."""
        lines = []
        for rank in range(RANKS):
            head = f"node-{rank // 8:02d}:{4100 + rank}:{5200 + rank} [{rank % 8}] NCCL INFO"
            lines.append(f"{head} Setting affinity for GPU {rank % 8} to ffffffff,ffff0000,00000000,ffffffff,ffff0000,00000000")
            lines.append(f"{head} NVLS multicast support is not available on dev {rank % 8}")
            for channel in range(0, 16, 2):
                lines.append(f"{head} Channel {channel:02d}/16 :    0   7   6   5   4   3   2   1   8  15  14  13  12  11  10   9  16  23")
                lines.append(f"{head} Ring {channel:02d} : {(rank + 63) % 64} -> {rank} -> {(rank + 1) % 64}")
            lines.append(
                f"{head} Trees [0] {rank + 1}/-1/-1->{rank}->{rank - 1} [1] {rank + 1}/-1/-1->{rank}->{rank - 1} [2] -1/-1/-1->{rank}->{rank - 1}"
            )
            lines.append(f"{head} P2P Chunksize set to 131072")
            lines.append(f"{head} Connected all rings, use ring PXN 0 GDR 1")
            lines.append(f"{head} Connected all trees")
            lines.append(f"{head} threadThresholds 8/8/64 | 512/8/64 | 512 | 512")
            lines.append(f"{head} 16 coll channels, 16 collnet channels, 0 nvls channels, 16 p2p channels, 2 p2p channels per peer")
        return "\n".join(lines) + "\n"

    def chatter(self) -> str:
        lines = []
        for _ in range(40):
            rank = self.random.randrange(RANKS)
            lines.append(
                self.random.choice(CHATTER).format(
                    rank=rank, host=f"node-{rank // 8:02d}", a=self.random.random() * 90, b=self.random.randrange(9_999), day=3, minute=rank
                )
            )
        return "\n".join(lines) + "\n"

    def told(self) -> str:
        """What signals know: a checkpoint, a warning of NCCL, an exception that the loop survives."""
        rank = self.random.randrange(RANKS)
        return (
            f"saving checkpoint at iteration {self.iteration:7d} to /ckpt/run-7 in torch_dist format\n"
            f"  successfully saved checkpoint from iteration {self.iteration:7d} to /ckpt/run-7 [ t 1/8, p 1/4 ]\n"
            f"node-{rank // 8:02d}:{4100 + rank}:{5200 + rank} [{rank % 8}] misc/socket.cc:881 NCCL WARN socketStartConnect: Connect to "
            f"10.0.3.{rank}<41231> failed : Software caused connection abort\n"
            f"[rank{rank}]: Traceback (most recent call last):\n"
            f'[rank{rank}]:   File "/job/train/data.py", line 118, in __getitem__\n'
            f"[rank{rank}]:     return self.read(self.offsets[index], index)\n"
            f'[rank{rank}]:   File "/job/train/data.py", line 77, in read\n'
            f"[rank{rank}]:     raise ValueError(f'document {{index}} is empty')\n"
            f"[rank{rank}]: ValueError: document {self.random.randrange(9_999)} is empty\n"
        )

    def pieces(self) -> Iterator[str]:
        """Without end. Shares of the bytes: iterations and timers 20 %, DeepSpeed 25 %, tqdm 12 %, NCCL 8 %, chatter of the ranks 35 %."""
        makers = (self.megatron, self.deepspeed, self.tqdm, self.nccl, self.chatter)
        weights = [share / size for share, size in ((20, 1.6), (25, 4.0), (12, 21.0), (8, 135.0), (35, 3.9))]  # sizes of the pieces in KB
        yield self.nccl()
        while True:
            yield self.told()
            for maker in self.random.choices(makers, weights, k=1_000):
                yield maker()


def pieces(size: int, seed: int = 1) -> Iterator[bytes]:
    """A log of ``size`` bytes; the last line is filled up."""
    left = size
    for piece in Job(seed).pieces():
        data = piece.encode()
        if len(data) >= left:
            yield data[: left - 1].rsplit(b"\n", 1)[0].ljust(left - 1, b".") + b"\n"
            return
        left -= len(data)
        yield data


if __name__ == "__main__":
    for part in pieces(int(float(sys.argv[1])), int(sys.argv[2]) if len(sys.argv) > 2 else 1):
        sys.stdout.buffer.write(part)

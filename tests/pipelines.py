"""Made-up Megatron-LM logs of pipelines whose stages and ranks take known times and hold known memory.

The numbers come from a simulation of its own (micro-batch by micro-batch, layer by layer), not from the code under test.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

MIB = 1024**2


@dataclass
class Pipeline:
    """A job of ``tp × pp × dp`` ranks; times in ms of one layer and micro-batch, memory in MiB.

    ``layers`` of each chunk in the order of the model (pp × vpp). ``logits_ms`` is what the last stage takes besides its layers;
    ``slow`` rank → factor: a slow rank holds up its whole tensor-parallel group.
    """

    tp: int
    pp: int
    dp: int
    layers: tuple[int, ...]
    vpp: int = 1
    microbatches: int = 16
    layer_ms: float = 9.0
    logits_ms: float = 0.0
    slow: dict[int, float] = field(default_factory=dict)
    noise: float = 0.01
    reports: int = 6
    hidden: int = 4096
    vocab: int = 32000
    seq: int = 4096
    layer_mib: float = 300.0  # weights, gradients and optimizer of a layer
    activation_mib: float = 120.0  # of a layer and a micro-batch
    ends_mib: tuple[float, float] = (500.0, 700.0)
    base_mib: float = 3000.0
    option: str = "all"
    split_known: bool = True
    seed: int = 0

    @property
    def world(self) -> int:
        return self.tp * self.pp * self.dp

    def stage(self, rank: int) -> int:
        return rank // (self.tp * self.dp)

    def group(self, rank: int) -> tuple[int, ...]:
        first = rank - rank % self.tp
        return tuple(range(first, first + self.tp))

    def stage_layers(self) -> list[int]:
        return [sum(self.layers[stage :: self.pp]) for stage in range(self.pp)]

    def stage_ms(self) -> list[float]:
        """Compute time of each stage in a step, with no slow rank."""
        times = [self.microbatches * self.layer_ms * count for count in self.stage_layers()]
        times[-1] += self.microbatches * self.logits_ms
        return times

    def stage_mib(self) -> list[float]:
        found = []
        for stage, count in enumerate(self.stage_layers()):
            flying = min(self.microbatches, self.pp - stage)
            if self.vpp > 1:
                flying = min(self.microbatches * self.vpp, 2 * (self.pp - stage - 1) + (self.vpp - 1) * self.pp + 1)
            found.append(self.base_mib + count * self.layer_mib + flying * count / self.vpp * self.activation_mib)
        found[0] += self.ends_mib[0]
        found[-1] += self.ends_mib[1]
        return found

    def text(self) -> str:
        chance = random.Random(self.seed)
        lines = [*self._start()]
        for report in range(self.reports):
            lines += [self._iteration(report)]
            if report < 2:
                lines += self._memory(report, chance)
            lines += self._timers(report, chance)
        return "\n".join(lines) + "\n"

    # --- pieces -----------------------------------------------------------------------------------------------------------------

    def _start(self) -> list[str]:
        total = sum(self.layers)
        even = len(set(self.layers)) == 1
        arguments = {
            "add_bias_linear": False,
            "bf16": True,
            "context_parallel_size": 1,
            "data_parallel_size": self.dp,
            "ffn_hidden_size": 4 * self.hidden,
            "global_batch_size": self.microbatches * self.dp,
            "group_query_attention": False,
            "hidden_size": self.hidden,
            "kv_channels": self.hidden // 32,
            "micro_batch_size": 1,
            "normalization": "RMSNorm",
            "num_attention_heads": 32,
            "num_layers": total,
            "padded_vocab_size": self.vocab,
            "params_dtype": "torch.bfloat16",
            "pipeline_model_parallel_layout": None if even or not self.split_known else self._layout(),
            "pipeline_model_parallel_size": self.pp,
            "seq_length": self.seq,
            "swiglu": False,
            "tensor_model_parallel_size": self.tp,
            "untie_embeddings_and_output_weights": True,
            "use_distributed_optimizer": False,
            "virtual_pipeline_model_parallel_size": self.vpp if self.vpp > 1 else None,
            "world_size": self.world,
        }
        return [
            f"using world size: {self.world}, data-parallel size: {self.dp}, context-parallel size: 1, hierarchical context-parallel sizes: None, "
            f"tensor-model-parallel size: {self.tp}, pipeline-model-parallel size: {self.pp}",
            "------------------------ arguments ------------------------",
            *(f"  {(name + ' ').ljust(48, '.')} {value}" for name, value in arguments.items()),
            "-------------------- end of arguments ---------------------",
            "> initializing torch distributed ...",
            f"> initialized tensor model parallel with size {self.tp}",
            f"> initialized pipeline model parallel with size {self.pp}",
            "training ...",
            "[before the start of training step] datetime: 2026-03-02 10:00:00 ",
        ]

    def _layout(self) -> str:
        parts = ["t" * size for size in self.layers]
        return "E" + "|".join(parts) + "L"

    def _iteration(self, report: int) -> str:
        step = sum(self.stage_ms()) / self.microbatches + (self.microbatches - 1) * max(self.stage_ms()) / self.microbatches
        number = report * 10 if report else 1
        return (
            f" [2026-03-02 10:{report:02d}:00] iteration {number:8d}/  500000 | consumed samples: {number * 64:12d} | "
            f"elapsed time per iteration (ms): {step:.1f} | learning rate: 1.000000E-04 | global batch size:    64 | "
            f"lm loss: {8 - report / 10:.6E} | loss scale: 1.0 | grad norm: 1.204 | number of skipped iterations:   0 | number of nan iterations:   0 |"
        )

    def _memory(self, report: int, chance: random.Random) -> list[str]:
        stages = self.stage_mib()
        lines = []
        for rank in range(self.world):
            if rank // self.tp % self.dp == 0:
                peak = stages[self.stage(rank)] * (1 + chance.uniform(0, 0.002))
                lines.append(
                    f"[Rank {rank}] (after {report + 1} iterations) memory (MB) | allocated: {peak * 0.6:.2f} | max allocated: {peak:.2f} | "
                    f"reserved: {peak * 1.1:.2f} | max reserved: {peak * 1.1:.2f}"
                )
        return lines

    def rank_ms(self, chance: random.Random, warm_up: float = 1.0) -> dict[int, float]:
        """Forward and backward time of each rank in one step."""
        stages = self.stage_ms()
        factors = dict.fromkeys(range(self.world), 1.0)
        for rank, factor in self.slow.items():
            for other in self.group(rank):
                factors[other] = max(factors[other], factor)
        return {
            rank: stages[self.stage(rank)] * factors[rank] * warm_up * (1 + chance.uniform(-self.noise, self.noise))
            for rank in range(self.world)
        }

    def _timers(self, report: int, chance: random.Random) -> list[str]:
        times = self.rank_ms(chance, warm_up=1.7 if report == 0 else 1.0)
        whole = max(times.values()) * 1.2
        parts = {
            "forward-backward": dict.fromkeys(times, whole),
            "batch-generator": dict.fromkeys(times, 3.1),
            "forward-compute": {rank: time / 3 + 3.1 for rank, time in times.items()},
            "backward-compute": {rank: 2 * time / 3 for rank, time in times.items()},
        }
        if self.option == "minmax":
            return [
                "(min, max) time across ranks (ms):",
                *(f"    {(name + ' ').ljust(48, '.')}: ({min(of.values()):.2f}, {max(of.values()):.2f})" for name, of in parts.items()),
            ]
        lines = ["times across ranks (ms):"]
        for name, of in parts.items():
            lines.append(f"  {name}:")
            lines += [f"     rank {rank:2d}: {time:.2f}" for rank, time in of.items()]
        return lines

"""How a model is spread over the GPUs of a job, and how it is trained there."""

from __future__ import annotations

from dataclasses import field

from memdoctor.records import record

ITEM = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1}  # bytes of a number


@record
class Layout:
    """Parallel sizes and what else decides which tensors exist.

    ``micro_batch`` samples at a time on a GPU, ``microbatches`` of them in a step; None is unknown. ``dtype`` of weights and activations,
    ``grad_dtype`` of Megatron's gradient buffer. ``fused_attention``: True where the matrix of scores is never stored, None unknown.
    ``layers_of`` the layers of each pipeline chunk, in the order of the model (pp × vpp numbers; empty: an even split). ``parameters`` per rank as
    the log counts them, one of each stage; empty: they are computed. Buckets are in elements (ZeRO). ``framework`` megatron-lm, deepspeed
    or transformers: which of them runs the model's own code decides a few tensors.
    """

    framework: str = "megatron-lm"
    tp: int = 1
    pp: int = 1
    vpp: int = 1
    dp: int = 1
    cp: int = 1
    ep: int = 1
    etp: int = 1
    sequence_parallel: bool = False
    micro_batch: int | None = None
    microbatches: int | None = None
    dtype: str = "bf16"
    grad_dtype: str = "fp32"
    distributed_optimizer: bool = False
    zero: int = 0
    offload_optimizer: bool = False
    reduce_bucket: int = 500_000_000  # DeepSpeed's default, as the next two
    allgather_bucket: int = 500_000_000
    sub_group: int = 1_000_000_000
    recompute: str = ""  # "", selective or full
    fused_attention: bool | None = None
    fused_loss: bool = False
    fp32_residual: bool = False
    capacity_factor: float | None = None
    layers_of: tuple[int, ...] = ()
    parameters: tuple[int, ...] = field(default=())

    @property
    def world(self) -> int:
        return self.tp * self.pp * self.dp * self.cp

    @property
    def expert_dp(self) -> int:
        """Ranks that hold copies of one expert."""
        return max(1, self.world // (self.etp * self.ep * self.pp))

    @property
    def item(self) -> int:
        """Bytes of a weight or activation."""
        return ITEM[self.dtype]

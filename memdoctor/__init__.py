"""memdoctor: the doctor for large-model training jobs (Megatron-LM, DeepSpeed, PyTorch + NCCL)."""

__version__ = "0.1.0"

"""A job that hangs now: what its processes on this machine are doing, and what NCCL's own watch (RAS) knows of them."""

"""A tensor that exists in a job: its shape on one GPU, and how large the allocator makes it."""

from __future__ import annotations

import math

from memdoctor.records import record

BLOCK = 512  # PyTorch's caching allocator rounds every request up to this
LARGE = 10 * 1024**2  # and from here on asks the driver for multiples of SEGMENT (CUDACachingAllocator.cpp: kMinLargeAlloc, kRoundLarge)
SEGMENT = 2 * 1024**2
SMALL, MIDDLE = 2 * 1024**2, 20 * 1024**2  # smaller requests ask for a whole segment of these sizes, whatever their own

# Where in training a tensor is made; what a traceback's site can be compared with.
PLACES = ("output_layer", "attention", "layer", "weights", "gradients", "optimizer", "communication", "moe", "generation")


@record
class Tensor:
    """``name`` a slug, ``what`` the same for a person; ``shape`` on one GPU, ``item`` bytes of a number; ``where`` one of PLACES."""

    name: str
    what: str
    shape: tuple[int, ...]
    item: int
    where: str

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.item

    def __str__(self) -> str:
        return f"{' × '.join(str(size) for size in self.shape)} × {self.item} B: {self.what}"


def requested(size: int) -> int:
    """The bytes that PyTorch's allocator asks the driver for, and names when it fails, for a tensor of ``size`` bytes."""
    size = -(-size // BLOCK) * BLOCK
    if size <= 1024**2:
        return SMALL
    if size < LARGE:
        return MIDDLE
    return -(-size // SEGMENT) * SEGMENT

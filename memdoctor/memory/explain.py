"""Which tensor is it that found no room? A size is compared with the tensors that exist; where it fits none, that is the answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from memdoctor.memory.tensor import LARGE, MIDDLE, PLACES, Tensor, requested

MOST_NAMES = 2  # a size that fits more tensors than this tells nothing
ANYWHERE = tuple(place for place in PLACES if place != "generation")
LEAST_PLACED = 64 * 1024**2  # below it too many tensors of a layer have the same size, even where the place is known
LEAST = 256 * 1024**2  # the same where it is not known: what decides then must be large enough to be the only one of its size


def fits(tensor: Tensor, tried: int) -> bool:
    """True where an allocation of ``tensor`` would be reported as ``tried`` bytes (read back from a text with two decimals)."""
    if tensor.bytes < LARGE:
        return False  # reported as 2 or 20 MiB, whatever its size
    unit = next(unit for unit in (1024**3, 1024**2, 1024, 1) if tried >= unit or unit == 1)
    tolerance = 0.005 * unit + 1
    return any(abs(size - tried) <= tolerance for size in (requested(tensor.bytes), tensor.bytes))


def explain(tried: int, tensors: Iterable[Tensor], places: Collection[str] | None = None) -> tuple[Tensor, ...]:
    """The tensors that ``tried`` bytes were asked for: one, or two that have the same size; none where nothing fits or too much does.

    ``places``: where it can be (``Tensor.where``), None if that is not known.
    """
    if tried < (LEAST if places is None else LEAST_PLACED):
        return ()
    names: dict[str, Tensor] = {}
    for tensor in tensors:
        if tensor.where in (ANYWHERE if places is None else places) and fits(tensor, tried):
            names.setdefault(tensor.name, tensor)
    return tuple(names.values()) if len(names) <= MOST_NAMES else ()


def fits_none(tried: int, tensors: Iterable[Tensor], places: Collection[str] = PLACES) -> bool:
    """True where ``tried`` bytes are the size of none of the ``tensors`` that are made in ``places``.

    False where the size tells nothing: PyTorch asks for whole segments of ``MIDDLE`` and less for small tensors of any size.
    """
    return tried > MIDDLE and not any(tensor.where in places and fits(tensor, tried) for tensor in tensors)

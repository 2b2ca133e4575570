"""Allocation arithmetic: which tensor of this model, at this layout, has the size of the allocation that failed.

An OOM names the bytes it asked for. Where the log dumps its arguments, the sizes of all tensors are known, and an equal one names the
culprit better than any traceback. A size that fits none, or too many, stays unexplained: nothing is guessed. That it fits none is said, too: then
it is no tensor of the model as the arguments tell it (a workspace, a joined or padded copy, a batch of another size).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memdoctor import units
from memdoctor.derive.shapes import Shapes, shapes_of
from memdoctor.model import Fact

if TYPE_CHECKING:
    from memdoctor.memory.tensor import Tensor

_FORWARD = ("output_layer", "attention", "layer", "moe")
_STATES = ("weights", "gradients", "optimizer", "communication")
# What can be allocated where the exception was raised; sites that are not named here leave everything open.
_PLACES: Mapping[str, tuple[str, ...]] = {
    "output_layer": ("output_layer", "layer"),
    "loss": ("output_layer",),
    "attention": ("attention", "layer"),
    "forward": _FORWARD,
    "eval": (*_FORWARD, "generation"),
    "generate": (*_FORWARD, "generation"),
    "backward": (*_FORWARD, "weights", "gradients", "communication"),
    "optimizer_step": _STATES,
    "model_build": ("weights", "optimizer"),
    "weight_load": ("weights", "optimizer"),
    "ddp_init": _STATES,
    "ckpt_load": _STATES,
    "ckpt_save": _STATES,
}
_GATHERED = ("forward", "output_layer", "attention", "eval", "generate")  # where ZeRO-3 brings whole weights together


def name_allocations(facts: Sequence[Fact]) -> tuple[list[Fact], list[Fact]]:
    """``facts`` with each ``cuda.oom`` told which tensor it is (fields tensor, tensor_place, shape_text), and the facts ``allocation.match``.

    Where no tensor has the size, shape_text says so.
    """
    by_attempt: dict[int, tuple[Shapes, list[Tensor]] | None] = {}
    result, matches = [], []
    for fact in facts:
        tried = fact.fields.get("tried") if fact.kind == "cuda.oom" else None
        if tried is not None:
            if fact.attempt not in by_attempt:
                by_attempt[fact.attempt] = _tensors([other for other in facts if other.attempt <= fact.attempt])
            known = by_attempt[fact.attempt]
            if known is not None:
                from memdoctor.memory.explain import explain

                found = explain(tried, known[1], _places(fact.fields.get("site"), known[0]))
                told = _told(tried, found) if found else _unlike_all(tried, fact.fields.get("site"), *known)
                fact = replace(fact, fields={**fact.fields, **told})
                matches.append(_match(fact, tried, found))
        result.append(fact)
    return result, matches


def _tensors(facts: Sequence[Fact]) -> tuple[Shapes, list[Tensor]] | None:
    shapes = shapes_of(list(reversed(facts)))  # the newest dump counts
    if shapes is None or (shapes.model is None and not shapes.layout.zero):
        return None
    from memdoctor.memory.tensors import tensors  # of few logs the sizes are known

    return shapes, tensors(shapes.model, shapes.layout)


def _places(site: Any, shapes: Shapes) -> tuple[str, ...] | None:
    places = _PLACES.get(str(site))
    if places is not None and shapes.layout.zero == 3 and site in _GATHERED:
        return (*places, "weights")
    return places


def _told(tried: int, found: Sequence[Tensor]) -> dict[str, Any]:
    """The fields that the OOM gets where it is explained."""
    told: dict[str, Any] = {"shape_text": shape_text(tried, found)}
    if len(found) == 1:
        told["tensor"] = found[0].name
    if len({tensor.where for tensor in found}) == 1:
        told["tensor_place"] = found[0].where
    return told


def _unlike_all(tried: int, site: Any, shapes: Shapes, known: Sequence[Tensor]) -> dict[str, Any]:
    """The fields of one that is not: none where sizes are missing, and where the size tells nothing or fits too much."""
    from memdoctor.memory.explain import fits_none
    from memdoctor.memory.tensor import PLACES
    from memdoctor.memory.tensors import sizes_known

    model, places = shapes.model, _places(site, shapes)
    if model is None:
        return {}
    for where, said in ((PLACES, ""), (places, f" that are made there ({site})")):
        if where is not None and sizes_known(model, shapes.layout, where) and fits_none(tried, known, where):
            routed = "; what experts get depends on the router" if model.experts and "moe" in where else ""
            size = units.format_size(tried)
            return {"shape_text": f"the failing allocation of {size} fits none of the model's tensors{said} at this layout{routed}"}
    return {}


def shape_text(tried: int, found: Sequence[Tensor]) -> str:
    """``"15.66 GiB = 8192 × 4 × 128256 × 4 B: the logits in fp32"``."""
    return f"{units.format_size(tried)} = " + ", or ".join(str(tensor) for tensor in found)


def _match(fact: Fact, tried: int, found: Sequence[Tensor]) -> Fact:
    fields = {
        "explained": bool(found),
        "tried": tried,
        "text": shape_text(tried, found) if found else "unexplained: no tensor of this model at this layout has this size",
        **{key: value for key, value in fact.fields.items() if key in ("tensor", "tensor_place", "site", "iteration")},
    }
    if found:
        fields["tensors"] = tuple(tensor.name for tensor in found)
    return replace(fact, kind="allocation.match", fields=fields, event=f"allocation:{fact.event}")

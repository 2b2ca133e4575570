"""The model and the layout of a job, as far as its logs tell them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memdoctor.memory.layout import Layout
from memdoctor.memory.megatron import megatron_layout, megatron_model
from memdoctor.memory.model import Model
from memdoctor.model import Fact
from memdoctor.records import record

_FROM_WORLD = {
    "tp": "tensor_model_parallel_size",
    "pp": "pipeline_model_parallel_size",
    "cp": "context_parallel_size",
    "ep": "expert_model_parallel_size",
    "dp": "data_parallel_size",
    "world_size": "world_size",
}


@record
class Shapes:
    """``model`` is None where only the layout is known. ``values``: Megatron-LM's arguments, completed by other lines."""

    model: Model | None
    layout: Layout
    values: dict[str, str]


def shapes_of(facts: Sequence[Fact]) -> Shapes | None:
    """From the facts of one attempt; None where no arguments, no configuration and no sizes are told."""
    megatron, deepspeed = _dump(facts, "run.args", "megatron-lm"), _dump(facts, "run.args", "deepspeed")
    written, hugging_face = _dump(facts, "run.config", "deepspeed"), _dump(facts, "run.config", "transformers")
    if megatron or (_sizes_told(facts) and not (deepspeed or written or hugging_face)):
        _complete(megatron, facts)
    model, layout = megatron_model(megatron), megatron_layout(megatron) if megatron else None
    if model is None and hugging_face:
        from memdoctor.memory.hugging_face import hugging_face_model

        model = hugging_face_model(hugging_face, _told(facts, "seq"))
        layout = layout or (Layout(framework="transformers", micro_batch=_told(facts, "micro_batch")) if hugging_face else None)
    if deepspeed or written:
        from memdoctor.memory.deepspeed import deepspeed_layout, deepspeed_values

        layout = deepspeed_layout(deepspeed_values(deepspeed, written), layout)
    if layout is None:
        return None
    return Shapes(model, replace(layout, parameters=_parameters(facts, layout)), megatron)


def _dump(facts: Sequence[Fact], kind: str, name: str) -> dict[str, str]:
    for fact in facts:
        if fact.kind == kind and fact.fields.get("name") == name and fact.fields.get("values"):
            return {str(key): str(value) for key, value in fact.fields["values"].items()}
    return {}


def _complete(values: dict[str, str], facts: Sequence[Fact]) -> None:
    """Add what stands elsewhere: the padded vocabulary (the dump may come before the tokenizer) and the sizes line."""
    vocab = _told(facts, "padded_vocab")
    if vocab is not None and values.get("padded_vocab_size", "None") == "None":
        values["padded_vocab_size"] = str(vocab)
    for fact in facts:
        if fact.kind == "run.world":
            for field, name in _FROM_WORLD.items():
                if fact.fields.get(field) is not None and values.get(name, "None") == "None":
                    values[name] = str(fact.fields[field])


def _sizes_told(facts: Sequence[Fact]) -> bool:
    """Whether Megatron-LM's sizes line is there: it tells the layout where the dump was cut off."""
    return any(fact.kind == "run.world" and fact.fields.get("tp") and fact.fields.get("pp") for fact in facts)


def _told(facts: Sequence[Fact], name: str) -> int | None:
    found = (fact.fields.get(name) for fact in facts if fact.kind == "run.shape")
    return next((int(value) for value in found if value), None)


def _parameters(facts: Sequence[Fact], layout: Layout) -> tuple[int, ...]:
    """Parameters of each different rank, as the log counts them; a trainer's own count serves where all ranks hold the whole model."""
    counts = {fact.fields["parameters"] for fact in facts if fact.kind == "rank.parameters" and fact.fields.get("parameters")}
    whole = _told(facts, "parameters")
    if not counts and whole is not None and layout.framework == "transformers" and layout.tp == layout.pp == 1:
        counts = {whole}
    return tuple(sorted(counts))

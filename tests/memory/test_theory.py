"""The formulas against what the frameworks' own estimators print (outputs of the real functions, in tests/data)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memdoctor.memory import theory
from memdoctor.memory.megatron import megatron_layout, megatron_model

DATA = Path(__file__).parent.parent / "data"
MEGATRON: list[dict[str, Any]] = json.loads((DATA / "megatron_memory.json").read_text())
DEEPSPEED: dict[str, Any] = json.loads((DATA / "deepspeed_memory.json").read_text())


def read(row: dict[str, Any]) -> tuple[Any, Any]:
    values = {key: str(value) for key, value in row["args"].items()}
    values["global_batch_size"] = str(row["num_microbatches"] * row["args"]["micro_batch_size"] * row["args"]["data_parallel_size"])
    model = megatron_model(values)
    assert model is not None
    return model, megatron_layout(values)


@pytest.mark.parametrize("row", MEGATRON, ids=lambda row: row["name"])
def test_megatron_states(row: dict[str, Any]) -> None:
    assert theory.megatron_states(*read(row)) == pytest.approx(row["weight_optimizer_bytes"], rel=1e-9)


@pytest.mark.parametrize("row", MEGATRON, ids=lambda row: row["name"])
def test_megatron_activations(row: dict[str, Any]) -> None:
    assert theory.megatron_activations(*read(row)) == pytest.approx(row["activation_bytes"], rel=1e-9)


@pytest.mark.parametrize("row", DEEPSPEED["zero2"], ids=lambda row: f"{row['total_params'] / 1e9}B")
def test_zero2(row: dict[str, Any]) -> None:
    gpus = row["num_gpus_per_node"] * row["num_nodes"]
    assert theory.zero2(row["total_params"], gpus, offload=row["cpu_offload"]) == pytest.approx(row["gpu_bytes"], abs=1)


@pytest.mark.parametrize(
    "row", DEEPSPEED["zero3"], ids=lambda row: f"{row['total_params'] / 1e9}B-{row['cpu_offload']}-{row['cpu_offload_params']}"
)
def test_zero3(row: dict[str, Any]) -> None:
    found = theory.zero3(
        row["total_params"],
        row["largest_layer_params"],
        row["num_gpus_per_node"] * row["num_nodes"],
        offload_optimizer=row["cpu_offload"],
        offload_parameters=row["cpu_offload_params"],
    )
    assert found == pytest.approx(row["gpu_bytes"], abs=1)


@pytest.mark.parametrize("row", DEEPSPEED["zero_paper"], ids=lambda row: f"{row['Psi'] / 1e9}B-{row['Nd']}")
def test_zero_paper(row: dict[str, Any]) -> None:
    found = [theory.zero_paper(row["Psi"], row["Nd"], stage, row["K"]) / 1e9 for stage in range(4)]
    assert found == pytest.approx([row["baseline"], row["Pos"], row["PosG"], row["PosGP"]])


def test_a_layer_with_ffn_of_four_hidden_is_the_papers_34_bytes() -> None:
    model, layout = read(next(row for row in MEGATRON if "175b" in row["name"]))
    found = theory.layer_activations(model, layout)
    assert found == pytest.approx(34 * model.seq * layout.micro_batch * model.hidden / layout.tp)


def test_full_recomputation_keeps_the_inputs_only() -> None:
    model, layout = read(next(row for row in MEGATRON if "fullrecompute" in row["name"]))
    assert theory.layer_activations(model, layout) == 2 * model.seq * model.hidden / layout.tp


@pytest.mark.parametrize("function", [theory.megatron_states, theory.megatron_activations, theory.layer_activations])
def test_unknown_sizes_give_no_number(function: Any) -> None:
    model = megatron_model({"hidden_size": "4096"})
    assert model is not None
    assert function(model, megatron_layout({})) is None

"""The tables of what the frameworks take: each entry says only what the head of its file explains, and says it in full."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memdoctor.engine.load import load
from memdoctor.engine.schema import leaves
from memdoctor.resources import rules_dir
from memdoctor.tables import read

MEGATRON, FORK, TRAINER, CONFIG, LAUNCHERS = (
    read(str(rules_dir() / "tables" / f"{name}.yaml"))
    for name in ("megatron_flags", "megatron_deepspeed_flags", "transformers_flags", "deepspeed_config", "launcher_flags")
)
FIXTURES = Path(__file__).parent.parent / "fixtures"
WHEN = ("since", "gone", "ignored", "refused")
KEYS: dict[str, tuple[set[str], set[str]]] = {  # table -> types, further keys
    "megatron_flags": (
        {"switch", "int", "float", "text", "word", "truthy"},
        {"many", "values", "not_in", "now", "use", "still", "sets", "with", *WHEN},
    ),
    "megatron_deepspeed_flags": ({"switch", "int", "float", "text", "word", "truthy"}, {"many", "values", "sets"}),
    "transformers_flags": ({"flag", "int", "float", "text", "list", "json"}, {"negated", "now", "still", "since", "gone"}),
    "deepspeed_config": (
        {"section", "free", "int", "float", "flag", "text", "list", "word"},
        {"strict", "open", "values", "also", "now", "still", *WHEN},
    ),
    "launcher_flags": ({"switch", "int", "float", "text", "word", "optional"}, {"many", "values", "also", "since", "gone"}),
}


def entries() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Table, name, entry."""
    tables = {"megatron_flags": MEGATRON["flags"], "megatron_deepspeed_flags": FORK["flags"], "transformers_flags": TRAINER["flags"]}
    tables["deepspeed_config"] = CONFIG["keys"]
    for table, flags in tables.items():
        yield from ((table, name, entry) for name, entry in flags.items())
    for command in LAUNCHERS["commands"].values():
        yield from (("launcher_flags", name, entry) for name, entry in command["flags"].items())


ENTRIES = list(entries())


def version(text: str) -> tuple[int, ...]:
    """Raises ValueError where it is none."""
    return tuple(int(part) for part in text.split("."))


def test_keys_types_and_values() -> None:
    for table, name, entry in ENTRIES:
        types, more = KEYS[table]
        assert entry["type"] in types, (table, name)
        assert set(entry) <= {"type", *more}, (table, name)
        if entry["type"] == "word":
            assert entry["values"], (table, name)
        assert all(isinstance(value, str) for value in entry.get("values", ()) if entry["type"] == "word"), (table, name)
        assert entry.get("many") in (None, "*", "+", "?") or entry["many"] > 1, (table, name)


def test_names() -> None:
    flag, key = re.compile(r"--[A-Za-z][\w-]*|-[A-Za-z]"), re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)*")
    for table, name, entry in ENTRIES:
        assert (key if table == "deepspeed_config" else flag).fullmatch(name), (table, name)
        for other in entry.get("also", ()) if isinstance(entry.get("also"), list) else ():
            assert flag.fullmatch(other), (table, name)


@pytest.mark.parametrize(("table", "data"), [("megatron_flags", MEGATRON), ("transformers_flags", TRAINER)])
def test_releases_are_in_order_and_entries_name_them(table: str, data: dict[str, Any]) -> None:
    place = {release: number for number, release in enumerate(data["releases"])}
    assert all(isinstance(release, str) for release in place)
    for name, entry in data["flags"].items():
        told = [entry[each] for each in ("since", "gone") if each in entry]
        assert set(told) | set(entry.get("not_in", ())) <= place.keys(), name
        assert [place[each] for each in told] == sorted({place[each] for each in told}), name
        assert {entry.get(each, data["releases"][-1]) for each in ("ignored", "refused")} <= place.keys(), name


def test_versions_of_deepspeed_are_in_order() -> None:
    for table, name, entry in ENTRIES:
        if table in ("deepspeed_config", "launcher_flags"):
            told = [version(entry[each]) for each in ("since", "gone") if each in entry]
            assert told == sorted(set(told)), name
            assert all(version(entry.get(each, "0.1.0")) for each in ("ignored", "refused")), name


def test_what_took_its_place_exists_and_is_no_such_thing_itself() -> None:
    tables = {"megatron_flags": MEGATRON["flags"], "transformers_flags": TRAINER["flags"], "deepspeed_config": CONFIG["keys"]}
    for table, name, entry in ENTRIES:
        if "now" in entry:
            other = tables[table][entry["now"]]
            assert not {"now", "gone"} & set(other), (table, name)
        if "use" in entry:
            assert re.findall(r"--[\w-]+", entry["use"])[0] == entry["now"], (table, name)
            assert set(re.findall(r"--[\w-]+", entry["use"])) <= MEGATRON["flags"].keys(), (table, name)
        assert not {"still", "ignored", "refused"} & set(entry) or "gone" not in entry or "now" in entry or "ignored" in entry, (
            table,
            name,
        )


def test_the_section_of_a_key_is_there() -> None:
    keys = CONFIG["keys"]
    for name, entry in keys.items():
        section = name.rpartition(".")[0]
        if section:
            assert keys[section]["type"] == "section", name
            assert version(entry.get("since", "0.1.0")) >= version(keys[section].get("since", "0.1.0")), name
            also = entry.get("also")
            assert also is None or f"{section}.{also}" not in keys, name


def test_the_base_of_the_fork_is_a_release() -> None:
    assert FORK["base"] in MEGATRON["releases"]


def test_facts_that_other_places_rest_on() -> None:
    """Read in the sources by hand, release by release."""
    flags = MEGATRON["flags"]
    assert len([1 for entry in flags.values() if "gone" not in entry]) > 850
    assert flags["--override-opt-param-scheduler"]["since"] == "0.15"
    assert flags["--recompute-granularity"] == {"type": "word", "values": ["full", "selective"], "since": "0.1"}
    assert flags["--batch-size"]["refused"] == "v2.0"
    assert flags["--use-flash-attn"]["ignored"] == "0.18"
    assert "--gradient-clipping" not in flags
    assert "--num_gpus" in LAUNCHERS["commands"]["deepspeed"]["flags"]
    assert "--nproc_per_node" in LAUNCHERS["commands"]["torchrun"]["flags"]["--nproc-per-node"]["also"]
    keys = CONFIG["keys"]
    assert keys["zero_optimization"]["strict"] is True
    assert keys["amp"]["refused"] == "0.19.8"
    assert TRAINER["flags"]["--evaluation_strategy"]["now"] == "--eval_strategy"


# Made of other arguments after they were parsed.
COMPUTED = {
    "_is_global_batch_size_explicitly_specified",
    "consumed_train_samples",
    "consumed_valid_samples",
    "data_parallel_size",
    "rank",
    "world_size",
}
COMPUTED |= {
    "expert_gtp_weight_remat_size",
    "gtp_weight_remat_size",
    "params_dtype",
    "skipped_train_samples",
    "transformer_pipeline_model_parallel_size",
}
COMPUTED |= {"use_dist_ckpt", "use_layer_wise_distributed_optimizer", "variable_seq_lengths", "virtual_pipeline_model_parallel_size"}


@pytest.mark.parametrize("log", sorted((FIXTURES / "genuine" / "megatron").glob("*.log")), ids=lambda log: log.stem)
def test_what_a_real_run_printed_is_in_the_table(log: Path) -> None:
    """The arguments that Megatron-LM lists at its start, of a run of the newest release."""
    told = re.search(r"-{10,} arguments -{10,}\n(.*?)-{10,} end of arguments", log.read_text(errors="replace"), re.DOTALL)
    if told is None:
        pytest.skip("it prints no arguments")
    printed = set(re.findall(r"^(?:\[[^\]]*\]:?)? +(\w+) (?:\.+ | )", told[1], re.MULTILINE))
    names = {entry.get("sets", name.lstrip("-").replace("-", "_")) for name, entry in MEGATRON["flags"].items()}
    assert len(printed) > 40
    assert printed - names - COMPUTED == set()


def test_what_a_rule_calls_foreign_was_never_there() -> None:
    rule = next(rule for rule in load([rules_dir()]).rules if rule.id == "config/foreign_flag")
    keys = {key for leaf in leaves(rule.when) for test in leaf.where if test.field == "key" for key in test.value}
    assert len(keys) > 8
    assert keys & MEGATRON["flags"].keys() == set()

"""What sound files become: types, units, user packs, and the built-in base itself."""

from __future__ import annotations

import textwrap
import time
from pathlib import Path

import pytest

from memdoctor import resources
from memdoctor.engine.load import load, load_rules, load_signals, main, read
from memdoctor.engine.schema import AllOf, AnyOf, Comparison, Count, Explains, Leaf, NoneOf, Rule, first_leaves, leaves
from memdoctor.errors import InputError

BASE = Path(__file__).parents[2] / "fixtures" / "bad_rules" / "base"
HEAD = """
cause: oom.logits
title: A title
status: draft
severity: note
confidence: likely
message: A message
why: A reason.
action: none
"""


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))


def rule(folder: Path, when: str, extra: str = "") -> Rule:
    write(folder, "area/slug.yaml", f"id: area/slug{HEAD}when:\n{textwrap.indent(textwrap.dedent(when), '  ')}\n{textwrap.dedent(extra)}")
    found = read([BASE, folder])
    assert [str(error) for error in found.errors] == []
    return next(rule for rule in found.rules if rule.id == "area/slug")


def test_the_built_in_base_is_sound() -> None:
    found = read([resources.rules_dir()], thorough=True)
    assert [str(error) for error in found.errors] == []
    assert found.signals


def test_reading_the_built_in_base_is_cheap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "absent"))
    start = time.process_time()
    read([resources.rules_dir()])
    assert time.process_time() - start < 1.0  # about 0.1 s; it is part of every start without a cache


def test_a_rule_has_all_its_parts() -> None:
    (found,) = load_rules([BASE])
    assert (found.id, found.cause, found.status, found.severity, found.confidence, found.action) == (
        "oom/activations", "oom.activations", "stable", "error", "likely", "fix-config",
    )  # fmt: skip
    assert found.when == AllOf((Leaf("cuda.oom", (Comparison("name", "eq", "torch"), Comparison("tried", "ge", 1 << 30, type="bytes"))),))
    assert found.applies == {"torch": ">=1.4"}
    assert found.explains == (Explains("hang.*", "job", 2400.0),)
    assert (found.fixes[0].id, found.fixes[0].risk, found.fixes[0].command) == ("lower-micro-batch", "safe", "--micro-batch-size 1")
    assert found.message == "GPU {gpu} has no room for {tried}[, {free} free]"


def test_a_signal_has_all_its_parts() -> None:
    (found,) = load_signals([BASE])
    assert (found.id, found.fact, found.set, found.block) == ("cuda_oom.torch", "cuda.oom", {"name": "torch"}, False)
    assert found.has == ("out of memory. Tried to allocate",)
    assert found.more == (r"GPU (?P<gpu>\d+)",)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("{tried: 2 GiB}", Comparison("tried", "eq", 2 << 30, type="bytes")),
        ("{tried: 0}", Comparison("tried", "eq", 0, type="bytes")),
        ("{gpu: {in: [0, 1]}}", Comparison("gpu", "in", (0, 1), type="int")),
        ("{unused_over_tried: {ge: 1}}", Comparison("unused_over_tried", "ge", 1.0, type="float")),
        ("{backend: {has: [a, 'on']}}", Comparison("backend", "has", ("a", "on"))),
        ("{backend: no}", Comparison("backend", "eq", "no")),
        ("{backend: 1.10}", Comparison("backend", "eq", "1.10")),
        ("{tried: {exists: false}}", Comparison("tried", "exists", False, type="bytes")),
        ("{site: {in: [loss, output_layer]}}", Comparison("site", "in", ("loss", "output_layer"))),
        ("{iteration: {gt: 0}}", Comparison("iteration", "gt", 0, type="int")),
        ("{tried: {gt: $first.free}}", Comparison("tried", "gt", None, "free", "bytes")),
        ("{other_pids: {has: '12'}}", Comparison("other_pids", "has", ("12",), type="list")),
    ],
)
def test_values_are_read_by_the_type_of_their_field(where: str, expected: Comparison, tmp_path: Path) -> None:
    found = rule(tmp_path, f"fact: cuda.oom\nwhere: {where}")
    assert found.when == Leaf("cuda.oom", (expected,))


def test_times_and_entries_of_dumped_maps(tmp_path: Path) -> None:
    found = rule(
        tmp_path,
        """
        all:
          - {fact: watchdog.timeout, where: {limit: {le: 10 min}}}
          - {fact: run.args, where: {values.fp16: true, values.lr: {gt: 1e-3}}}
        """,
    )
    assert leaves(found.when)[0].where == (Comparison("limit", "le", 600.0, type="ms"),)
    assert leaves(found.when)[1].where == (
        Comparison("values.fp16", "eq", "true", type="any"),
        Comparison("values.lr", "gt", "1e-3", type="any"),
    )


def test_conditions_nest(tmp_path: Path) -> None:
    found = rule(
        tmp_path,
        """
        all:
          - any:
              - {fact: cuda.oom, confidence: certain}
              - all: [{fact: host.oom, same: [rank, host], count: {ge: 3, distinct: rank, within: 10 min}}]
                confidence: possible
          - none: [{fact: numeric.bad}]
        """,
    )
    oom = Leaf("cuda.oom", confidence="certain")
    host = Leaf("host.oom", same=("rank", "host"), count=Count(3, "rank", 600.0))
    assert found.when == AllOf((AnyOf((oom, AllOf((host,), "possible"))), NoneOf((Leaf("numeric.bad"),))))
    assert first_leaves(found.when) == [oom, host]


def test_about_chooses_the_event(tmp_path: Path) -> None:
    found = rule(tmp_path, "all: [{fact: run.version}, {fact: cuda.oom}]", "about: cuda.oom")
    assert [leaf.fact for leaf in first_leaves(found.when, found.about)] == ["cuda.oom"]
    assert [leaf.fact for leaf in first_leaves(found.when)] == ["run.version"]


def test_a_pack_may_name_what_the_base_holds_and_bring_its_own(tmp_path: Path) -> None:
    write(
        tmp_path,
        "signals/ours.yaml",
        """
        - id: ours.disk
          fact: file.error
          has: our disk
          match: 'our disk (?P<path>\\S+)'
          set: {name: worn}
          sample: our disk sda
        """,
    )
    found = rule(
        tmp_path, "all: [{fact: file.error, where: {name: worn}}, {fact: cuda.oom, where: {name: torch}}]", "over: [oom/activations]"
    )
    assert found.over == ("oom/activations",)
    assert [signal.id for signal in load_signals([BASE, tmp_path])] == ["cuda_oom.torch", "ours.disk"]


def test_over_may_name_whole_areas(tmp_path: Path) -> None:
    found = rule(tmp_path, "fact: cuda.oom", "over: [area/*, oom/activations, nothing/*]")
    assert found.over == ("area/*", "oom/activations", "nothing/*")


@pytest.mark.parametrize(
    "when",
    [
        "any: [{all: [{fact: nccl.warn}, {fact: rank.place, where: {bus_id: $first.bus_id}}]}, {fact: cuda.oom}]",
        "all: [{any: [{fact: cuda.oom}, {fact: watchdog.timeout}]}, {fact: collective.mismatch, where: {seq: $first.seq}}]",
        "all: [{none: [{fact: xid, where: {bus_id: $first.bus_id}}]}, {fact: gpu.error}]",
    ],
)
def test_a_reference_is_checked_against_the_event_of_its_own_branch(when: str, tmp_path: Path) -> None:
    rule(tmp_path, when)


def test_names_that_only_code_makes_are_not_asked_of_signals(tmp_path: Path) -> None:
    rule(tmp_path, "any: [{fact: run.ended, where: {status: failed}}, {fact: gpu.state, where: {name: ecc_pending}}]")


def test_files_that_are_no_rules_are_left_alone(tmp_path: Path) -> None:
    for name in (".git/config.yaml", "area/.slug.yaml", "README.md", "area/notes.txt"):
        write(tmp_path, name, "not: [a rule")
    rule(tmp_path, "fact: cuda.oom")


def test_a_fault_in_one_rule_is_not_told_again_by_a_rule_that_is_over_it(tmp_path: Path) -> None:
    write(tmp_path, "area/broken.yaml", f"id: area/broken{HEAD}when: {{fact: nothing}}\n")
    write(tmp_path, "area/slug.yaml", f"id: area/slug{HEAD}when: {{fact: cuda.oom}}\nover: [area/broken]\n")
    assert [error.path.rpartition("/")[2] for error in read([BASE, tmp_path]).errors] == ["broken.yaml"]


def test_a_folder_without_rules_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no rules in it"):
        load([BASE, tmp_path])
    with pytest.raises(InputError, match="no such folder"):
        load([BASE, tmp_path / "absent"])


def test_the_command_counts_what_is_sound(capsys: pytest.CaptureFixture[str]) -> None:
    code = main([])
    out = capsys.readouterr().out.splitlines()
    assert " signals, " in out[-1]
    assert code == (2 if "faults" in out[-1] else 0)


def test_a_pattern_that_hangs_on_its_sample_is_refused(tmp_path: Path) -> None:
    write(
        tmp_path,
        "signals/slow.yaml",
        f"""
        - id: slow.one
          fact: error.line
          has: aaaa
          match: '(?P<text>(?:a|aa|a.a?)+(?:a|ab)+(?:a|a{{2}})+)!'
          sample: {"a" * 200}
        """,
    )
    (error,) = read([BASE, tmp_path]).errors[:1]
    assert "takes longer than" in error.problem

"""Findings about machines: one diagnosis for each subject, the worst first, nothing explained by anything; fixes that name what they fix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from memdoctor.engine.diagnose import fill
from memdoctor.engine.judge import judge
from memdoctor.engine.schema import Comparison, Leaf, Rule
from memdoctor.engine.survey import survey
from memdoctor.model import Fact, Fix, Origin


def rule(id_: str, kind: str, where: tuple[Comparison, ...] = (), **more: Any) -> Rule:
    given: dict[str, Any] = {
        "cause": "env.variable", "title": "t", "status": "stable", "severity": "warning", "confidence": "likely", "message": "m", "why": "w", "action": "fix-config", **more,
    }  # fmt: skip
    return Rule(id=id_, when=Leaf(kind, where), **given)


def fact(kind: str, number: int, host: str = "a", **fields: Any) -> Fact:
    return Fact(kind, fields, Origin("probe.gpu", f"GPU {number}", None, f"GPU {number}"), host=host, seq=number)


def found(rules: list[Rule], facts: list[Fact]) -> Any:
    return survey(judge(rules, facts, sources=frozenset({"probe"})).findings)


def test_one_diagnosis_for_each_subject() -> None:
    rules = [rule("env/x", "env.variable", message="{variable}={value}")]
    facts = [fact("env.variable", number, variable=name, value="1", name="unknown") for number, name in enumerate(["A", "B", "A"])]
    related, _ = found(rules, facts)
    assert [(each.message, each.count) for each in related.diagnoses] == [("A=1", 2), ("B=1", 1)]


def test_facts_without_a_subject_are_told_together() -> None:
    rules = [rule("gpu/x", "gpu.device", message="GPU {gpus}[ of {host}]")]
    related, _ = found(rules, [fact("gpu.device", number, gpu=number) for number in (5, 1, 0, 2)])
    (only,) = related.diagnoses
    assert (only.message, only.hosts) == ("GPU 0-2, 5 of a", ("a",))


def test_the_worst_comes_first_and_explains_nothing() -> None:
    rules = [
        rule("a/note", "host.shm", severity="note", cause="oom.shared_memory"),
        rule("b/warning", "host.memory", cause="oom.host"),
        rule("c/error", "gpu.device", severity="error", cause="gpu.ecc", action="call-hardware", confidence="certain"),
        rule("d/error", "net.address", severity="error", cause="hang.rendezvous"),
    ]
    facts = [fact("host.shm", 0), fact("host.memory", 1), fact("gpu.device", 2, host="b"), fact("net.address", 3)]
    related, sources = found(rules, facts)
    assert [each.rule for each in related.diagnoses] == ["c/error", "d/error", "b/warning", "a/note"]
    assert (related.root_cause, related.confidence, related.action) == ("gpu.ecc", "certain", "call-hardware")
    assert related.hosts_to_exclude == ("b",)
    assert related.incidents == ()
    assert all(each.explained_by is None for each in related.diagnoses)
    assert sources == {f"d{number}": frozenset({"probe.gpu"}) for number in (1, 2, 3, 4)}


def test_notes_are_no_root_cause() -> None:
    related, _ = found([rule("a/note", "host.shm", severity="note", cause="oom.shared_memory")], [fact("host.shm", 0)])
    assert (related.root_cause, len(related.diagnoses)) == (None, 1)


@pytest.mark.parametrize(
    ("fields", "command", "filled"),
    [
        ([{"gpu": 3}], "nvidia-smi -i <gpu> -r", "nvidia-smi -i 3 -r"),
        ([{"gpu": 3}, {"gpu": 5}, {"gpu": 3}], "nvidia-smi -i <gpu> -r", "nvidia-smi -i 3,5 -r"),
        ([{"power_default": 700.0}], "nvidia-smi -pl <power_default>", "nvidia-smi -pl 700"),
        ([{}], "kill <of_pid>", "kill <of_pid>"),
        ([{"path": "/a b/lock"}], "rm <path>", "rm <path>"),  # not harmless in a shell
        ([{"path": "/tmp/x;reboot"}], "rm <path>", "rm <path>"),
        ([{"path": "-rf"}], "rm <path>", "rm <path>"),
        ([{"path": "$(reboot)"}], "rm <path>", "rm <path>"),
        ([{"path": "/home/ann/.cache/x_y-1/lock"}], "rm <path>", "rm /home/ann/.cache/x_y-1/lock"),
        ([{"mig": True}], "x <mig>", "x <mig>"),
    ],
)
def test_fixes_name_what_they_fix(fields: list[Mapping[str, Any]], command: str, filled: str) -> None:
    facts = [Fact("gpu.device", each, Origin("probe.gpu")) for each in fields]
    fix = fill(Fix("x", "Do it.", command=command, config=None), facts)
    assert (fix.command, fix.config, fix.do) == (filled, None, "Do it.")


@pytest.mark.parametrize(
    ("fields", "command", "filled"),
    [
        ([{"variable": "NCCL_DEBUG", "meant": "INFO"}], "export <variable>=<meant>", "export NCCL_DEBUG=INFO"),
        ([{"variable": "NCCL_DEBUG"}], "export <variable>=<meant>", None),  # nothing to paste
        ([{"variable": "A", "value": "3"}, {"variable": "A", "value": "1"}], "export <variable>=<value>", "export A=<value>"),
        ([{"variable": "NCCL_DEBUG"}], "unset <variable>; ls <package>", "unset NCCL_DEBUG; ls <package>"),
    ],
)
def test_a_command_without_its_value_is_none(fields: list[Mapping[str, Any]], command: str, filled: str | None) -> None:
    facts = [Fact("env.variable", each, Origin("probe.variables")) for each in fields]
    assert fill(Fix("x", "Do it.", command=command, config=None), facts).command == filled


def test_a_fix_that_loses_its_command_gives_way() -> None:
    from memdoctor.engine.diagnose import fill_all

    fixes = [Fix("env", "a", command="unset <env_variable>", config=None), Fix("file", "b", command="grep -n = <file>", config=None)]
    for field, ids in (("env_variable", ["env"]), ("file", ["file"]), ("other", ["env"])):
        filled = fill_all(fixes, [Fact("env.variable", {"variable": "X", field: "X"}, Origin("probe.variables"))])
        assert [fix.id for fix in filled] == ids
        assert (filled[0].command is None) is (field == "other")

"""A run beside one that worked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memdoctor.derive.baseline import compare
from memdoctor.derive.series import Rows
from memdoctor.model import Fact, Origin, Run
from memdoctor.pipeline import diagnose_logs
from tests.made_runs.make import make


@dataclass
class Story:
    facts: tuple[Fact, ...] = ()
    run: Run = Run()  # noqa: RUF009
    series: Rows = Rows(())  # noqa: RUF009


def story(versions: dict[str, str], args: dict[str, str], *facts: tuple[str, dict[str, Any]]) -> Story:
    return Story(tuple(Fact(kind, fields, Origin("log")) for kind, fields in facts), Run(versions=versions, args=args))


def test_what_differs_comes_first_and_noise_not_at_all() -> None:
    good = story(
        {"torch": "2.4.0", "nccl": "2.20.5"},
        {"lr": "1e-4", "save": "/a", "tensorboard_dir": "/t", "seq_length": "4096", "only_good": "1"},
        ("run.world", {"world_size": 64, "tp": 4}),
        ("nccl.info", {"variable": "NCCL_IB_HCA", "value": "mlx5"}),
    )
    this = story(
        {"torch": "2.6.0", "nccl": "2.20.5"},
        {"lr": "3e-4", "save": "/b", "tensorboard_dir": "/u", "seq_length": "4096"},
        ("run.world", {"world_size": 32, "tp": 4}),
        ("nccl.info", {"variable": "NCCL_IB_HCA", "value": "eth0"}),
    )
    found = compare(good, this)
    assert [(each["kind"], each["name"], each["good"], each["this"]) for each in found["differences"]] == [
        ("version", "torch", "2.4.0", "2.6.0"),
        ("layout", "world_size", 64, 32),
        ("variable", "NCCL_IB_HCA", "mlx5", "eth0"),
        ("argument", "lr", "1e-4", "3e-4"),
        ("argument", "only_good", "1", None),
    ]
    assert found["equal"] == {"version": 1, "layout": 1, "variable": 0, "argument": 1}
    assert found["measured"] == {}


def test_arguments_that_decide_memory_speed_or_loss_come_before_the_others() -> None:
    names = ["adlr_autoresume", "eval_iters", "log_interval", "micro_batch_size", "recompute_granularity", "zero_optimization.stage"]
    found = compare(story({}, dict.fromkeys(names, "1")), story({}, dict.fromkeys(names, "2")))["differences"]
    assert [each["name"] for each in found] == [*names[3:], *names[:3]]


def test_a_log_that_tells_nothing_of_a_kind_does_not_differ_in_it() -> None:
    assert compare(story({"torch": "2.4.0"}, {"lr": "1"}), story({}, {}))["differences"] == []


def test_numbers_of_both_runs(tmp_path: Path) -> None:
    paths = {}
    for event in ("healthy", "slower"):
        run = make(event, "megatron", 10, 7)
        paths[event] = tmp_path / f"{event}.log"
        paths[event].write_text(run.text)
    report = diagnose_logs([str(paths["slower"])], baseline=[str(paths["healthy"])])
    found = report.baseline
    assert found["inputs"] == [str(paths["healthy"])]
    assert set(found["measured"]) >= {"step_time", "loss"}
    told = {each["kind"] for each in found["differences"]}
    for name, each in found["measured"].items():
        assert each["ratio"] == each["this"] / each["good"]
        assert (name in told) is (abs(each["ratio"] - 1) > (0.02 if name == "loss" else 0.05))
    same = diagnose_logs([str(paths["healthy"])], baseline=[str(paths["healthy"])]).baseline
    assert same["differences"] == []
    assert diagnose_logs([str(paths["healthy"])]).baseline == {}

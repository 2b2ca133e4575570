"""The dumps under fixtures/hang/dump_*: what fires each rule and what nearly does. ``python -m tests.flight.stories`` writes them anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.flight.small import Small, warm

FIXTURES = Path(__file__).parent.parent.parent / "fixtures" / "hang"
ALL, EIGHT = (0, 1, 2, 3), tuple(range(8))
Stories = dict[str, Callable[[Path], object]]


def _fine() -> Small:
    return warm(Small())


def _never() -> Small:
    """Rank 2 does not come to the sum of its data group; rank 0 waits for it there, 1 and 3 are one call further and wait for both."""
    small = (
        _fine()
        .call(0, "3", "_reduce_scatter_base", 1024, state="started", at=5, line=31)
        .call((1, 3), "4", "_reduce_scatter_base", 1024, at=5, line=31)
    )
    return small.call((1, 3), "0", state="started", at=5.1, line=40)


def _late(seconds: float) -> Small:
    return _fine().call((0, 1, 3), "0", state="started", at=5, line=40).call(2, "0", state="started", at=5 + seconds, line=40)


def _stuck() -> Small:
    return _fine().call(ALL, "0", state="started", at=5, line=40)


def _differ(op: str = "all_reduce", size: int | list[int] = 8, dtype: str = "Float") -> Small:
    return _fine().call((0, 2, 3), "0", state="started", at=5, line=40).call(1, "0", op, size, dtype=dtype, state="started", at=5, line=44)


def _order(swapped: bool) -> Small:
    small = _fine()
    for rank in ALL:
        calls = [("all_reduce", 8, 40), ("broadcast", 8, 41)]
        for place, (op, size, line) in enumerate(calls[::-1] if rank == 3 and swapped else calls):
            small.call(rank, "0", op, size, state="started" if place == 0 else "scheduled", at=5 + place / 100, line=line)
    return small


def _cycle(closed: bool) -> Small:
    """Ranks 0 and 1: one is in the sum over all and waits for the other, which is in that of their tensor group. Open: rank 1 is in none."""
    small = _fine().call((0, 2, 3), "0", state="started", at=5, line=40)
    return small.call(1, "1", state="started", at=5, line=31) if closed else small


def _extra(who: tuple[int, ...]) -> Small:
    groups = {"0": ("default_pg", EIGHT)}
    return Small(groups).call(EIGHT, "0", at=0).call(EIGHT, "0", at=1).call(who, "0", state="started", at=5, line=77)


def _message(received: int | None) -> Small:
    small = (
        _fine()
        .message(0, "5", "0->1", 16, at=4)
        .message(1, "5", "1<-0", 16, at=4)
        .message(1, "5", "1->2", 16, state="started", at=5, line=50)
    )
    return small if received is None else small.message(2, "5", "2<-1", received, state="started", at=5, line=51)


def _not_started(timed: bool) -> Small:
    small = warm(Small(timed=timed)).call((0, 1, 2), "0", state="started" if timed else "scheduled", at=5, line=40)
    return small.call(3, "0", state="scheduled", at=5, line=40)


def _numbered(default: bool) -> Small:
    """The dumps of an old torch, which name groups by the rank's own number only."""
    small = _fine().call((0, 1, 3), "0", state="started", at=5, line=40)
    if not default:
        small = _fine().call(0, "1", state="started", at=5).call(2, "3", state="started", at=5).call(3, "2", state="started", at=5)
        small.call(1, "4", state="started", at=5)
    for entries in small.entries.values():
        for entry in entries:
            del entry["process_group"]
    return small


def _old(small: Small) -> Callable[[Path], object]:
    def write(folder: Path) -> None:
        import pickle

        folder.mkdir(parents=True, exist_ok=True)
        for rank in small.ranks:
            (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps({"version": "1.5", "entries": small.entries[rank]}, protocol=2))

    return write


STORIES: dict[str, Stories] = {
    "dump_missing": {"fires": _never().write, "quiet": _fine().write},
    "dump_late": {"fires": _late(560).write, "quiet": _late(20).write},
    "dump_unseen": {"fires": lambda folder: _never().write(folder, 2), "quiet": lambda folder: _never().write(folder, 3)},
    "dump_unseen_late": {
        "fires": lambda folder: _stuck_without(2).write(folder, 2), "quiet": lambda folder: _stuck_without(2).write(folder, as_json=True),
    },
    "dump_rank_died": {"fires": lambda folder: _never().write(folder, 2), "quiet": _never().write},
    "dump_mismatch": {
        "size": _differ(size=6).write, "type": _differ(op="broadcast").write, "dtype": _differ(dtype="Half").write,
        "quiet": _differ(size=[2, 4]).write,
    },
    "dump_order": {"fires": _order(True).write, "quiet": _order(False).write},
    "dump_cycle": {"fires": _cycle(True).write, "quiet": _cycle(False).write},
    "dump_extra": {"fires": _extra((5,)).write, "quiet": _extra((0, 1, 2, 3, 4, 6, 7)).write},
    "dump_message": {"fires": _message(32).write, "quiet": _message(None).write},
    "dump_stuck": {"fires": _stuck().write, "quiet": _fine().write},
    "dump_stuck_network": {"fires": lambda folder: _stuck().write(folder, as_json=True), "quiet": lambda folder: _never().write(folder, as_json=True)},
    "dump_not_started": {"fires": _not_started(True).write, "quiet": _not_started(False).write},
    "dump_undecided": {"fires": _old(_numbered(False)), "quiet": _old(_numbered(True))},
}  # fmt: skip


def _stuck_without(rank: int) -> Small:
    """All but ``rank`` are in a sum over all."""
    return _fine().call(tuple(other for other in ALL if other != rank), "0", state="started", at=5, line=40)


def write(base: Path) -> None:
    for rule, stories in STORIES.items():
        for name, story in stories.items():
            story(base / rule / name)


if __name__ == "__main__":
    write(FIXTURES)

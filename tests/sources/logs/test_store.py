"""Facts stay bounded, counts stay exact, and the rare one gets in however many common ones came before."""

from __future__ import annotations

from memdoctor.model import Fact, Origin
from memdoctor.sources.logs.store import ALL, FIRST, LAST, Store


def fact(seq: int, kind: str = "exception", name: str = "", rank: int | None = None) -> Fact:
    return Fact(kind, {"name": name} if name else {}, Origin("log"), rank=rank, seq=seq)


def test_keeps_the_first_and_the_last_of_a_key_and_counts_all() -> None:
    store = Store()
    for seq in range(1000):
        store.add(fact(seq))
    kept = [item.seq for item in store]
    assert kept == [*range(FIRST), *range(1000 - LAST, 1000)]
    assert store.counts[("exception", "", None, 1)] == 1000


def test_a_single_oom_after_a_flood_of_timeouts_is_kept() -> None:
    store = Store()
    for seq in range(200_000):
        store.add(fact(seq, "watchdog.timeout", f"t{seq % 20}", rank=seq % 16_384))
    store.add(fact(200_000, "cuda.oom", "torch", rank=7))
    kept = list(store)
    assert kept[-1].kind == "cuda.oom"
    assert len(kept) <= ALL + 64 * 20
    assert sum(store.counts.values()) == 200_001


def test_counting_without_keeping() -> None:
    store = Store()
    assert store.wants("xid", "", 0, 1)
    store.count("xid", "", 0, 1)
    assert store.counts[("xid", "", 0, 1)] == 1
    assert list(store) == []

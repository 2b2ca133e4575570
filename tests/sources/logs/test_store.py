"""Facts stay bounded, counts stay exact, and the rare one gets in however many common ones came before."""

from __future__ import annotations

from functools import partial

from memdoctor.model import Fact, Origin
from memdoctor.sources.logs.store import ALL, FIRST, LAST, Store


def fact(seq: int, kind: str = "exception", name: str = "", rank: int | None = None) -> Fact:
    return Fact(kind, {"name": name} if name else {}, Origin("log"), rank=rank, seq=seq)


def offer(store: Store, item: Fact) -> None:
    store.offer((item.kind, str(item.fields.get("name", "")), item.rank, item.attempt), None, lambda: item)


def test_keeps_the_first_and_the_last_of_a_key_and_counts_all() -> None:
    store = Store()
    for seq in range(1000):
        offer(store, fact(seq))
    kept = [item.seq for item in store]
    assert kept == [*range(FIRST), *range(1000 - LAST, 1000)]
    assert store.counts[("exception", "", None, 1)] == 1000


def test_a_single_oom_after_a_flood_of_timeouts_is_kept() -> None:
    store = Store()
    for seq in range(200_000):
        offer(store, fact(seq, "watchdog.timeout", f"t{seq % 20}", rank=seq % 16_384))
    offer(store, fact(200_000, "cuda.oom", "torch", rank=7))
    kept = list(store)
    assert kept[-1].kind == "cuda.oom"
    assert len(kept) <= ALL + 64 * 20
    assert sum(store.counts.values()) == 200_001


def test_a_fact_between_the_first_and_the_last_is_never_built() -> None:
    store = Store()
    built: list[int] = []

    def build(seq: int) -> Fact:
        built.append(seq)
        return fact(seq)

    for seq in range(1000):
        store.offer(("exception", "", None, 1), None, partial(build, seq))
    assert len(list(store)) == FIRST + LAST
    assert sorted(built) == [*range(FIRST), *range(1000 - LAST, 1000)]


def test_processes_without_a_rank_do_not_crowd_each_other_out() -> None:
    store = Store()
    for seq in range(1000):
        store.offer(("exception", "", None, 1), seq % 2, partial(fact, seq))
    assert len(list(store)) == 2 * (FIRST + LAST)
    assert store.counts == {("exception", "", None, 1): 1000}

"""What is read from a log is the same whichever matcher looks through it, from the first chunk to the last, sampled or not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memdoctor.engine.load import load
from memdoctor.errors import InputError
from memdoctor.model import Signal
from memdoctor.resources import rules_dir
from memdoctor.sources.logs import choosing, index
from memdoctor.sources.logs.block_matcher import BlockMatcher, Unavailable
from memdoctor.sources.logs.choosing import GrowingMatcher
from memdoctor.sources.logs.collect import read_logs
from memdoctor.sources.logs.matcher import Gate, Matcher
from tests.bench.generate import pieces
from tests.hostile.mutations import FIXTURES, anything, mutated
from tests.sources.logs.test_workers import plain

pytest.importorskip("hyperscan")


@lru_cache(maxsize=1)
def signals() -> tuple[Signal, ...]:
    return tuple(load([rules_dir()]).signals)


class Either:
    """Reads ``paths`` twice, and tells what was read of them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self.fast = self.refused = 0

    def read(self, paths: Sequence[Path]) -> list[Any] | str:
        fast, slow = (self._read(paths, make) for make in (self._make, self._refuse))
        assert fast == slow, paths
        return fast

    def _read(self, paths: Sequence[Path], make: Callable[[Sequence[Gate], Collection[int]], Matcher]) -> list[Any] | str:
        self._patch.setattr(index, "GrowingMatcher", partial(GrowingMatcher, fast=make))
        try:
            return plain(read_logs([str(path) for path in paths], signals()))
        except InputError as error:
            return str(error)

    def _make(self, gates: Sequence[Gate], without: Collection[int] = ()) -> Matcher:
        self.fast += 1
        return BlockMatcher(gates, without)

    def _refuse(self, gates: Sequence[Gate], without: Collection[int] = ()) -> Matcher:
        self.refused += 1
        raise Unavailable("not installed")


@pytest.fixture
def either() -> Iterator[Either]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "WORTH", 0)  # the fast one from the first byte
        found = Either(patch)
        yield found
        assert found.fast == found.refused > 0


@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.slow)])
def test_every_fixture(either: Either, every: int) -> None:
    folders = sorted({path.parent for path in FIXTURES.rglob("*") if path.is_file() and path.name != "case.yaml"})
    read = 0
    for folder in folders[::every]:
        found = either.read([path for path in sorted(folder.iterdir()) if path.is_file()])
        read += isinstance(found, list)
    assert read > 400 / every


@pytest.mark.parametrize("size", [300_000, pytest.param(20_000_000, marks=pytest.mark.slow)])
def test_made_up_logs(either: Either, tmp_path: Path, size: int) -> None:
    """Also those in which so many lines are alike that only a sample of them is read."""
    for seed in (1, 2):
        path = tmp_path / f"{seed}.log"
        with open(path, "wb") as file:
            file.writelines(pieces(size, seed))
        assert isinstance(either.read([path]), list)


@pytest.mark.parametrize("examples", [60, pytest.param(1_000, marks=pytest.mark.slow)])
def test_mutations_of_the_fixtures(either: Either, tmp_path: Path, examples: int) -> None:
    path = tmp_path / "mutated.log"

    @settings(max_examples=examples, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.one_of(mutated(), anything))
    def holds(data: bytes) -> None:
        path.write_bytes(data)
        either.read([path])

    holds()

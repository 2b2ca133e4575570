"""Slow tests run only when they are asked for (``pytest --slow``); the user's own cache stays out of all of them."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run the tests marked slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    skip = pytest.mark.skip(reason="slow: run with --slow")
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(skip)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[None]:
    base = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):  # one for all processes of a parallel run
        base = base.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(base / "cache"))
        yield


if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # a shell in the background passes this on to every child, and no test of Ctrl-C could pass
    signal.signal(signal.SIGINT, signal.default_int_handler)

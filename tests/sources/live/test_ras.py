"""The text protocol of NCCL's RAS against a stand-in that speaks it, and against what does not."""

from __future__ import annotations

import socket
import time

import pytest

from memdoctor.sources.live.ras import ask
from tests.stand_in.ras import BEHIND, GOOD, Server


@pytest.mark.parametrize("report", [GOOD, BEHIND])
def test_the_report_is_read_to_its_end(report: str) -> None:
    with Server(report) as server:
        answer = ask({"NCCL_RAS_ADDR": server.address})
    assert (answer.text, answer.problem) == (report, "")
    assert server.asked == ["CLIENT PROTOCOL 2", "VERBOSE STATUS"]


def test_a_server_that_says_nothing_costs_its_limit_only() -> None:
    started = time.monotonic()
    with Server(mode="mute") as server:
        answer = ask({"NCCL_RAS_ADDR": server.address}, limit=1.0)
    assert "does not speak as NCCL RAS does" in answer.problem
    assert time.monotonic() - started < 5


def test_another_service_is_told_apart() -> None:
    with Server(mode="web") as server:
        answer = ask({"NCCL_RAS_ADDR": server.address})
    assert "does not name its protocol" in answer.problem


def test_nobody_there_is_worth_a_word_only_where_an_address_was_given() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    assert "nobody listens" in ask({"NCCL_RAS_ADDR": address}).problem
    assert ask({"NCCL_RAS_ADDR": "nonsense"}).problem == "NCCL_RAS_ADDR=nonsense is no host:port"

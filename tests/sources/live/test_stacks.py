"""py-spy: found, missing, refused, silent."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memdoctor.sources.live import stacks
from tests.stand_in import spy

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@pytest.fixture
def tool(tmp_path: Path) -> str:
    return str(spy.install(tmp_path))


@pytest.fixture
def sleeper(request: pytest.FixtureRequest) -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env={**os.environ, **request.param})
    time.sleep(0.2)
    yield process.pid
    process.kill()
    process.wait()


@pytest.mark.parametrize("sleeper", [{"SPY_STACK": "load"}], indirect=True)
def test_a_stack_is_handed_on_as_it_is_printed(tool: str, sleeper: int) -> None:
    stack = stacks.dump([sleeper], tool)[sleeper]
    assert stack.problem == ""
    assert f'Thread {sleeper} (idle): "MainThread"\n    load_next_batch (hang.py:4)\n' in stack.text


@pytest.mark.parametrize("sleeper", [{"SPY_STACK": "load", "SPY_TROUBLE": "denied"}], indirect=True)
def test_a_refusal_is_told_in_its_own_words(tool: str, sleeper: int) -> None:
    assert stacks.dump([sleeper], tool)[sleeper].problem.startswith("py-spy: Permission Denied")


@pytest.mark.parametrize("sleeper", [{"SPY_STACK": "load", "SPY_TROUBLE": "hangs"}], indirect=True)
def test_one_that_does_not_answer_costs_its_limit_only(tool: str, sleeper: int) -> None:
    started = time.monotonic()
    assert stacks.dump([sleeper], tool, limit=1.5)[sleeper].problem == "py-spy gave no answer within 1.5 s"
    assert time.monotonic() - started < 6


def test_a_tool_that_is_none(tmp_path: Path) -> None:
    broken = tmp_path / "py-spy"
    broken.write_text("not a program")
    broken.chmod(0o755)
    assert "cannot be started" in stacks.dump([os.getpid()], str(broken))[os.getpid()].problem


def test_it_is_looked_for_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert stacks.tool() is None
    spy.install(tmp_path)
    assert stacks.tool() == str(tmp_path / "py-spy")

"""Memory of the whole command on logs of very long runs: it may not grow with the lines as objects would."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

MIB = 1024  # KiB, as the system counts
CHUNK = 20_000
# Runs a command, its output in the file named first, and prints the peak of its resident memory (KiB).
PEAK = """\
import os, sys
report = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o600)
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, report, 1)])
_, status, usage = os.wait4(pid, 0)
assert os.waitstatus_to_exitcode(status) == 0
print(usage.ru_maxrss)
"""


def write_steps(path: Path, count: int) -> None:
    """A healthy log of Megatron-LM with ``count`` iterations, one line each (about 320 bytes)."""
    rng = random.Random(count)
    noise = [rng.random() for _ in range(1_009)]
    with path.open("w") as file:
        file.write("> initializing torch distributed ...\ntraining ...\n")
        for first in range(1, count + 1, CHUNK):
            file.writelines(_line(i, count, noise[i % 1_009]) for i in range(first, min(first + CHUNK, count + 1)))
        file.write("[after training is done] datetime: 2026-03-01 09:00:00 \n")


def _line(i: int, count: int, noise: float) -> str:
    second = i // 2
    return (
        f" [2026-01-{1 + second // 86_400 % 28:02d} {second // 3_600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}.{i % 2 * 5}00000] iteration {i:8d}/{count:8d} "
        f"| consumed samples: {i * 256:12d} | elapsed time per iteration (ms): {500 + 5 * noise:.1f} | learning rate: {3e-4 * (1 - i / count):.6E} | "
        f"global batch size:   256 | lm loss: {(2 + 8 / (1 + i / 20_000)) * (1 + 0.01 * noise):.6E} | loss scale: 1.0 | grad norm: {0.3 + 0.1 * noise:.3f} | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


@pytest.mark.parametrize(
    ("count", "most", "options"),
    [
        (100_000, 100, ()),
        (100_000, 100, ("--plot", "--series", "steps.csv")),
        pytest.param(5_000_000, 400, (), marks=pytest.mark.slow),
    ],
)
def test_peak_memory(count: int, most: int, options: tuple[str, ...], tmp_path: Path) -> None:
    """The peak of resident memory of the command and of its processes, in MiB."""
    log = tmp_path / "train.log"
    write_steps(log, count)
    command = [sys.executable, "-m", "memdoctor", "logs", *(str(tmp_path / each) if "." in each else each for each in options), str(log)]
    # What is started counts the memory of what starts it, until it is another program: so that is a small one.
    done = subprocess.run(
        [sys.executable, "-S", "-c", PEAK, str(tmp_path / "report.txt"), *command], capture_output=True, text=True, check=True
    )
    assert f"iterations 1 to {count:,}" in (tmp_path / "report.txt").read_text().replace("\n", " ")
    peak = int(done.stdout) / MIB
    print(f"{count} lines: {peak:.0f} MiB")
    assert peak < most

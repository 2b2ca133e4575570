"""A stand-in for py-spy at its own border, the command line: ``py-spy dump --pid PID`` prints a recorded dump that suits the rank of that process.

``install`` writes it into a folder for the path. What it does is told by the process's own environment: ``SPY_STACK`` names one of STACKS, and
``SPY_TROUBLE`` asks for an error (``denied``), for no answer (``hangs``), or for a stack that is another at every look (``moves``).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

STACKS = {
    "reduce": (
        "all_reduce (torch/distributed/distributed_c10d.py:3252)",
        "_exception_logger.<locals>.wrapper (torch/distributed/c10d_logger.py:83)",
        "train (hang.py:10)",
        "main (hang.py:13)",
        "<module> (hang.py:14)",
    ),
    "load": ("load_next_batch (hang.py:4)", "train (hang.py:9)", "main (hang.py:13)", "<module> (hang.py:14)"),
}


def install(folder: Path) -> Path:
    """Write ``py-spy`` into ``folder``."""
    tool = folder / "py-spy"
    tool.write_text(f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nimport spy\nspy.main(sys.argv)\n")
    tool.chmod(0o755)
    return tool


def main(arguments: list[str]) -> None:
    assert arguments[1:3] == ["dump", "--pid"], arguments
    pid = arguments[3]
    entries = Path(f"/proc/{pid}/environ").read_text().split("\0")
    environ = dict(entry.partition("=")[::2] for entry in entries)
    trouble = environ.get("SPY_TROUBLE")
    if trouble == "denied":
        print("Permission Denied: Try running again with elevated permissions by going 'sudo env \"PATH=$PATH\" !!'", file=sys.stderr)
        sys.exit(1)
    if trouble == "hangs":
        import time

        time.sleep(600)
    frames = list(STACKS[environ["SPY_STACK"]])
    if trouble == "moves":
        frames.insert(0, f"step_{os.getpid()} (hang.py:11)")
    print(f"Process {pid}: python hang.py\nPython v3.11.7 (/usr/bin/python3.11)\n")
    print(f'Thread {pid} (idle): "MainThread"')
    print("\n".join(f"    {frame}" for frame in frames))

"""Where the console script begins: imports nothing before it can end cleanly on Ctrl-C."""

from __future__ import annotations

INTERRUPTED = 130


def run() -> int:
    """Run the command line; 130 when interrupted, even while modules are being imported."""
    try:
        from memdoctor.cli import main

        return main()
    except KeyboardInterrupt:
        return INTERRUPTED

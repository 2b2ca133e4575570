"""``python -m memdoctor``."""

from __future__ import annotations

import sys

from memdoctor.entry import run

if __name__ == "__main__":
    sys.exit(run())

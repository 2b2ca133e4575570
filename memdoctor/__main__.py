"""``python -m memdoctor``."""

from __future__ import annotations

import sys

from memdoctor.cli import main

if __name__ == "__main__":
    sys.exit(main())

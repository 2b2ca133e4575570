"""The outputs shown in README.md are real: ``python -m tests.update_readme`` writes them anew, test_readme.py compares them.

A block is a comment and a fence: ``<!-- output: memdoctor logs x.log -->``, then a text block. A file of a worked example is marked
``<!-- file: rules/a/b.yaml -->``, a command to run in a fresh clone ``<!-- command: first -->``.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
_BLOCK = re.compile(r"<!-- (?P<kind>output|file|command): (?P<name>[^\n]+?) -->\n```(?P<language>\w*)\n(?P<body>.*?)```\n", re.DOTALL)
WIDTH = 100  # columns of the shown terminal


def blocks(kind: str) -> dict[str, str]:
    """Name -> body of every block of ``kind`` in README.md."""
    return {match["name"]: match["body"] for match in _BLOCK.finditer(README.read_text(encoding="utf-8")) if match["kind"] == kind}


def output_of(command: str) -> str:
    """What ``memdoctor ...`` prints on a terminal of WIDTH columns without colour, trailing blanks off."""
    program, *arguments = shlex.split(command)
    assert program == "memdoctor"
    variables = {**os.environ, "COLUMNS": str(WIDTH), "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    result = subprocess.run(
        [sys.executable, "-m", "memdoctor", *arguments], cwd=ROOT, env=variables, capture_output=True, timeout=120, check=False
    )
    assert result.returncode in (0, 1), result.stderr.decode()
    return "".join(f"{line.rstrip()}\n" for line in result.stdout.decode().splitlines())


def updated(text: str) -> str:
    """README.md with every output block as the command prints it now."""

    def renew(match: re.Match[str]) -> str:
        if match["kind"] != "output":
            return match[0]
        return f"<!-- output: {match['name']} -->\n```{match['language']}\n{output_of(match['name'])}```\n"

    return _BLOCK.sub(renew, text)


if __name__ == "__main__":
    README.write_text(updated(README.read_text(encoding="utf-8")), encoding="utf-8")

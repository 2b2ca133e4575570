"""The gates of all signals as regular expressions for ripgrep, which then looks for what memdoctor looks for."""

from __future__ import annotations

import re
from pathlib import Path

from memdoctor.engine.load import load
from memdoctor.resources import rules_dir
from memdoctor.sources.logs.index import SignalIndex
from memdoctor.sources.logs.matcher import Gate

_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")  # re.escape escapes more than older versions of ripgrep bear


def write(path: Path) -> int:
    """One pattern a line; returns how many. The gates of the built-in readers (step lines, tracebacks) are not among them."""
    index = SignalIndex(load([rules_dir()]).signals)
    lines = [_expression(gate) for number, gate in enumerate(index.gates) if index.opened((number,)).signals]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    return len(lines)


def _expression(gate: Gate) -> str:
    text = gate.text.decode()
    text = text if gate.pattern else _SPECIAL.sub(r"\\\g<0>", text)
    return "".join(character if character.isascii() else "".join(f"\\x{byte:02X}" for byte in character.encode()) for character in text)


if __name__ == "__main__":
    import sys

    print(write(Path(sys.argv[1])))

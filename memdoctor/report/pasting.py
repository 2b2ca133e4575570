"""What is to be pasted, as every report shows it: environment variables are exported, and a place that stays open says what belongs there."""

from __future__ import annotations

from memdoctor.lazy import lazy
from memdoctor.report.text import visible_lines

_VALUE = r"(?:'[^']*'|\"[^\"]*\"|\$\([^()]*\)|<\w[\w ]*>|[^\s'\"();|&<>])*"
# Only upper-case names: keys and arguments of Python are in lower case.
_VARIABLES = lazy(rf"[A-Z][A-Z0-9_]{{2,}}={_VALUE}(?: +[A-Z][A-Z0-9_]{{2,}}={_VALUE})*")
_PLACE = lazy(r"<([a-z][a-z_]*)>")
# field of a fact -> what a reader puts there
_PLACES = {
    "env_variable": "variable",
    "file": "that file",
    "gpu": "GPU number",
    "host": "node",
    "meant": "what was meant",
    "of_pid": "PID of the process",
    "parent": "PID of its parent",
    "power_default": "default limit in W",
    "python": "Python of the job",
    "torch_cuda": "CUDA version of torch",
    "what": "name",
}


def to_paste(text: str) -> str:
    """``text`` with `export` before each line that only sets variables of the environment, and with its open places in words."""
    return spoken("\n".join(f"export {line}" if _VARIABLES.fullmatch(line.strip()) else line for line in text.split("\n")))


def spoken(text: str) -> str:
    """``text`` with ``<field>`` as words: ``<of_pid>`` is ``<PID of the process>``."""
    return _PLACE.sub(lambda hit: f"<{_PLACES.get(hit[1], hit[1])}>", text) if "<" in text else text


def lines(*texts: str | None) -> list[str]:
    """The lines of the commands and settings of a fix, fit to be shown; None is left out."""
    return [line for text in texts if text for line in visible_lines(to_paste(text))]

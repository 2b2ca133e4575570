"""The errors that a person is meant to read. Each one says what, where and what to do; none is a traceback."""

from __future__ import annotations

from collections.abc import Iterable


class MemdoctorError(Exception):
    """Base of the errors that the command line prints as one line; ``exit_code`` is what the process ends with."""

    exit_code = 3


class InputError(MemdoctorError):
    """An input cannot be read, or the command was used wrongly (exit 2).

    The text names the file, the place in it where there is one, and what to do.
    """

    exit_code = 2


class RuleError(MemdoctorError):
    """A rule, signal or table file is broken (exit 2): ``path:line: what is wrong`` and a hint."""

    exit_code = 2

    def __init__(self, path: str, line: int | None, problem: str, hint: str = "") -> None:
        self.path, self.line, self.problem, self.hint = path, line, problem, hint
        where = path if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {problem}" + (f" ({hint})" if hint else ""))

    def __reduce__(self) -> tuple[type[RuleError], tuple[str, int | None, str, str]]:
        """An error of a worker arrives whole."""
        return type(self), (self.path, self.line, self.problem, self.hint)


def suggest(word: str, known: Iterable[str], *, list_up_to: int = 12) -> str:
    """``did you mean 'x'?``, or the known words where none is near and they are few."""
    import difflib  # only where something is wrong

    words = sorted(known)
    near = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    if near:
        return f"did you mean '{near[0]}'?"
    return f"known: {', '.join(words)}" if 0 < len(words) <= list_up_to else ""

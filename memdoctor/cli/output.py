"""Where a report goes: stdout, or a file that is written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

from memdoctor.errors import InputError


def tolerate_narrow_encodings() -> None:
    """Let a sign that stdout or stderr cannot encode (``LC_ALL=C``) be written as an escape instead of ending the command."""
    if sys.stdout is None:  # closed by the caller (`>&-`): the exit code is all that is wanted
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def use_utf8() -> None:
    """Write stdout as UTF-8 whatever the locale says: JSON is defined so, and an escape of ours would break it."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8")


def check(path: str | None, option: str = "--output", inputs: Sequence[str] = ()) -> None:
    """Refuse the path of an ``option`` that cannot be written, or that is one of the ``inputs``, before hours are spent on reading.
    Raises InputError."""
    if path is None or path == "-":
        return
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise InputError(f"{option} {path}: is a folder; name a file")
    if not os.path.isdir(folder):
        raise InputError(f"{option} {path}: there is no folder {folder}; make it first")
    if not os.access(folder if _is_ordinary(path) else path, os.W_OK):
        raise InputError(f"{option} {path}: no permission to write there; choose another place")
    if _is_ordinary(path) and any(_same(path, each) for each in inputs):
        raise InputError(f"{option} {path}: would replace a log that is to be read; name another file")


def _same(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):  # one of them is not there
        return False


def write(path: str | None, text: str | Iterable[str], option: str = "--output") -> None:
    """Write ``text``, whole or in pieces, to the ``path`` of an ``option`` (a file at one stroke), or to stdout for None or ``-``.
    Raises InputError."""
    pieces = (text,) if isinstance(text, str) else text
    try:
        if path is None or path == "-":
            _to_stdout("".join(pieces))
        elif _is_ordinary(path):
            _at_one_stroke(os.path.realpath(path), pieces)
        else:  # a pipe or a device such as /dev/stderr cannot be replaced
            with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.writelines(pieces)
    except OSError as error:
        where = "stdout" if path is None or path == "-" else f"{option} {path}"
        what = "the report" if option == "--output" else "the file"
        raise InputError(f"{where}: {what} cannot be written: {error.strerror or error}") from error


def _to_stdout(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader (`| head`) has had enough: that is no fault
        _abandon(sys.stdout)
    except OSError:
        _abandon(sys.stdout)
        raise


def complain(text: str) -> None:
    """Write ``text`` to stderr; where even that cannot be done, the exit code has to tell."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        _abandon(sys.stderr)


def _abandon(stream: TextIO) -> None:
    """Point ``stream`` elsewhere, or the interpreter's own flush at exit fails once more, with a traceback or an exit code of its own."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _at_one_stroke(path: str, pieces: Iterable[str]) -> None:
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        mode = 0o666 & ~_umask()
    import tempfile

    from memdoctor.interrupts import Held

    folder, name = os.path.split(path)
    temporary = None
    try:
        with Held():  # once it is there its name is known
            handle, temporary = tempfile.mkstemp(prefix=f".{name[:40]}.", dir=folder)
        with open(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(pieces)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise


def _is_ordinary(path: str) -> bool:
    """True where ``path`` is, or would become, a regular file."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return True


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask

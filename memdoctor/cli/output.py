"""Where a report goes: stdout, or a file that is written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from pathlib import Path
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


def check(path: str | None) -> None:
    """Refuse an ``--output`` that cannot be written, before hours are spent on reading. Raises InputError."""
    if path is None or path == "-":
        return
    folder = Path(path).parent
    if os.path.isdir(path):
        raise InputError(f"--output {path}: is a folder; name a file")
    if not os.path.isdir(folder):  # unlike Path.is_dir it takes names that are too long
        raise InputError(f"--output {path}: there is no folder {folder}; make it first")
    if not os.access(folder if _is_ordinary(path) else path, os.W_OK):
        raise InputError(f"--output {path}: no permission to write there; choose another place")


def write(path: str | None, text: str) -> None:
    """Write ``text`` to ``path`` (a file at one stroke), or to stdout for None or ``-``. Raises InputError."""
    try:
        if path is None or path == "-":
            _to_stdout(text)
        elif _is_ordinary(path):
            _at_one_stroke(Path(os.path.realpath(path)), text)
        else:  # a pipe or a device such as /dev/stderr cannot be replaced
            with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
    except OSError as error:
        where = "stdout" if path is None or path == "-" else f"--output {path}"
        raise InputError(f"{where}: the report cannot be written: {error.strerror or error}") from error


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


def _at_one_stroke(path: Path, text: str) -> None:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        mode = 0o666 & ~_umask()
    import tempfile

    from memdoctor.interrupts import Held

    with Held():
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)
        try:
            with open(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
            os.chmod(temporary, mode)
            os.replace(temporary, path)
        except BaseException:
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

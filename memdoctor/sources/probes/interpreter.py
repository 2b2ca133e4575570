"""Which Python is examined, and whether it is one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping

from memdoctor.errors import InputError

OLDEST = (3, 7)  # what inside.py is written for
ANSWER = 10.0  # seconds for `python --version`


def interpreter(given: str | None) -> str:
    """The interpreter to examine. Raises InputError where there is none at that path."""
    if given is None:
        return sys.executable
    path = os.path.join(given, "bin", "python") if os.path.isdir(given) else shutil.which(given) or given
    if not os.path.isfile(path) or not os.access(path, os.X_OK):
        raise InputError(f"--python {given}: no interpreter there; name the program, such as /opt/venv/bin/python")
    return path


def verify(given: str | None, environ: Mapping[str, str], timeout: float | None = None) -> str:
    """Why that interpreter cannot be looked into; "" where it can. Raises InputError where it is no Python, or one that is too old.

    It is asked for its version alone, which harms nothing whatever program it is: a file of Python must not be handed to a shell.
    """
    if given is None:
        return ""
    path, limit = interpreter(given), min(ANSWER, timeout or ANSWER)
    try:
        done = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=dict(environ),
            timeout=limit, check=False, start_new_session=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"{path} --version was not answered within {limit:g} s"
    except (OSError, ValueError) as error:
        raise InputError(f"--python {given}: it cannot be started ({getattr(error, 'strerror', None) or error})") from error
    text = done.stdout[:10_000].decode("utf-8", "replace")
    match = re.search(r"^Python (\d+)\.(\d+)", text, re.M)
    if match is None:
        first = next((line.strip()[:80] for line in text.splitlines() if line.strip()), "nothing")
        raise InputError(f"--python {given}: this is no Python; `{path} --version` says: {first}")
    if (int(match[1]), int(match[2])) < OLDEST:
        raise InputError(f"--python {given}: {match[0]}; memdoctor looks into Python {OLDEST[0]}.{OLDEST[1]} and later")
    return ""

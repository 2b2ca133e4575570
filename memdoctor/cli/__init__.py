"""The command line: arguments in, exit code out.

Exit codes: 0 nothing at or above ``--fail-on``; 1 something was found; 2 wrong usage, or no input could be read; 3 memdoctor could
not do its work; 130 interrupted. Only click is imported here; a command's module is imported when the command is run.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

import click

from memdoctor.cli.group import root
from memdoctor.cli.output import complain, tolerate_narrow_encodings
from memdoctor.errors import MemdoctorError

FOUND, USAGE, INTERNAL, INTERRUPTED = 1, 2, 3, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; bad input and faults of our own end in one line on stderr."""
    tolerate_narrow_encodings()
    try:
        code = root.main(args=None if argv is None else list(argv), prog_name="memdoctor", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        said = io.StringIO()
        error.show(said)
        complain(said.getvalue() + _of_a_name(error, sys.argv[1:] if argv is None else argv))
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except MemdoctorError as error:
        _say(str(error))
        return error.exit_code
    except MemoryError:
        _say("memdoctor ran out of memory")
        return INTERNAL
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        _say(f"internal error: {type(error).__name__}{': ' if first else ''}{first}; set MEMDOCTOR_DEBUG=1 to see where")
        return INTERNAL


def _of_a_name(error: click.ClickException, argv: Sequence[str]) -> str:
    """A hint where what was taken for options is the name of a file."""
    name = next((name for name in argv if name.startswith("-") and os.path.lexists(name)), None)
    return "" if name is None or not isinstance(error, click.NoSuchOption) else f"{name} is a file: write ./{name}, or -- before it.\n"


def _say(text: str) -> None:
    from memdoctor.report.text import visible

    if os.environ.get("MEMDOCTOR_DEBUG", "") not in ("", "0"):
        import traceback

        complain(traceback.format_exc())
    complain(f"memdoctor: {visible(text.strip())}\n")

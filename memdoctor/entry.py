"""Where the console script begins: imports nothing before it can end cleanly on Ctrl-C."""

from __future__ import annotations

import gc

INTERRUPTED = 130
GARBAGE = 50_000  # objects made between looks for reference cycles: by default it is 700, which costs a start some 7 %


def run() -> int:
    """Run the command line; 130 when interrupted (143 when terminated), even while modules are being imported."""
    gc.set_threshold(GARBAGE, 20, 50)
    try:
        from memdoctor.interrupts import Interrupts

        interrupts = Interrupts()
    except KeyboardInterrupt:
        return INTERRUPTED
    try:
        try:
            interrupts.watch()
            from memdoctor.cli import main

            code = main()
        finally:
            interrupts.done()
            gc.freeze()  # the interpreter ends with two looks for cycles among all there is, which takes longer than reading a short log
    except KeyboardInterrupt:
        return interrupts.code
    return interrupts.code if code == INTERRUPTED else code

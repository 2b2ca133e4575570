"""Ctrl-C, a polite kill and a terminal that goes away end the command in the same way: one exception, and time to tidy up.

Python's own handler interrupts the tidying up as well when somebody presses twice, and loses a Ctrl-C that comes while an object is taken down.
"""

from __future__ import annotations

# What ``signal`` wraps. That module makes its enumerations first: 2 ms at each start, in which no handler of ours is there yet.
import _signal as signal  # type: ignore[import-not-found]
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PATIENCE = 1.0  # seconds in which a second signal is the same wish, not a new one
AGAIN = 0.01  # seconds after which an interrupt that was lost is tried again
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


class Interrupts:
    """``watch`` makes the signals raise KeyboardInterrupt, ``done`` makes them do nothing; ``code`` is what to exit with after one."""

    def __init__(self) -> None:
        self.code: int = 128 + signal.SIGINT
        self._since: float | None = None
        self._process = os.getpid()
        self._watched: list[int] = []

    def watch(self) -> None:
        """Leaves alone what whoever started the command wants to be ignored (``nohup``, a job in the background of a script)."""
        for name in _NAMES:
            number = getattr(signal, name, None)  # not all systems have all
            if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, self._heard)
                self._watched.append(number)
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, self._heard)
        sys.unraisablehook = self._lost

    def done(self) -> None:
        """The answer is out, or what was begun is tidied up: a signal that comes now has nothing left to end."""
        for number in self._watched:
            signal.signal(number, signal.SIG_IGN)
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
        exec("")  # Python takes an interrupt that came through an `exec` for one that nobody caught, and would die of it at the end

    def _heard(self, number: int, frame: Any) -> None:
        if os.getpid() != self._process:  # a child that has not yet begun its own work
            os._exit(128 + number)
        if self._since is not None and time.monotonic() - self._since < PATIENCE:
            return
        self._since = time.monotonic()
        if number in self._watched:
            self.code = 128 + number
        raise KeyboardInterrupt

    def _lost(self, unraisable: Any) -> None:
        """Python drops an exception that is raised where it calls back (``__del__``, weak references): raise it again just after."""
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(unraisable)
            return
        self._since = None
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, AGAIN)


class Held:
    """What is done within is done whole: a signal waits until it is over. For the moment in which a file is there whose name nobody knows."""

    def __enter__(self) -> None:
        if hasattr(signal, "pthread_sigmask"):
            self._before = signal.pthread_sigmask(signal.SIG_BLOCK, {getattr(signal, name) for name in _NAMES})

    def __exit__(self, *error: object) -> None:
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_SETMASK, self._before)

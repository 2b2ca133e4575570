"""What should be said of a made-up run, and whether it was."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memdoctor.model import Diagnosis, Report
from memdoctor.units import parse_size

_SIGN = re.compile(r"\((?:the )?(?P<sign>[a-z ]+) first, from iteration (?P<at>[\d,]+)")
_FULL = re.compile(r"(?P<size>[\d.]+ [KMGT]iB) would be full at iteration (?P<at>[\d,]+)")
CLOSE = 0.1  # of the way to a full card by which its iteration may be off


@dataclass(frozen=True)
class Line:
    """Memory whose peak is ``base`` bytes up to iteration ``start`` and grows by ``slope`` from there on."""

    start: int
    base: float
    slope: float

    def reaches(self, size: float) -> float:
        return self.start + (size - self.base) / self.slope


@dataclass(frozen=True)
class Expected:
    """``causes``: any of these is right; none: nothing above a note. ``note``: a cause that must be among the notes.

    ``onset``: the step at which the event began; ``ramp``: over how many steps it grew (0: at once). ``says``: words of the message;
    ``sign``: what showed it first, and since when; ``grows``: how memory grew, for the iteration at which it will be full.
    """

    causes: frozenset[str] = frozenset()
    note: str | None = None
    onset: int | None = None
    ramp: int = 0
    says: str = ""
    sign: str = ""
    sign_onset: int = 0
    sign_ramp: int = 0
    grows: Line | None = None


@dataclass(frozen=True)
class MadeRun:
    text: str
    expected: Expected
    interval: int

    def near(self, found: int | None, onset: int, ramp: int) -> bool:
        room = max(3 * self.interval, 0.1 * ramp) if ramp else self.interval
        return found is not None and abs(found - onset) <= room

    def onset_is_right(self, found: Diagnosis) -> bool:
        """Within one log interval; for what grows within three, or a tenth of its length."""
        expected = self.expected
        if expected.onset is not None and not self.near(found.iteration, expected.onset, expected.ramp):
            return False
        if expected.sign:
            sign = _SIGN.search(found.message)
            return sign is not None and self.near(_number(sign["at"]), expected.sign_onset, max(expected.sign_ramp, 1))
        full = _FULL.search(found.message) if expected.grows is not None else None
        if full is not None and expected.grows is not None:
            due = expected.grows.reaches(parse_size(full["size"]))
            return abs(_number(full["at"]) - due) <= max(3 * self.interval, CLOSE * (due - expected.grows.start))
        return True

    def verdict(self, report: Report) -> tuple[bool, bool]:
        """Whether the report calls the run what it is, and whether it also dates it rightly."""
        expected = self.expected
        if expected.note is not None:
            notes = [each for each in report.diagnoses if each.cause == expected.note and each.severity == "note"]
            fitting = [each for each in notes if expected.says in each.message]
            right = report.root_cause is None and bool(fitting)
            return right, right and any(self.onset_is_right(each) for each in fitting)
        if not expected.causes:
            right = report.root_cause is None
            return right, right
        root = next((each for each in report.diagnoses if each.cause == report.root_cause), None)
        right = root is not None and root.cause in expected.causes and expected.sign in root.message
        return right, right and root is not None and self.onset_is_right(root)


def _number(text: str) -> int:
    return int(text.replace(",", ""))

"""The clock of one log: gives a year to stamps without one, and a date to those that have only a time."""

from __future__ import annotations

import time

from memdoctor.model import Stamp
from memdoctor.sources.logs.stamps import DAY, Moment, build, read_moment, with_year

HALF_YEAR = 183 * DAY
SLACK = 2 * DAY  # zones and clocks that are off
BEGINNING = 600  # seconds of the day below which a time without a date may be one since the start ...
APART = 3_600.0  # ... where it lies so far from the moment before it


class Clock:
    """Reads the stamps of one log in order.

    What a stamp leaves out is chosen so that it lies nearest to the stamp before it: Jan 1 after Dec 31 is in the next year, and a late
    Dec 31 after that still in the old one. The first stamp without a year gets ``year``; where that is None, the year that puts it last before
    ``not_after`` (epoch seconds, say the time of the file's last change; else now). A time without a date is None until a date was seen; and for
    good where the first one, a few minutes past midnight, is hours from the moment before it: the log counts the time since its start.
    """

    __slots__ = ("_last", "_not_after", "_of_day", "_year", "dated")

    def __init__(self, year: int | None = None, not_after: float | None = None) -> None:
        self._year = year
        self._not_after = not_after
        self._last: float | None = None
        self.dated = False  # whether the log itself told its year
        self._of_day: bool | None = None  # whether times without a date are times of day, once that is known

    @property
    def year(self) -> int | None:
        """The year of the last stamp, or the hint."""
        return self._year if self._last is None else time.gmtime(self._last).tm_year

    def set(self, stamp: Stamp) -> None:
        """Let the stamps that follow be near ``stamp``."""
        self._last, self.dated = stamp.epoch, True

    def read(self, text: str) -> Stamp | None:
        """The moment that ``text`` is; None if it is none or its date is unknown."""
        moment = read_moment(text)
        if moment is None:
            return None
        if moment[0] is not None:
            stamp = with_year(moment, None)
            self.dated = True
        elif moment[1] is None:
            stamp = self._on_day(moment)
        else:
            stamp = self._in_year(moment)
        if stamp is not None:
            self._last = stamp.epoch
        return stamp

    def _in_year(self, moment: Moment) -> Stamp | None:
        _, month, day = moment[:3]
        if month is None or day is None:
            return None
        if self._last is None:
            return self._first(moment, month, day)
        year = time.gmtime(self._last).tm_year
        best = build(moment, year, month, day)
        if best is not None and abs(best.epoch - self._last) <= HALF_YEAR:
            return best
        others = [stamp for other in (year - 1, year + 1) if (stamp := build(moment, other, month, day)) is not None]
        last = self._last
        return min([best, *others] if best else others, key=lambda stamp: abs(stamp.epoch - last), default=None)

    def _first(self, moment: Moment, month: int, day: int) -> Stamp | None:
        if self._year is not None or self._not_after is None:
            return with_year(moment, self._year)
        limit = self._not_after + SLACK
        year = time.gmtime(limit).tm_year
        stamps = (build(moment, year - back, month, day) for back in range(5))
        return next((stamp for stamp in stamps if stamp is not None and stamp.epoch <= limit), None)

    def _on_day(self, moment: Moment) -> Stamp | None:
        if self._last is None:
            return None
        today, last = self._last // DAY, self._last
        nearest = min((today - 1, today, today + 1), key=lambda day: abs(day * DAY + moment[3] - last))
        if self._of_day is None:
            self._of_day = moment[3] >= BEGINNING or abs(nearest * DAY + moment[3] - last) < APART
        if not self._of_day:
            return None
        whole = time.gmtime(nearest * DAY)
        return build(moment, whole.tm_year, whole.tm_mon, whole.tm_mday)

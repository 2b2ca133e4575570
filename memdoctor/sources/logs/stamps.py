"""Moments as logs print them: with and without year, zone, date and fraction of a second.

Read are ISO 8601 and its kin (``2024-05-01T10:00:00Z``, ``2024-05-01 10:00:00,123``, ``2026-11-29_13:09:27``, ``2024/05/01 10:00:00``),
glog (``E1023 02:44:30.941975491``; the month may lack its zero: ``E321``), syslog (``Oct 01 13:00:00``), ctime (``Tue Oct  1 13:00:00 2024``),
``01/02/2024 10:00:00`` (month first, unless it cannot be a month), ``05/01 10:00:00``, ``10:00:00`` and epoch numbers; rarer forms are those of
odd_stamps.py. A kernel's seconds since boot are no moment.
Nonsense such as month 13 yields None, never an error.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from datetime import date
from functools import lru_cache

from memdoctor.lazy import lazy
from memdoctor.model import Stamp
from memdoctor.sources.logs.odd_stamps import ODD, read_odd

DAY = 86_400.0
_MONTHS = {name: number for number, name in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}

# Building blocks, also of the prefixes: each matches one written form and has no groups.
FRACTION = r"(?:[.,]\d{1,9})?"
ISO = rf"\d{{4}}[-/]\d\d[-/]\d\d[T _]\d\d:\d\d:\d\d{FRACTION}(?:Z| UTC| ?[+-]\d\d:?\d\d(?!\d))?"
SLASHED = rf"\d\d/\d\d/\d{{4}} \d\d:\d\d:\d\d{FRACTION}(?: [AP]M\b)?"
SHORT = rf"\d\d[-/]\d\d \d\d:\d\d:\d\d{FRACTION}"
CLOCK = rf"\d\d:\d\d:\d\d{FRACTION}"
_MONTH = rf"(?:{'|'.join(_MONTHS)})"
SYSLOG = rf"{_MONTH} [ \d]\d (?:\d{{4}} )?\d\d:\d\d:\d\d{FRACTION}"  # the fabric manager's own log has the year, too
CTIME = rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {_MONTH} [ \d]\d \d\d:\d\d:\d\d(?: [A-Z]{{3,4}})? \d{{4}}"
GLOG = r"[VDIWECF]\d{3,4} \d\d:\d\d:\d\d\.\d{6,9}"

_ISO = lazy(r"(\d{4})[-/](\d\d)[-/](\d\d)[T _](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?: ?(Z|UTC|[+-]\d\d:?\d\d))?", re.A)
_SLASHED = lazy(r"(\d\d)/(\d\d)/(\d{4}) (\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?", re.A)
_SHORT = lazy(r"(\d\d)[-/](\d\d) (\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?", re.A)
_CLOCK = lazy(r"(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?", re.A)
_SYSLOG = lazy(rf"({_MONTH}) ([ \d]\d) (?:(\d{{4}}) )?(\d\d):(\d\d):(\d\d)(?:[.,](\d{{1,9}}))?", re.A)
_CTIME = lazy(rf"[A-Z][a-z]{{2}} ({_MONTH}) ([ \d]\d) (\d\d):(\d\d):(\d\d)(?: ([A-Z]{{3,4}}))? (\d{{4}})", re.A)
_GLOG = lazy(r"[VDIWECF](\d{1,2})(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6,9})", re.A)
_EPOCH = lazy(r"(\d{10})(?:\.(\d{1,9}))?|(\d{10})(\d{3}|\d{6}|\d{9})", re.A)
_ANYWHERE = lazy(rf"(?<![\w.:/-])(?:{ISO}|{SLASHED}|{CTIME}|{ODD}|{SYSLOG}|{GLOG})(?![\d:])", re.A)
_BEGINS = lazy(r"[ \[]{0,4}(\d{4}-\d\d-\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?=\]|\|| [^-+U\d])", re.A)
_OF_DAY = lazy(r"\d\d:\d\d:\d\d", re.A)  # a part of all of these
_TIME = lazy(rb"[0-9]:[0-9]{2}:[0-9]")  # likewise
_COLONS = 2  # in each of them
LOOK = 256  # bytes of a line in which one is looked for
WITHIN = 80  # characters of a line in which find_stamp lets a stamp begin

# year, month, day (None where not printed), seconds of the day, the time as text, the zone as printed by ISO 8601
Moment = tuple[int | None, int | None, int | None, int, str, str]


def parse_stamp(text: str, *, year: int | None) -> Stamp | None:
    """The moment that ``text`` is, as a whole; None if it is none, or has no date.

    A stamp without a year gets ``year``; where that is None, the current year, or the one before if the moment would be still to come.
    """
    moment = read_moment(text)
    return None if moment is None else with_year(moment, year)


def find_stamp(text: str, year: int | Callable[[], int | None] | None) -> Stamp | None:
    """The first dated moment that begins in the first 80 characters of ``text``; ``year`` as in ``parse_stamp``, or who is asked for it then."""
    if text.count(":", 0, WITHIN + 40) < 2 or _OF_DAY.search(text, 0, WITHIN + 40) is None:  # as most lines without one
        return None
    stamp = ordinary_stamp(text)
    if stamp is not None:
        return stamp
    for moment in _moments(text):
        known = year if not callable(year) else None if moment[0] is not None else year()
        stamp = with_year(moment, known)
        if stamp is not None:
            return stamp
    return None


def ordinary_stamp(text: str) -> Stamp | None:
    """The ISO stamp without a zone that ``text`` begins with, as most do: the same as in general, in a third of the time."""
    match = _BEGINS.match(text)
    if match is None:
        return None
    date, hour, minute, second, fraction = match.groups()
    midnight = _midnight_of(date)
    if midnight is None or hour > "23" or minute > "59" or second > "60":
        return None
    epoch = midnight + (int(hour) * 3600 + int(minute) * 60 + int(second))
    if fraction is None:
        return Stamp(epoch, f"{date}T{hour}:{minute}:{second}")
    return Stamp(epoch + float(f".{fraction}"), f"{date}T{hour}:{minute}:{second}.{fraction}")


@lru_cache(maxsize=1024)
def _midnight_of(date: str) -> float | None:
    return _midnight(int(date[:4]), int(date[5:7]), int(date[8:]))


def first_stamp(data: bytes, year: Callable[[], int | None]) -> Stamp | None:
    """The stamp of the first line of ``data`` that has one; ``year`` as in ``find_stamp``."""
    begin = 0
    while begin < len(data):
        end = data.find(b"\n", begin)
        end = len(data) if end < 0 else end
        stamp = _stamp_on(data[begin : min(end, begin + LOOK)], year)
        if stamp is not None:
            return stamp
        begin = end + 1
    return None


def last_stamp(data: bytes, year: Callable[[], int | None]) -> tuple[int, Stamp] | None:
    """Where in ``data`` the last line with a stamp begins, and the stamp; ``year`` as in ``find_stamp``."""
    end = len(data)
    while end > 0:
        begin = data.rfind(b"\n", 0, end - 1) + 1 if end > 1 else 0
        stamp = _stamp_on(data[begin : min(end, begin + LOOK)], year)
        if stamp is not None:
            return begin, stamp
        end = begin
    return None


def _stamp_on(line: bytes, year: Callable[[], int | None]) -> Stamp | None:
    if line.count(b":") < _COLONS or _TIME.search(line) is None:
        return None
    return find_stamp(line.decode("utf-8", "replace"), year)


def find_with_year(text: str) -> Stamp | None:
    """Like ``find_stamp``, but only moments that are printed with their year."""
    if text.count(":", 0, WITHIN + 40) < 2 or _OF_DAY.search(text, 0, WITHIN + 40) is None:
        return None
    return next((stamp for moment in _moments(text) if moment[0] is not None and (stamp := with_year(moment, None)) is not None), None)


def _moments(text: str) -> Iterator[Moment]:
    for match in _ANYWHERE.finditer(text, 0, WITHIN + 40):
        if match.start() >= WITHIN:
            return
        moment = read_moment(match[0])
        if moment is not None:
            yield moment


def with_year(moment: Moment, year: int | None) -> Stamp | None:
    """``moment`` in ``year`` where it has none of its own."""
    own, month, day = moment[0], moment[1], moment[2]
    if month is None or day is None:
        return None
    fixed = year if own is None else own
    if fixed is not None:
        return build(moment, fixed, month, day)
    now = time.time()
    this = time.gmtime(now).tm_year
    for candidate in range(this, this - 5, -1):  # a leap day is up to four years back (eight round 2100)
        stamp = build(moment, candidate, month, day)
        if stamp is not None and stamp.epoch <= now + DAY:
            return stamp
    return None


def build(moment: Moment, year: int, month: int, day: int) -> Stamp | None:
    """The stamp of ``moment``'s time on that day; None where there is no such day."""
    midnight = _midnight(year, month, day)
    if midnight is None:
        return None
    _, _, _, seconds, text, zone = moment
    epoch = midnight + seconds
    if len(text) > 8:
        epoch += float(text[8:])
    if len(zone) > 1:
        offset = int(zone[1:3]) * 3600 + int(zone[4:6]) * 60
        epoch -= offset if zone[0] == "+" else -offset
    return Stamp(epoch, f"{year:04d}-{month:02d}-{day:02d}T{text}{zone}")


@lru_cache(maxsize=1024)
def _midnight(year: int, month: int, day: int) -> float | None:
    try:
        return (date(year, month, day).toordinal() - 719_163) * DAY if 1970 <= year < 2200 else None
    except ValueError:
        return None


def read_moment(text: str) -> Moment | None:
    """What ``text`` says, before a missing year or date is filled in. Hours above 23, minutes above 59, zones above 14 h: None."""
    moment = _read_usual(text)
    if moment is not None:
        return moment
    odd = read_odd(text)
    if odd is None or _zone(odd[7] or None) is None:
        return None
    return _moment(*odd)


def _read_usual(text: str) -> Moment | None:
    second, third = text[1:2], text[2:3]
    if second.isdigit() and text[4:5] in ("-", "/"):
        match = _ISO.fullmatch(text)
        if match is None:
            return None
        zone = _zone(match[8])
        return None if zone is None else _moment(int(match[1]), int(match[2]), int(match[3]), match[4], match[5], match[6], match[7], zone)
    if third == ":":
        match = _CLOCK.fullmatch(text)
        return match and _moment(None, None, None, match[1], match[2], match[3], match[4])
    if third in ("/", "-"):
        return _read_short(text)
    if second.isdigit() and not text[0].isdigit():
        match = _GLOG.fullmatch(text)
        return match and _moment(None, int(match[1]), int(match[2]), match[3], match[4], match[5], match[6])
    if second.isdigit():
        return _read_epoch(text)
    return _read_words(text)


def _read_short(text: str) -> Moment | None:
    match = _SLASHED.fullmatch(text)
    if match is None:
        match = _SHORT.fullmatch(text)
        return match and _moment(None, int(match[1]), int(match[2]), match[3], match[4], match[5], match[6])
    month, day = int(match[1]), int(match[2])
    if month > 12 >= day:
        month, day = day, month
    return _moment(int(match[3]), month, day, match[4], match[5], match[6], match[7])


def _read_words(text: str) -> Moment | None:
    match = _SYSLOG.fullmatch(text)
    if match is not None:
        year = None if match[3] is None else int(match[3])
        return _moment(year, _MONTHS[match[1]], int(match[2]), match[4], match[5], match[6], match[7])
    match = _CTIME.fullmatch(text)
    if match is None:
        return None
    zone = "+00:00" if match[6] in ("UTC", "GMT") else ""  # other abbreviations are ambiguous
    return _moment(int(match[7]), _MONTHS[match[1]], int(match[2]), match[3], match[4], match[5], None, zone)


def _read_epoch(text: str) -> Moment | None:
    """Seconds, milli-, micro- or nanoseconds since 1970, as structured logs have them."""
    match = _EPOCH.fullmatch(text)
    if match is None:
        return None
    whole = time.gmtime(int(match[1] or match[3]))
    clock = (f"{whole.tm_hour:02d}", f"{whole.tm_min:02d}", f"{whole.tm_sec:02d}")
    return _moment(whole.tm_year, whole.tm_mon, whole.tm_mday, *clock, match[2] or match[4], "Z")


def _zone(text: str | None) -> str | None:
    if text is None:
        return ""
    if text[0] not in "+-":
        return "Z"
    return f"{text[:3]}:{text[-2:]}" if int(text[1:3]) <= 14 and int(text[-2:]) < 60 else None


def _moment(
    year: int | None, month: int | None, day: int | None, hour: str, minute: str, second: str, fraction: str | None, zone: str = ""
) -> Moment | None:
    hours, minutes, seconds = int(hour), int(minute), int(second)
    if hours > 23 or minutes > 59 or seconds > 60:
        return None
    clock = f"{hour}:{minute}:{second}" if fraction is None else f"{hour}:{minute}:{second}.{fraction}"
    return year, month, day, hours * 3600 + minutes * 60 + seconds, clock, zone

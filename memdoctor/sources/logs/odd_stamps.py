"""Moments in the forms that people, sites and other languages print: read where none of the usual forms fits.

``03/14/2026 02:48:05 PM``, ``3/14/2026 14:48:05`` and ``03/14/26 14:48:05`` (month first, unless it cannot be a month; with a first number that
is neither month nor day of an earlier century, Spark's ``26/03/14 14:48:05``), ``14.03.2026 14:48:05`` (day first), ``14/Mar/2026:14:48:05 +0000``,
``Sat, 14 Mar 2026 14:48:05 +0000``, ``Mar 14, 2026 14:48:05``, ``20260314 14:48:05``, ``2026-03-14_14-48-05``, and what ``date`` prints.
"""

from __future__ import annotations

import re

from memdoctor.lazy import lazy

_MONTHS = {name: number for number, name in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
_MONTH = rf"(?:{'|'.join(_MONTHS)})"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_TIME = r"\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?[AP]M\b)?"
_ZONE = r"(?: (?:[+-]\d\d:?\d\d(?!\d)|UTC|GMT|Z\b))?"

# Each matches one written form, and has no groups.
ODD_NUMBERS = (
    rf"\d{{1,2}}/\d{{1,2}}/(?:\d{{4}}|\d\d),? {_TIME}"
    rf"|\d\d[-.]\d\d[-.]\d{{4}},? {_TIME}|\d{{4}}\.\d\d\.\d\d {_TIME}"
    rf"|\d\d/{_MONTH}/\d{{4}}:{_TIME}{_ZONE}|\d{{1,2}} {_MONTH} \d{{4}} {_TIME}{_ZONE}"
    rf"|\d{{4}}-\d\d-\d\d(?:-|, ){_TIME}{_ZONE}|\d{{4}}-\d\d-\d\d_\d\d-\d\d-\d\d(?!\d)"
    rf"|20\d{{6}}(?: {_TIME}|[T_-]\d{{6}}Z?(?!\d))"
    rf"|\d{{4}}年\d{{1,2}}月\d{{1,2}}日 {_TIME}"
)
ODD_WORDS = (
    rf"{_DAY},? \d{{1,2}} {_MONTH}(?: \d{{4}} {_TIME}{_ZONE}| {_TIME}(?: [A-Z]{{3,4}})? \d{{4}})"
    rf"|{_DAY} {_MONTH} [ \d]\d {_TIME}(?: [A-Z]{{3,4}})? \d{{4}}"
    rf"|{_MONTH} \d{{1,2}}, \d{{4}},? {_TIME}"
)
ODD = rf"{ODD_NUMBERS}|{ODD_WORDS}"

_READ = lazy(
    r"(?P<first>\d{1,2})[/](?P<second>\d{1,2})/(?P<last>\d{4}|\d\d),? (?P<t>.+)"
    r"|(?P<first2>\d\d)(?P<dot>[-.])(?P<second2>\d\d)[-.](?P<last2>\d{4}),? (?P<t2>.+)"
    r"|(?P<y3>\d{4})[-.](?P<m3>\d\d)[-.](?P<d3>\d\d)(?:[-_ ]|, )(?P<t3>.+)"
    r"|(?P<y4>20\d\d)(?P<m4>\d\d)(?P<d4>\d\d)[ T_-](?P<t4>.+)"
    r"|(?P<y5>\d{4})年(?P<m5>\d{1,2})月(?P<d5>\d{1,2})日 (?P<t5>.+)"
    rf"|(?:{_DAY},? )?(?P<d6>\d{{1,2}})[ /](?P<m6>{_MONTH})(?:[ /](?P<y6>\d{{4}}))?[ :](?P<t6>.+)"
    rf"|(?:{_DAY} )?(?P<m7>{_MONTH}) (?P<d7>[ \d]?\d)(?:, (?P<y7>\d{{4}}),?)? (?P<t7>.+)",
    re.A,
)
_CLOCK = lazy(
    r"(?P<h>\d{1,2})[:-]?(?P<m>\d\d)[:-]?(?P<s>\d\d)(?:[.,](?P<f>\d{1,9}))?(?: ?(?P<half>[AP])M)?"
    r"(?: ?(?P<zone>Z|[+-]\d\d:?\d\d|[A-Z]{3,4}))?(?: (?P<year>\d{4}))?",
    re.A,
)
_NAMED = {"Z": "Z", "UTC": "Z", "GMT": "Z"}  # others are ambiguous

# year, month, day, hour, minute, second, fraction, zone
Read = tuple[int, int, int, str, str, str, str | None, str]


def read_odd(text: str) -> Read | None:
    """The parts of ``text``; None where it is in none of these forms. They may still be nonsense."""
    match = _READ.fullmatch(text)
    if match is None:
        return None
    told = {name.rstrip("0123456789"): value for name, value in match.groupdict().items() if value is not None}
    clock = _CLOCK.fullmatch(told["t"])
    if clock is None:
        return None
    if "last" in told:
        year, month, day = _by_place(int(told["first"]), int(told["second"]), told["last"], day_first=told.get("dot") == ".")
    else:
        named = told.get("y") or clock["year"]
        if named is None:
            return None
        year, month, day = int(named), _MONTHS.get(told["m"]) or int(told["m"]), int(told["d"])
    hour = clock["h"].zfill(2)
    if clock["half"] is not None:
        if not 1 <= int(hour) <= 12:
            return None
        hour = f"{int(hour) % 12 + (12 if clock['half'] == 'P' else 0):02d}"
    zone = clock["zone"] or ""
    zone = f"{zone[:3]}:{zone[-2:]}" if zone[:1] in ("+", "-") else _NAMED.get(zone, "")
    return year, month, day, hour, clock["m"], clock["s"], clock["f"], zone


def _by_place(first: int, second: int, last: str, *, day_first: bool) -> tuple[int, int, int]:
    """Year, month and day of three numbers."""
    if len(last) == 2 and first > 12 and 20 <= first < 70 and second <= 12:
        return 2000 + first, second, int(last)
    year = int(last) if len(last) > 2 else 2000 + int(last)
    month, day = (second, first) if day_first else (first, second)
    if month > 12 >= day:
        month, day = day, month
    return year, month, day

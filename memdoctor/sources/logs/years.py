"""Logs without a year beside logs of the same job with one: which of them were taken to be of another year, and what year they are of."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from memdoctor.sources.logs.clock import HALF_YEAR
from memdoctor.sources.logs.one_log import Numbered, Outcome
from memdoctor.sources.logs.stored import STDIN

YEAR = 365.2425 * 86_400


def other_years(outcomes: Sequence[Outcome], logs: Sequence[Numbered]) -> dict[int, Numbered]:
    """Place of a log to be read once more, and the log with its year. Logs that were copied or unpacked are younger than what is in them."""
    begun = [(place, outcome.read) for place, outcome in enumerate(outcomes) if outcome.read is not None and outcome.read.first is not None]
    told = [read.first.epoch for _, read in begun if read.dated and read.first is not None]
    if len(told) == len(begun) or not told or max(told) - min(told) > HALF_YEAR:
        return {}
    middle = sorted(told)[len(told) // 2]
    result: dict[int, Numbered] = {}
    for place, read in begun:
        number, file = logs[place]
        if read.dated or read.first is None or abs(read.first.epoch - middle) <= HALF_YEAR or file.path == STDIN:
            continue
        off = round((middle - read.first.epoch) / YEAR)
        result[place] = (number, replace(file, year=time.gmtime(read.first.epoch).tm_year + off))
    return result

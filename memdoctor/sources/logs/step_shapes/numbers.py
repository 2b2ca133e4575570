"""Numbers as logs print them."""

from __future__ import annotations

import math

NAN = math.nan
Step = dict[str, float]


def number(text: bytes) -> float:
    """``b" 1.5E+00 "`` as a float; NaN for anything that is none."""
    try:
        return float(text)
    except ValueError:
        return NAN

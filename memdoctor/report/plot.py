"""A curve in a few lines of text: dots of Braille, eight to a sign, or plain signs where the terminal has no more."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # bits of a Braille sign, row by row
BRAILLE = 0x2800
WIDE = 20.0  # from this ratio of the highest to the middle value on the scale is logarithmic


def chart(
    points: Sequence[tuple[float, float | None]],
    *,
    width: int,
    height: int,
    show: Callable[[float], str],
    braille: bool,
    mark: float | None = None,
) -> list[str]:
    """``points`` are (iteration, value) in order; None and what is not finite leave a gap. ``show`` makes a value's label.

    ``width`` is in columns, labels included; ``mark`` is an iteration that the last line points at. Empty where there is nothing to draw.
    """
    known = [(time, value) for time, value in points if value is not None and math.isfinite(value)]
    if len(known) < 2:
        return []
    values = sorted(value for _, value in known)
    low, high, middle = values[0], values[-1], values[len(values) // 2]
    log = low > 0 and high > WIDE * middle
    scale: Callable[[float], float] = math.log10 if log else lambda value: value / 2  # of halves no difference is infinite
    bottom, top = scale(low), scale(high)
    labels = [show(high), show(low)]
    margin = max(map(len, labels))
    columns = max(10, width - margin - 3)
    across, down = (2 * columns, 4 * height) if braille else (columns, height)
    start, end = points[0][0], points[-1][0]

    def column(time: float) -> int:
        return min(across - 1, int((time - start) / ((end - start) or 1) * across))

    def row(value: float) -> int:
        return min(down - 1, int((top - scale(value)) / ((top - bottom) or 1) * (down - 1) + 0.5))

    dots: set[tuple[int, int]] = set()
    last: tuple[int, int] | None = None
    for time, each in points:
        if each is None or not math.isfinite(each):
            last = None
            continue
        here = column(time), row(each)
        dots.update(_line(last, here) if last is not None and here[0] >= last[0] else [here])
        last = here
    lines = []
    for number, text in enumerate(_signs(dots, columns, height) if braille else _plain(dots, columns, height)):
        label = labels[0] if number == 0 else labels[1] if number == height - 1 else ""
        lines.append(f"{label:>{margin}} |{text}".rstrip())
    left, right = f"{start:.0f}", f"iteration {end:.0f}"
    lines.append(f"{'':>{margin}} +{left}{right:>{columns - len(left)}}" + (" (log)" if log else ""))
    if mark is not None and start <= mark <= end:
        place = column(mark) // (2 if braille else 1)
        lines.append(f"{'':>{margin}}  {'':>{place}}^ {mark:.0f}")
    return lines


def _line(start: tuple[int, int], end: tuple[int, int]) -> list[tuple[int, int]]:
    """The dots from one to the other."""
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
    return [
        (round(start[0] + (end[0] - start[0]) * step / steps), round(start[1] + (end[1] - start[1]) * step / steps))
        for step in range(steps + 1)
    ]


def _signs(dots: set[tuple[int, int]], columns: int, height: int) -> list[str]:
    cells = [[0] * columns for _ in range(height)]
    for x, y in dots:
        cells[y // 4][x // 2] |= DOTS[y % 4][x % 2]
    return ["".join(chr(BRAILLE + cell) if cell else " " for cell in line) for line in cells]


def _plain(dots: set[tuple[int, int]], columns: int, height: int) -> list[str]:
    return ["".join("*" if (x, y) in dots else " " for x in range(columns)) for y in range(height)]

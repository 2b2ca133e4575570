"""Curves of what a run did over time, for a terminal report."""

from __future__ import annotations

from collections.abc import Sequence

from memdoctor import units
from memdoctor.model import Diagnosis, Report
from memdoctor.report.plot import chart
from memdoctor.report.terminal_page import Page

HEIGHT = 8  # lines of a curve
WIDEST = 120

_CURVES = (
    ("loss", "Loss", lambda value: f"{value:.4g}"),
    ("grad_norm", "Gradient norm", lambda value: f"{value:.4g}"),
    ("step_time", "Step time", units.format_duration),
    ("memory", "Memory", units.format_size),
)


def curves(page: Page, report: Report, root: Diagnosis | None) -> None:
    """Loss, gradient norm, step time and memory over the iterations, as far as the logs tell them."""
    times: Sequence[float] = report.series.get("iteration", ())
    drawn = False
    for name, title, show in _CURVES:
        values: Sequence[float | None] = report.series.get(name, ())
        if name == "step_time":  # the first step compiles and allocates: beside it all others would look alike
            values = [None, *values[1:]]
        lines = chart(
            list(zip(_growing(times), values, strict=False)), width=min(page.width, WIDEST), height=HEIGHT, show=show,
            braille=page.can_show("\u28ff"), mark=None if root is None else root.iteration,
        )  # fmt: skip
        if lines:
            page.heading(title)
            drawn = True
        for line in lines:
            page.line(line)
    if not drawn:
        page.blank()
        page.line("No series to draw: the logs hold no step lines.")


def _growing(times: Sequence[float]) -> list[float]:
    """Iterations without the steps back that resumes make: what was done twice is drawn one after the other."""
    result: list[float] = []
    shift = 0.0
    for place, time in enumerate(times):
        if place and time + shift < result[-1]:
            shift = result[-1] - time
        result.append(time + shift)
    return result

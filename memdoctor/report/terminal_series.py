"""The parts of a terminal report about numbers over time: curves, and this run beside one that worked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memdoctor import units
from memdoctor.model import Diagnosis, Report
from memdoctor.report.plot import chart
from memdoctor.report.terminal_page import Page

HEIGHT = 8  # lines of a curve
WIDEST = 120
MOST_DIFFERENCES = 20  # before the rest is folded
LONGEST = 60  # characters of a value

_CURVES = (
    ("loss", "Loss", lambda value: f"{value:.4g}"),
    ("grad_norm", "Gradient norm", lambda value: f"{value:.4g}"),
    ("step_time", "Step time", units.format_duration),
    ("memory", "Memory", units.format_size),
)
_KINDS = {
    "version": "version", "layout": "layout size", "variable": "variable", "argument": "argument", "step_time": "step time", "memory": "memory", "loss": "loss",
}  # fmt: skip


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


def baseline(page: Page, report: Report, verbose: int) -> None:
    """What differs from the run that worked, first; then how much is equal."""
    found: Mapping[str, Any] = report.baseline
    if not found:
        return
    page.heading("Beside the run that worked")
    differences: Sequence[Mapping[str, Any]] = found.get("differences", ())
    shown = differences if verbose else differences[:MOST_DIFFERENCES]
    for each in shown:
        kind = _KINDS[each["kind"]]
        name = "" if each["kind"] in ("step_time", "memory", "loss") else f" {each['name']}"
        page.cropped((f"{kind}{name}: ", "bold"), f"{_value(each['kind'], each['good'])} → {_value(each['kind'], each['this'])}", indent=2)
    if len(differences) > len(shown):
        page.line(f"and {len(differences) - len(shown)} more (-v shows them)", indent=2)
    if not differences:
        page.line("nothing differs in what both logs tell", indent=2)
    equal = [f"{count} {_KINDS[kind]}{'' if count == 1 else 's'}" for kind, count in found.get("equal", {}).items() if count]
    told = {each["kind"] for each in differences}
    equal += [_KINDS[kind] for kind in found.get("measured", {}) if kind not in told]
    if equal:
        page.prose(f"Equal: {', '.join(equal)}.", indent=2)


def _value(kind: str, value: Any) -> str:
    if value is None:
        return "(not there)"
    if kind == "step_time":
        return units.format_duration(value)
    if kind == "memory":
        return units.format_size(value)
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"

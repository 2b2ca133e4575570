"""This run beside one that worked, for a terminal report: what differs, before anything is judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from memdoctor import units
from memdoctor.model import Report
from memdoctor.report.terminal_page import Page

MOST = 4  # settings that differ, before the rest is folded
LONGEST = 60  # characters of a value
_KINDS = {
    "version": "version", "layout": "layout size", "variable": "variable", "argument": "argument", "step_time": "step time", "memory": "memory", "loss": "loss",
}  # fmt: skip
_MEASURED = ("step_time", "memory", "loss")


def baseline(page: Page, report: Report, verbose: int) -> None:
    """The first lines of the report: what was set otherwise, what came of it, and how much is equal. Folded, it takes eight lines."""
    found: Mapping[str, Any] = report.baseline
    differences: Sequence[Mapping[str, Any]] = found.get("differences", ())
    settings = [each for each in differences if each["kind"] not in _MEASURED]
    measured = [each for each in differences if each["kind"] in _MEASURED]
    shown = settings if verbose else _chosen(settings)
    page.line(("Beside the run that worked", "bold"))
    for each in shown:
        page.cropped((f"{_KINDS[each['kind']]} {each['name']}: ", "bold"), _change(each), indent=2)
    if len(settings) > len(shown):
        page.line(f"and {len(settings) - len(shown)} more (-v shows them)", indent=2)
    if measured:
        page.prose(", ".join(f"{_KINDS[each['kind']]}: {_change(each)}" for each in measured), indent=2)
    if not differences:
        page.line("nothing differs in what both logs tell", indent=2)
    told = {each["kind"] for each in measured}
    equal = [f"{count} {_KINDS[kind]}{'' if count == 1 else 's'}" for kind, count in found.get("equal", {}).items() if count]
    equal += [_KINDS[kind] for kind in found.get("measured", {}) if kind not in told]
    if equal:
        page.prose(f"Equal: {', '.join(equal)}.", indent=2)
    page.blank()


def _chosen(settings: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The first of each kind, then the second of each, so that no kind hides another; told in the order in which they were."""
    if len(settings) <= MOST:
        return list(settings)
    by_kind: dict[str, list[int]] = {}
    for place, each in enumerate(settings):
        by_kind.setdefault(each["kind"], []).append(place)
    places = [place for turn in zip_longest(*by_kind.values()) for place in turn if place is not None]
    return [settings[place] for place in sorted(places[:MOST])]


def _change(each: Mapping[str, Any]) -> str:
    return f"{_value(each['kind'], each['good'])} → {_value(each['kind'], each['this'])}"


def _value(kind: str, value: Any) -> str:
    if value is None:
        return "(not there)"
    if kind == "step_time":
        return units.format_duration(value)
    if kind == "memory":
        return units.format_size(value)
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"

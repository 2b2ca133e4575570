"""Settings → verdicts: names, values one by one, then values against each other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from memdoctor.derive.variables.allocator import allocator
from memdoctor.derive.variables.names import OWNED, judge_name
from memdoctor.derive.variables.places import place
from memdoctor.derive.variables.reading import READERS
from memdoctor.derive.variables.table import Context, Table, Verdict, load_table

_COMPARISON = re.compile(r"(>=|<=|!=|>|<)(.+)")
MOST_NAMES = 50  # verdicts after which names that nobody reads are only counted
_PER_VARIABLE = ("contradiction", "refused", "launch")  # after one of these on a variable, no second contradiction is told


def judge_variables(settings: Mapping[str, str], context: Context | None = None, table: Table | None = None) -> list[Verdict]:
    """What is wrong with ``settings`` (name -> value), in the order of the names; an empty list where all is well."""
    context, table = context or Context(), table or load_table()
    verdicts: list[Verdict] = []
    read: dict[str, str] = {}
    strange: list[str] = []
    for name, value in sorted(settings.items()):
        entry = table.entries.get(name)
        if entry is None and len(verdicts) >= MOST_NAMES:
            strange += [name] if name.startswith(OWNED) else []
        elif entry is None:
            verdict = judge_name(name, value, table)
            verdicts += [verdict] if verdict is not None else []
        if entry is None:
            continue
        found, seen = _judge(name, value, entry, context, table)
        verdicts += found
        if seen is not None:
            read[name] = seen
    if strange:
        text = f"nor have {len(strange) - 1} more names, which no version of a library reads"
        verdicts.append(Verdict(strange[0], settings[strange[0]], "unknown", text))
    return verdicts + _contradictions(settings, read, context, table, verdicts)


def _judge(name: str, value: str, entry: Mapping[str, Any], context: Context, table: Table) -> tuple[list[Verdict], str | None]:
    """The verdicts on one variable, and what its value is read as."""
    library, have = _library(name, context)
    if entry.get("never"):
        if entry.get("meant"):
            return [Verdict(name, value, "misspelt", f"nothing reads {name}", meant=entry["meant"])], None
        return [Verdict(name, value, "unknown", "nothing ever read it", use=entry.get("use"))], None
    if entry.get("since") and have and have < _version(entry["since"]):
        text = f"{library} reads it from {entry['since']} on; {context.versions[library.lower()]} is installed"
        return [Verdict(name, value, "unknown", text, use=entry.get("before"))], None
    if "gone" in entry and have and have < _version(entry["gone"]):
        return [], None
    if "gone" in entry:
        return [Verdict(name, value, "removed", f"it has had no effect since {entry['gone']}", use=entry.get("use"))], None
    verdicts = []
    new = _library(entry["now"], context)[1] if entry.get("now") else ()
    if entry.get("now") and not (new and new < _version(table.entries.get(entry["now"], {}).get("since"))):
        verdicts.append(Verdict(name, value, "renamed", "the old name is still read, with a warning", meant=entry["now"]))
    if (not value and entry["type"] != "gpus") or name in context.cut:
        return verdicts, None
    placed = place(name, value, entry, context)
    read, verdict = placed or (allocator if entry["type"] == "allocator" else READERS[entry["type"]])(name, value, entry)
    if verdict is not None:
        verdicts.append(verdict)
    elif read is not None:
        verdicts += _costs(name, value, read, entry)
        if entry["type"] == "path":
            verdicts += _file(name, value, entry, context)
    return verdicts, read


def _library(name: str, context: Context) -> tuple[str, tuple[int, ...]]:
    """Whose variable it is, and that one's version; () where it is not known."""
    library = "NCCL" if name.startswith("NCCL_") else "torch" if name.startswith(("TORCH_", "PYTORCH_")) else ""
    return library, _version(context.versions.get(library.lower()))


def _version(text: Any) -> tuple[int, ...]:
    match = re.match(r"\d+(?:\.\d+)*", str(text or ""))
    return tuple(int(part) for part in match[0].split(".")) if match is not None else ()


def _costs(name: str, value: str, read: str, entry: Mapping[str, Any]) -> list[Verdict]:
    for problem, key in (("risky", "risky"), ("leftover", "slow")):
        for bad, text in entry.get(key, {}).items():
            listed = not read.startswith("^") and str(bad).upper() in read.upper().replace(";", ",").split(",")
            if bad == "*" or str(bad) == read or (entry["type"] in ("words", "choices") and listed):
                return [Verdict(name, value, problem, text, read=read)]
    return []


def _file(name: str, value: str, entry: Mapping[str, Any], context: Context) -> list[Verdict]:
    if value.startswith("~"):
        return [Verdict(name, value, "read_otherwise", "~ is not expanded: a folder of that name is meant", read=value)]
    if entry.get("exists") and name in context.absent:
        return [Verdict(name, value, "no_file", "there is no such file on this host")]
    if entry.get("needs") and entry["needs"] not in value and not value.startswith("/dev/") and context.facts.get("ranks", 2) > 1:
        return [Verdict(name, value, "risky", entry["text"], meant=f"{value}.%h.%p")]
    return []


def _contradictions(
    settings: Mapping[str, str], read: Mapping[str, str], context: Context, table: Table, found: list[Verdict]
) -> list[Verdict]:
    known: dict[str, Any] = {**_derived(read, context), **context.facts, **read}
    told = {verdict.variable for verdict in found if verdict.problem in _PER_VARIABLE}
    verdicts = []
    for rule in table.contradictions:
        about = rule["about"]
        if about in told or not all(_holds(name, wanted, known, settings) for name, wanted in rule["when"].items()):
            continue
        told.add(about)
        others = [name for name in rule["when"] if name != about and name in settings]
        problem, other = rule.get("problem", "contradiction"), rule.get("other") or next(iter(others), None)
        verdicts.append(Verdict(about, settings.get(about, ""), problem, rule["text"], read.get(about), rule.get("meant"), other=other))
    return verdicts


def _derived(read: Mapping[str, str], context: Context) -> dict[str, Any]:
    """Facts that follow from several settings."""
    derived: dict[str, Any] = {}
    if context.gpus:
        derived["visible_gpus"] = int(read["CUDA_VISIBLE_DEVICES"]) if "CUDA_VISIBLE_DEVICES" in read else context.gpus
    local, threads = _number(read.get("LOCAL_WORLD_SIZE")) or _number(context.facts.get("ranks")), _number(read.get("OMP_NUM_THREADS"))
    if local and threads:
        derived["threads_wanted"] = local * threads
    sockets = [_number(read.get(name)) for name in ("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD")]
    if sockets[0] and sockets[1]:
        derived["sockets_wanted"] = sockets[0] * sockets[1]
    return derived


def _holds(name: str, wanted: Any, known: Mapping[str, Any], settings: Mapping[str, str]) -> bool:
    if isinstance(wanted, list):
        return any(_holds(name, one, known, settings) for one in wanted)
    value = known.get(name)
    if wanted == "":  # unset, or empty
        return not settings.get(name) and value is None
    if value is None:
        return False
    if wanted == "*":
        return True
    match = _COMPARISON.fullmatch(str(wanted))
    if match is None:
        return str(value).lower() == str(wanted).lower()
    other = known.get(match[2]) if not match[2].lstrip("-").replace(".", "", 1).isdigit() else match[2]
    if other is None:
        return False
    if match[1] == "!=":
        return str(value) != str(other)
    left, right = _number(value), _number(other)
    if left is None or right is None:
        return False
    return {">": left > right, ">=": left >= right, "<": left < right, "<=": left <= right}[match[1]]


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None

"""What DeepSpeed's communication logger and flops profiler sum up: a table, and a list of labels with values."""

from __future__ import annotations

from memdoctor.lazy import lazy
from memdoctor.sources.logs.step_shapes.numbers import number

GATES = (b"Comm. Op  ", b"Profile Summary at step")
MOST_ROWS = 200

_OPERATION = lazy(rb"^(\w+)\s*$")
_ROW = lazy(rb"^\s{4,}([\d.]+) ?([KMGT]?B)\s+(\d+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s*$")
_SIZES = {b"B": 1.0, b"KB": 1024.0, b"MB": 1024.0**2, b"GB": 1024.0**3, b"TB": 1024.0**4}
_LABEL = lazy(rb"^([\w+/ ]+?)(?: = [^:]*)?:\s+([\d.]+) ?(\w+)?\s*$")
_LATENCY = {b"s": 1000.0, b"ms": 1.0, b"us": 0.001}
_LABELS = {
    b"fwd latency": "forward_ms",
    b"bwd latency": "backward_ms",
    b"step latency": "step_ms",
    b"iter latency": "iteration_ms",
    b"samples/second": "samples_per_second",
    b"samples/iter": "samples_per_iteration",
}

Rows = list[dict[str, float | str]]


def read(raw: bytes, rest: bytes) -> tuple[str, Rows] | None:
    """The kind and the rows of a summary that begins in ``raw`` and goes on in ``rest``; None where it is none."""
    lines = rest.split(b"\n")
    if b"Comm. Op" in raw:
        return "communication", _communication(lines)
    return "flops", _flops(lines)


def _communication(lines: list[bytes]) -> Rows:
    """One row for each operation and message size (bytes): count, total and mean latency (ms), bus bandwidth (Gbps)."""
    rows: Rows = []
    operation = ""
    for line in lines[:MOST_ROWS]:
        row = _ROW.match(line)
        if row is not None and operation:
            size = number(row[1]) * _SIZES[row[2]]
            count, total, mean, bandwidth = (number(row[group]) for group in (3, 4, 5, 7))
            rows.append({"op": operation, "size": size, "count": count, "total_ms": total, "mean_ms": mean, "gbps": bandwidth})
            continue
        name = _OPERATION.match(line)
        if name is None:
            break
        operation = name[1].decode()
    return rows


def _flops(lines: list[bytes]) -> Rows:
    """One row: latencies (ms) and samples per second."""
    row: dict[str, float | str] = {}
    for line in lines[:60]:
        match = _LABEL.match(line)
        name = _LABELS.get(match[1].strip()) if match is not None else None
        if match is not None and name is not None:
            row[name] = number(match[2]) * (_LATENCY.get(match[3] or b"", 1.0) if name.endswith("_ms") else 1.0)
    return [row] if row else []

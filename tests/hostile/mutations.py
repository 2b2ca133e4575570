"""Logs as nobody wrote them: the fixtures, cut, spliced, shuffled and damaged; and bytes out of nothing. All as hypothesis strategies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hypothesis import strategies as st

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
MOST = 8_192  # bytes of a log that are mutated: enough for a traceback and what is around it

PREFIXES = [
    b"[rank3]: ", b"[default1]:", b"3: ", b"node01: ", b"[1,3]<stderr>:", b"2024-05-01T10:00:00.1Z stderr F ", b"\x1b[31m", b"\t", b"[", b"> ", b"[Rank 0] ",
    b"W1129 13:09:23.793000 7378 torch/distributed/run.py:874] ", b"n1:12:13 [0] NCCL INFO ", b"Traceback (most recent call last):", b"\xff\xfe", b"\0", b"\r",
]  # fmt: skip
PIECES = [
    *PREFIXES, b"\n", b"\r\n", b"{", b'{"log": "', b'"}', b"| ", b"|", b"=", b"nan", b"1e999", b"-1", b"9" * 30, b" iteration 5/ 10 | lm loss: ", b"CUDA out of memory.",
    b"Tried to allocate 2.00 GiB. ", b'  File "a.py", line 3, in f', b"RuntimeError: ", b"Watchdog caught collective operation timeout: WorkNCCL(SeqNum=",
    b"ExitCode", b"exitcode : -9", b"slurmstepd: error: ", b"NCCL WARN ", b"(most recent call first)", b"\xe2\x94\x82 ", b"\xf0\x9f", b"\xc2\x85", b"\xe2\x80\xa8",
]  # fmt: skip


def _logs() -> list[Path]:
    """A fixed choice of small fixtures over all areas."""
    found = sorted(path for path in FIXTURES.rglob("*.log") if 0 < path.stat().st_size <= 32_768 and "bad_rules" not in path.parts)
    return found[:: max(1, len(found) // 150)]


LOGS = _logs()


def _read(path: Path) -> bytes:
    return path.read_bytes()[:MOST]


@st.composite
def _cut(draw: st.DrawFn, data: bytes) -> bytes:
    first, last = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
    return draw(st.sampled_from([data[first:last], data[:first], data[last:], data[:first] + data[last:]]))


@st.composite
def _spliced(draw: st.DrawFn, data: bytes) -> bytes:
    other = _read(draw(st.sampled_from(LOGS)))
    at, from_ = draw(st.integers(0, len(data))), draw(st.integers(0, len(other)))
    return data[:at] + other[from_ : from_ + draw(st.integers(0, 4_096))] + data[at:]


@st.composite
def _flipped(draw: st.DrawFn, data: bytes) -> bytes:
    changed = bytearray(data)
    if changed:
        for at, bit in draw(st.lists(st.tuples(st.integers(0, len(changed) - 1), st.integers(0, 7)), max_size=20)):
            changed[at] ^= 1 << bit
    return bytes(changed)


@st.composite
def _planted(draw: st.DrawFn, data: bytes) -> bytes:
    for piece in draw(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6)):
        at = draw(st.integers(0, len(data)))
        data = data[:at] + piece + data[at:]
    return data


def _by_line(change: Callable[[st.DrawFn, list[bytes]], list[bytes]]) -> Callable[[bytes], st.SearchStrategy[bytes]]:
    @st.composite
    def changed(draw: st.DrawFn, data: bytes) -> bytes:
        return b"".join(change(draw, data.splitlines(keepends=True) or [b""]))

    return changed


def _duplicate(draw: st.DrawFn, lines: list[bytes]) -> list[bytes]:
    at = draw(st.integers(0, len(lines) - 1))
    return lines[:at] + lines[at : at + draw(st.integers(1, 5))] * draw(st.integers(2, 20)) + lines[at:]


def _swap(draw: st.DrawFn, lines: list[bytes]) -> list[bytes]:
    for _ in range(draw(st.integers(1, 8))):
        one, other = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
        lines[one], lines[other] = lines[other], lines[one]
    return lines


def _prefix(draw: st.DrawFn, lines: list[bytes]) -> list[bytes]:
    prefixes = draw(st.lists(st.sampled_from(PREFIXES), min_size=1, max_size=3))
    return [prefixes[number % len(prefixes)] + line for number, line in enumerate(lines)]


def _glue(draw: st.DrawFn, lines: list[bytes]) -> list[bytes]:
    for at in draw(st.lists(st.integers(0, len(lines) - 1), min_size=1, max_size=8)):
        lines[at] = lines[at].rstrip(b"\r\n")
    return lines


CHANGES: list[Callable[[bytes], st.SearchStrategy[bytes]]] = [
    _cut, _spliced, _flipped, _planted, _by_line(_duplicate), _by_line(_swap), _by_line(_prefix), _by_line(_glue),
]  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A fixture after one to three changes."""
    data = _read(draw(st.sampled_from(LOGS)))
    for change in draw(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=3)):
        data = draw(change(data))
    return data


anything = st.one_of(
    st.binary(max_size=600), st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=8)), max_size=40).map(b"".join)
)

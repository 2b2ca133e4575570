"""Logs that a container engine or a log service wrapped, line by line, in JSON or in CRI form: the message comes out again.

One stored line stays one line, so line numbers hold: line ends inside a message become ``\\r`` (the end of a segment that does not count as
a line), and where the engine cut a long line in pieces, the line of the last piece holds all of it and the lines before are empty.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from memdoctor.lazy import lazy
from memdoctor.records import entity
from memdoctor.sources.logs.cleaning import clean

SAMPLE = 50  # non-empty lines looked at to decide ...
LOOK = 1_048_576  # ... and bytes,
LOOK_CRI = 4_096  # or those in which the first line in CRI form begins
LONGEST = 524_288  # bytes up to which the pieces of a line are joined
_TIMES = ("@timestamp", "timestamp", "time", "ts")
_RANKS = ("rank", "global_rank", "world_rank", "RANK")
_NESTED = ("jsonPayload", "extra", "context", "fields", "labels")  # where JSON loggers put the fields of the caller
_RANK = lazy(r"\d{1,7}", re.ASCII)
_STACKS = ("exc_info", "exception", "stack_trace", "stacktrace")  # where JSON loggers put the traceback that belongs to a message
_CRI_STREAMS = (b" stdout ", b" stderr ")
_CRI = lazy(
    rb"(\d{4}-\d\d-\d\dT\S{8,26} (?:stdout|stderr) )([FP])(?::\S*)?(?: |$)", needs=_CRI_STREAMS
)  # tags are separated by colons; the first says full or partial
_PLAIN = lazy(
    rb'\{"log":"([^"\\]*)(\\n)?","stream":"(stdout|stderr)","time":"([\dT:.Z+-]{19,40})"\}\s*'
)  # Docker's usual line: no JSON parser needed
_RFC3339 = lazy(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?")
_POD_NAME = lazy(r"[\w.-]{1,253}")


@entity
class Piece:
    """One unwrapped line, or a piece of it: ``each`` stands before every segment of the text, ``header`` before the first one."""

    header: bytes
    stream: str
    text: bytes
    goes_on: bool
    each: bytes = b""

    def joined(self) -> bytes:
        body = clean(self.text).removesuffix(b"\n")
        return self.header + self.each + body.replace(b"\n", b"\r" + self.each)


class Unwrapper:
    """Unwraps chunk after chunk.

    ``read`` turns one line into a piece, or None where it is to stay as it is; a chunk that holds none of ``gates`` stays as it is, too.
    """

    def __init__(self, read: Callable[[bytes], Piece | None], gates: tuple[bytes, ...] = ()) -> None:
        self._read, self._gates = read, gates
        self._open: dict[str, Piece] = {}  # stream -> a line that is not complete
        self._held: bytes | None = None  # the last line, while one is not complete: should the file end here, the rest goes with it

    def feed(self, data: bytes) -> bytes:
        """``data`` is whole lines, and so is what comes back; the last line may wait for the next call."""
        if self._gates and self._held is None and not any(gate in data for gate in self._gates):
            return data
        out = [] if self._held is None else [self._held]
        for line in data[:-1].split(b"\n"):
            piece = self._read(line)
            out.append(line if piece is None else self._join(piece))
        self._held = out.pop() if self._open else None
        return b"\n".join([*out, b""])

    def _join(self, piece: Piece) -> bytes:
        begun = self._open.pop(piece.stream, None)
        if begun is not None:
            begun.text += piece.text
            begun.goes_on = piece.goes_on
            piece = begun
        if piece.goes_on and len(piece.text) < LONGEST:
            self._open[piece.stream] = piece
            return b""
        return piece.joined()

    def finish(self) -> bytes:
        """What is left at the end of the file, or before a line that is too long to be unwrapped."""
        if self._held is None:
            return b""
        rest = [self._held, *(piece.joined() for piece in self._open.values())]
        self._open.clear()
        self._held = None
        return b"\r".join(text for text in rest if text) + b"\n"


def unwrapper(data: bytes) -> Unwrapper | None:
    """How the file that begins with ``data`` is to be unwrapped; None for plain text."""
    # As nearly always: no line ends as JSON does, and the first ones name no stream.
    if (b"}" not in data or data.find(b"}\n", 0, LOOK) < 0) and data.find(b" std", 0, LOOK_CRI) < 0:
        return None
    lines = [line for line in data.split(b"\n", 4 * SAMPLE)[: 4 * SAMPLE] if line.strip()][:SAMPLE]
    if not lines:
        return None
    if 2 * sum(_CRI.match(line) is not None for line in lines) > len(lines):
        return Unwrapper(_read_cri, (b" stdout P", b" stderr P"))
    wraps = [wrap for line in lines if (wrap := _load(line)) is not None and _message(wrap) is not None]
    if 2 * len(wraps) <= len(lines):
        return None
    logs = [wrap["log"] for wrap in wraps if wrap.keys() - {"attrs"} == {"log", "stream", "time"} and isinstance(wrap["log"], str)]
    # Docker ends each complete line with \n and cuts at 16 KiB; shippers that have taken the \n off leave no pieces.
    docker = 2 * len(logs) > len(wraps) and any(log.endswith("\n") for log in logs)
    return Unwrapper(_read_docker if docker else _read_json)


def _read_cri(line: bytes) -> Piece | None:
    match = _CRI.match(line)
    if match is None:
        return None
    return Piece(match[1] + b"F ", match[1][-7:].decode(), line[match.end() :], match[2] == b"P")


def _read_docker(line: bytes) -> Piece | None:
    plain = _PLAIN.fullmatch(line)
    if plain is not None:
        return Piece(plain[4] + b" " + plain[3] + b" F ", plain[3].decode(), plain[1], plain[2] is None)
    piece = _read_json(line)
    if piece is not None:
        piece.goes_on = not piece.text.endswith(b"\n")
    return piece


def _read_json(line: bytes) -> Piece | None:
    wrap = _load(line)
    text = None if wrap is None else _message(wrap)
    if wrap is None or text is None:
        return None
    stream = "stderr" if wrap.get("stream") == "stderr" else "stdout"
    time = _time(wrap)
    header = b"" if time is None else f"{time} {stream} F ".encode()
    pod = _pod(wrap)
    each = pod if "[rank" in text else pod + _rank(wrap)
    return Piece(header, f"{pod}{stream}", text.encode("utf-8", "replace"), False, each.encode("utf-8", "replace"))


def _pod(wrap: Mapping[str, Any]) -> str:
    """``"[pod/name/container] "``, as kubectl prefixes lines, where the wrapping names the pod: one file often holds several."""
    resource = wrap.get("resource")
    labels = wrap.get("kubernetes") or (resource.get("labels") if isinstance(resource, dict) else None)
    if not isinstance(labels, dict):
        return ""
    names = [labels.get("pod_name"), labels.get("container_name") or "-"]
    return "[pod/{}/{}] ".format(*names) if all(isinstance(name, str) and _POD_NAME.fullmatch(name) for name in names) else ""


def _rank(wrap: Mapping[str, Any]) -> str:
    """``"[rank3]: "``, as torch tags lines, where the wrapping names the rank in a field of its own; else ""."""
    for fields in (wrap, *(wrap.get(name) for name in _NESTED)):
        if isinstance(fields, dict):
            for name in _RANKS:
                rank = fields.get(name)
                if not isinstance(rank, bool) and isinstance(rank, (int, str)) and _RANK.fullmatch(str(rank)):
                    return f"[rank{int(rank)}]: "
    return ""


def _load(line: bytes) -> dict[str, Any] | None:
    line = line.strip()
    if line[:1] != b"{" or line[-1:] != b"}":
        return None
    try:
        value = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _message(wrap: Mapping[str, Any]) -> str | None:
    """The text that was wrapped; None where there is none."""
    payload = wrap.get("jsonPayload")
    if isinstance(payload, dict):
        wrap = payload
    for key in ("log", "textPayload", "message", "msg"):
        text = wrap.get(key)
        if isinstance(text, str):
            stack = next((stack for name in _STACKS if isinstance(stack := wrap.get(name), str) and stack.strip()), None)
            return text if stack is None else f"{text.rstrip()}\n{stack}"
    told = wrap.get("message")  # torchrun's error.json: {"message": {"message": ..., "extraInfo": {"py_callstack": ..., "timestamp": ...}}}
    if isinstance(told, dict) and isinstance(told.get("message"), str):
        extra = told.get("extraInfo")
        stack = extra.get("py_callstack") if isinstance(extra, dict) else None
        return stack if isinstance(stack, str) and stack.strip() else str(told["message"])
    return None


def _time(wrap: Mapping[str, Any]) -> str | None:
    told = wrap.get("message")
    extra = told.get("extraInfo") if isinstance(told, dict) else None
    payload = wrap.get("jsonPayload")
    for fields in (wrap, payload, extra):
        if not isinstance(fields, dict):
            continue
        for key in _TIMES:
            time = _rfc3339(fields.get(key))
            if time is not None:
                return time
    return None


def _rfc3339(value: Any) -> str | None:
    """A time as text, or as seconds, milliseconds, microseconds or nanoseconds since 1970, in RFC 3339 form; None where it is none."""
    if isinstance(value, str) and _RFC3339.fullmatch(value.strip()):
        return value.strip().replace(" ", "T").replace(",", ".")
    try:
        seconds = float(value)
        if isinstance(value, bool) or not math.isfinite(seconds) or seconds < 1e8:  # 1973
            return None
        while seconds > 1e11:  # the year 5138
            seconds /= 1_000
        moment = datetime.fromtimestamp(seconds, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + (f".{moment.microsecond:06d}" if moment.microsecond else "") + "Z"

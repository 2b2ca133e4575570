"""What a JSON object that wraps a log line says: the one place that knows where in it the message, the time, the host and the rank stand.

The message may lie deeper (``_source``, ``jsonPayload``, ``attributes``): objects are gone into, lists are not (documents.py does that).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from memdoctor.lazy import lazy
from memdoctor.records import record

Fields = Mapping[str, Any]

_MESSAGES = ("log", "textPayload", "message", "msg", "MESSAGE", "@message", "_raw", "Message", "LogMessage", "LogEntry", "logMessage")
_WORDS = ("event", "line", "body")  # a message where a time, a level or a traceback stands beside ...
_PROSE = ("text", "content")  # ... and where nothing but a time or a logger's fields do: data sets have such fields, too
_LEVELS = ("level", "levelname", "severity", "loglevel", "log_level", "record", "logger", "stream", "labels")
_STACKS = ("exc_info", "exception", "stack_trace", "stacktrace", "exc_text", "error.stack_trace", "py_callstack", "traceback", "stack")
_OF_ERRORS = ("error", "exception", "extraInfo")  # objects in which a traceback may stand
_OF_STACKS = frozenset((*_STACKS, *_OF_ERRORS))
_PAYLOADS = ("message", "jsonPayload", "_source", "log_processed")  # objects that hold a message though nothing tells a time
_TIMES = (
    "@timestamp", "timestamp", "time", "ts", "asctime", "datetime", "date", "_time", "TimeGenerated", "TimeGenerated [UTC]", "Timestamp",
    "_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP", "timeUnixNano", "created",
)  # fmt: skip
_RANKS = ("rank", "global_rank", "world_rank", "RANK", "rank_id", "rankId")
_LOCALS = ("local_rank", "LOCAL_RANK")
_PODS = ("pod_name", "podName", "PodName", "pod", "k8s.pod.name", "kubernetes.pod_name", "kubernetes.pod.name")
_CONTAINERS = ("container_name", "containerName", "ContainerName", "container")
_HOSTS = ("_HOSTNAME", "hostname", "host", "nodeName", "node_name", "host.name", "Computer")
_PIDS = ("_PID", "pid", "process", "process_id")
_PROGRAMS = ("SYSLOG_IDENTIFIER", "_COMM", "name")
_BESIDE = ("extra", "context", "fields", "labels", "record", "kubernetes", "resource", "attributes", "host", "pod", "extraInfo", "stream")
_NAMED_BESIDE = frozenset(_BESIDE)
_OF_KUBERNETES = ("apiVersion", "kind")  # an object of its API, no log line
_DEPTH = 4  # of objects in objects
_MOST = 40  # objects looked at for what stands beside the message
_FEWEST = 3  # times that tell an order
_LONGEST_PREFIX = 300  # characters before a JSON object on a line

_NUMBER = lazy(r"\d{1,7}", re.ASCII)
_NAME = lazy(r"[\w.-]{1,253}", re.ASCII)
_PROGRAM = lazy(r"[\w./@-]{1,80}", re.ASCII)
_MOMENT = lazy(r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?", re.ASCII)
_TWELVE = lazy(r"(\d\d?)/(\d\d?)/(\d{4}),? (\d\d?):(\d\d):(\d\d)(\.\d{1,9})? ([AP])M", re.ASCII)
_NANOSECONDS = lazy(r"\d{16,19}", re.ASCII)


@record
class Told:
    """``key`` is where the message stands. ``host`` and ``rank`` are prefixes that stand before each line of it; ``pid`` and ``program`` are texts."""

    text: str
    key: str
    time: str | None
    stream: str
    host: str
    rank: str
    program: str = ""
    sure: bool = False  # a time and a level are told, as loggers do and nothing else

    @property
    def header(self) -> str:
        return "" if self.time is None else f"{self.time} {self.stream} F "


def tell(value: Any, beside: Fields | None = None) -> Told | None:
    """What ``value`` wraps; None where it holds no message. ``beside`` are fields that it shares with others."""
    fields = _fields(value)
    if fields is None or (_OF_KUBERNETES[0] in fields and _OF_KUBERNETES[1] in fields):
        return None
    found = _message([fields])
    if found is None:
        return None
    chain, key, text = found
    places = [*_places(chain, beside)]
    time = _time([*chain, *(fields for _, fields in places[len(chain) :])])
    text = _with_numbers(text, chain[-1])
    pod = _pod(places)
    host, program = (pod, "") if pod else _host(places, time)
    rank = "" if "[rank" in text else _rank(places)
    sure = time is not None and any(isinstance(chain[-1].get(name), (str, int, dict)) for name in _LEVELS)
    return Told(text, key, time, "stderr" if fields.get("stream") == "stderr" else "stdout", host, rank, program, sure)


def newest_first(told: Sequence[Told]) -> bool:
    """True where the messages of a sample stand in the order in which services list them unless told otherwise: the last one first."""
    times = [each.time for each in told if each.time is not None]
    return len(set(times)) >= _FEWEST and times == sorted(times, reverse=True)


def load(line: bytes) -> tuple[bytes, Any] | None:
    """What stands before the JSON object that ``line`` ends with, and the object; None where it does not end so."""
    line = line.strip()
    if line[-1:] != b"}":
        return None
    start = 0 if line[:1] == b"{" else line.find(b'{"', 0, _LONGEST_PREFIX)
    if start < 0:
        return None
    try:
        value = json.loads(line[start:].decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return line[:start], value


def _fields(value: Any) -> Fields | None:
    """``value`` as an object: also ``[{"field": name, "value": ...}, ...]``, and ``[nanoseconds, message]``."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, list) or not value:
        return None
    if all(isinstance(each, dict) and isinstance(each.get("field"), str) for each in value):
        return {each["field"]: each.get("value") for each in value}
    if len(value) in (2, 3) and all(isinstance(each, str) for each in value[:2]) and _NANOSECONDS.fullmatch(value[0]):
        return {"timestamp": value[0], "log": value[1]}
    return None


def _message(chain: list[Fields]) -> tuple[list[Fields], str, str] | None:
    """The objects from the outermost to the one that holds the message, its key, and the message with the traceback that belongs to it."""
    fields = chain[-1]
    stack = _stack(fields)
    for key in _MESSAGES:
        if key in fields and (text := _text(fields[key])) is not None:
            return chain, key, _joined(text, stack)
    for key in _WORDS:
        text = _text(fields.get(key))
        if text is not None and (stack or _timed(chain) or any(name in fields for name in _LEVELS)):
            return chain, key, _joined(text, stack)
    for key in _PROSE:
        text = _text(fields.get(key))
        if text is not None and (stack or (_timed(chain) and (len(fields) == 2 or any(name in fields for name in _LEVELS)))):
            return chain, key, _joined(text, stack)
    if stack and "Traceback (most recent call last)" in stack:
        return chain, "", stack
    if len(chain) > _DEPTH:
        return None
    for name, inner in fields.items():
        if isinstance(inner, dict):
            found = _message([*chain, inner])
            if found is not None and (name in _PAYLOADS or _timed(found[0])):
                return found
    return None


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and len(value) == 1:  # OpenTelemetry
        value = value.get("stringValue")
        return value if isinstance(value, str) else None
    if not isinstance(value, list) or not value:
        return None
    if all(isinstance(each, str) for each in value):
        return "\n".join(value)
    try:  # the journal writes what holds an escape sequence as bytes
        return bytes(value).decode("utf-8", "replace")
    except (TypeError, ValueError):
        return None


def _joined(text: str, stack: str) -> str:
    if not stack or stack.strip() in text:
        return text
    # torchrun's error.json has the exception as its message, and again at the end of the traceback
    return stack if text.strip() and stack.rstrip().endswith(text.strip()) else f"{text.rstrip()}\n{stack}"


def _stack(fields: Fields) -> str:
    """The traceback in a field of its own, or ""."""
    if _OF_STACKS.isdisjoint(fields):  # as nearly always
        return ""
    for place in (fields, *(inner for name in _OF_ERRORS if isinstance(inner := fields.get(name), dict))):
        for name in _STACKS:
            value = place.get(name)
            if isinstance(value, str) and "\n" in value.strip():
                return value
            if isinstance(value, list) and value:
                text = "".join(value) if all(isinstance(each, str) for each in value) else _drawn(value)
                if text:
                    return text
    return ""


def _drawn(chain: Sequence[Any]) -> str:
    """structlog's list of exceptions, the last first, as Python prints them."""
    parts: list[str] = []
    for each in reversed(chain):
        frames = each.get("frames") if isinstance(each, dict) else None
        if not isinstance(frames, list) or not isinstance(each.get("exc_type"), str):
            return ""
        lines = ["Traceback (most recent call last):"]
        for frame in frames:
            if isinstance(frame, dict):
                lines.append(f'  File "{frame.get("filename")}", line {frame.get("lineno")}, in {frame.get("name")}')
                if isinstance(frame.get("line"), str) and frame["line"].strip():
                    lines.append(f"    {frame['line'].strip()}")
        lines.append(f"{each['exc_type']}: {each.get('exc_value', '')}".removesuffix(": "))
        parts.append("\n".join(lines))
    return "\n\nDuring handling of the above exception, another exception occurred:\n\n".join(parts)


def _with_numbers(text: str, fields: Fields) -> str:
    """A message that stands for the numbers of a step goes with them."""
    if "loss" in text or not any(name.endswith(("loss", "Loss")) for name in fields) or "\n" in text.strip():
        return text
    numbers = {name: value for name, value in fields.items() if isinstance(value, (int, float)) and not isinstance(value, bool)}
    return f"{text.rstrip()} {json.dumps(numbers)}" if any(name.endswith(("loss", "Loss")) for name in numbers) else text


def _places(chain: Sequence[Fields], beside: Fields | None) -> Iterator[tuple[str, Fields]]:
    """The objects in which time, host and rank may stand, with their names: those around the message, and those that loggers put beside it."""
    waiting = [("", fields) for fields in chain]
    if beside is not None:
        waiting.append(("", beside))
    for number in range(_MOST):
        if number == len(waiting):
            return
        name, fields = waiting[number]
        yield name, fields
        if not _NAMED_BESIDE.isdisjoint(fields):
            waiting.extend((key, inner) for key in _BESIDE if isinstance(inner := fields.get(key), dict) and inner not in chain)


def _first(places: Sequence[tuple[str, Fields]], names: Sequence[str], form: re.Pattern[str]) -> str:
    for _, fields in places:
        for name in names:
            value = fields.get(name)
            if value is None:
                continue
            if isinstance(value, (str, int)) and not isinstance(value, bool) and form.fullmatch(str(value)):
                return str(value)
    return ""


def _pod(places: Sequence[tuple[str, Fields]]) -> str:
    """``"[pod/name/container] "``, as kubectl prefixes lines, where the wrapping names the pod: one file often holds several."""
    pod = _first(places, _PODS, _NAME) or _first([place for place in places if place[0] == "pod"], ("name",), _NAME)
    return f"[pod/{pod}/{_first(places, _CONTAINERS, _NAME) or '-'}] " if pod else ""


def _host(places: Sequence[tuple[str, Fields]], time: str | None) -> tuple[str, str]:
    """The host as a pod's name stands, or, where a process is named, ``"host program[pid]: "``, as the journal prefixes lines after a time."""
    host = _first(places, _HOSTS, _NAME) or _first([place for place in places if place[0] == "host"], ("name",), _NAME)
    if not host:
        return "", ""
    pid = _first(places, _PIDS, _NUMBER)
    if pid and time is not None:
        return "", f"{host} {_first(places, _PROGRAMS, _PROGRAM) or '-'}[{pid}]: "
    return f"[pod/{host}/-] ", ""


def _rank(places: Sequence[tuple[str, Fields]]) -> str:
    """``"[rank3]: "``, as torch tags lines, where the wrapping names the rank in a field of its own; else ""."""
    rank, local = _first(places, _RANKS, _NUMBER), _first(places, _LOCALS, _NUMBER)
    return (f"[default{int(local)}]:" if local else "") + (f"[rank{int(rank)}]: " if rank else "")


def _timed(chain: Sequence[Fields]) -> bool:
    return _time(chain) is not None or _time([inner for name in _BESIDE if isinstance(inner := chain[-1].get(name), dict)]) is not None


def _time(places: Sequence[Fields]) -> str | None:
    for fields in places:
        for key in _TIMES:
            if key in fields and (time := _rfc3339(fields[key])) is not None:
                return time
    return None


def _rfc3339(value: Any) -> str | None:
    """A time as text, or as seconds, milliseconds, microseconds or nanoseconds since 1970, in RFC 3339 form; None where it is none."""
    if isinstance(value, dict):  # loguru's, and that of protocol buffers
        return next((time for key in ("timestamp", "seconds", "repr") if (time := _rfc3339(value.get(key))) is not None), None)
    if isinstance(value, str):
        text = value.strip()
        if _MOMENT.fullmatch(text):
            return text.replace("/", "-").replace(" UTC", "Z").replace(" ", "T", 1).replace(" ", "").replace(",", ".")
        if twelve := _TWELVE.fullmatch(text):
            month, day, year, hour = (int(twelve[number]) for number in range(1, 5))
            return f"{year}-{month:02}-{day:02}T{hour % 12 + 12 * (twelve[8] == 'P'):02}:{twelve[5]}:{twelve[6]}{twelve[7] or ''}"
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

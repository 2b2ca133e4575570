"""Logs that a container engine or a log service wrapped, line by line, in JSON or in CRI form: the message comes out again.

One stored line stays one line, so line numbers hold: line ends inside a message become ``\\r`` (the end of a segment that does not count as
a line), and where the engine cut a long line in pieces, the line of the last piece holds all of it and the lines before are empty.
"""

from __future__ import annotations

from collections.abc import Callable

from memdoctor.lazy import lazy
from memdoctor.sources.logs.documents import Document, document
from memdoctor.sources.logs.envelopes import Told, load, newest_first, tell
from memdoctor.sources.logs.pieces import Piece, after
from memdoctor.sources.logs.yaml_records import YamlRecords, yaml_records

SAMPLE = 50  # non-empty lines looked at to decide ...
LOOK = 1_048_576  # ... and bytes,
LOOK_CRI = 4_096  # or those in which the first line in CRI form begins
LONGEST = 524_288  # bytes up to which the pieces of a line are joined
SURE = 3  # lines that only a logger writes, where most lines are plain text
_CRI_STREAMS = (b" stdout ", b" stderr ")
_CRI = lazy(
    rb"(\d{4}-\d\d-\d\dT\S{8,26} (?:stdout|stderr) )([FP])(?::\S*)?(?: |$)", needs=_CRI_STREAMS
)  # tags are separated by colons; the first says full or partial
_PLAIN = lazy(
    rb'\{"log":"([^"\\]*)(\\n)?","stream":"(stdout|stderr)","time":"([\dT:.Z+-]{19,40})"\}\s*'
)  # Docker's usual line: no JSON parser needed


class Unwrapper:
    """Unwraps chunk after chunk.

    ``read`` turns one line into a piece, or None where it is to stay as it is; a chunk that holds none of ``gates`` stays as it is, too.
    """

    newest_first = False  # the last message is the first line

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


def unwrapper(data: bytes) -> Unwrapper | Document | YamlRecords | None:
    """How the file that begins with ``data`` is to be unwrapped; None for plain text."""
    # As nearly always: no line ends as JSON does, and the first ones name no stream.
    if (b"}" not in data or data.find(b"}\n", 0, LOOK) < 0) and data.find(b" std", 0, LOOK_CRI) < 0:
        return document(data) or yaml_records(data)
    lines = [line for line in data.split(b"\n", 4 * SAMPLE)[: 4 * SAMPLE] if line.strip()][:SAMPLE]
    if not lines:
        return None
    matches = [match for line in lines if (match := _CRI.match(line)) is not None]
    if 2 * len(matches) > len(lines):
        layered = any(_told(match.string[match.end() :]) is not None for match in matches)
        return Unwrapper(_read_cri, (b" stdout P", b" stderr P", *((b"}\n",) if layered else ())))
    wraps = [wrap for line in lines if (wrap := _told(line)) is not None]
    if 2 * len(wraps) <= len(lines):
        return Unwrapper(_read_sure, (b"}\n",)) if _is_mixed(data) else document(data) or yaml_records(data)
    # Docker ends each complete line with \n and cuts at 16 KiB; shippers that have taken the \n off leave no pieces.
    logs = [told.text for line in lines if (told := _dockers(line)) is not None]
    docker = 2 * len(logs) > len(wraps) and any(log.endswith("\n") for log in logs)
    unwrapping = Unwrapper(_read_docker if docker else _read_json)
    unwrapping.newest_first = newest_first(wraps)
    return unwrapping


def _is_mixed(data: bytes) -> bool:
    """True where some lines of a plain log are a logger's JSON beyond doubt."""
    end, seen, sure = data.find(b"}\n", 0, LOOK), 0, 0
    while end >= 0 and seen < 4 * SAMPLE:
        line = data[data.rfind(b"\n", 0, end) + 1 : end + 1]
        told = _told(line) if b'{"' in line[:LOOK_CRI] else None
        sure += told is not None and told.sure
        if sure == SURE:
            return True
        seen += 1
        end = data.find(b"}\n", end + 2, LOOK)
    return False


def _told(line: bytes) -> Told | None:
    loaded = load(line)
    return None if loaded is None else tell(loaded[1])


def _dockers(line: bytes) -> Told | None:
    """What is told where ``line`` is of Docker's own form."""
    loaded = load(line)
    if loaded is None or loaded[1].keys() - {"attrs"} != {"log", "stream", "time"}:
        return None
    return tell(loaded[1])


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
    loaded = load(line)
    told = None if loaded is None else tell(loaded[1])
    return None if loaded is None or told is None else after(loaded[0], told)


def _read_sure(line: bytes) -> Piece | None:
    loaded = load(line)
    told = None if loaded is None else tell(loaded[1])
    return after(loaded[0], told) if loaded is not None and told is not None and told.sure else None

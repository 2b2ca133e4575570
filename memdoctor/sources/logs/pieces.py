"""One unwrapped line, or a piece of it, as it goes on into the scan: what its wrapping said stands before it in forms that prefixes.py reads."""

from __future__ import annotations

from memdoctor.lazy import lazy
from memdoctor.records import entity
from memdoctor.sources.logs.cleaning import clean
from memdoctor.sources.logs.envelopes import Told, load, tell

LAYERS = 3  # of wrappings within each other
_LOOK = 300  # bytes of a message in which a second wrapping begins
_CLOCK = lazy(rb"\d\d:\d\d:\d\d")
_STAMP = lazy(rb"[\d\s:.,/TZ+\[\]()-]*")
_TAGGED = lazy(rb"([\d\s:.,/TZ+-]{8,64}[\t ])[\w.-]{1,120}(?:\t|: )")  # Fluentd's time and tag
_EVENT_STREAM = b"data: "  # before each object of a server that sends events


@entity
class Piece:
    """``header``, ``host``, ``between`` and ``rank`` stand before every segment of ``text``: each is to be read by itself."""

    header: bytes
    stream: str
    text: bytes
    goes_on: bool
    host: bytes = b""
    between: bytes = b""  # what stood before a second wrapping
    rank: bytes = b""

    def joined(self) -> bytes:
        body = clean(self.text).removesuffix(b"\n")
        for _ in range(LAYERS):
            inner = _unfolded(body)
            if inner is None:
                break
            prefix, told = inner
            self._take(prefix, told)
            body = clean(told.text.encode("utf-8", "replace")).removesuffix(b"\n")
        each = self.header + self.host + self.between + (b"" if b"[rank" in body else self.rank)
        return each + body.replace(b"\n", b"\r" + each)

    def _take(self, prefix: bytes, told: Told) -> None:
        """What a wrapping within this one says: of a time and a host the outermost counts, of a rank the innermost."""
        if prefix != _EVENT_STREAM:
            tagged = _TAGGED.fullmatch(prefix)
            self.between += prefix if tagged is None else tagged[1].rstrip() + b" "
        timed = self.header != b"" or _CLOCK.search(self.between) is not None
        if not timed:
            self.between += told.header.encode()
        if not self.host and _STAMP.fullmatch(self.between):
            self.host = told.host.encode()
        self.rank = told.rank.encode() or self.rank


def piece_of(told: Told) -> Piece:
    """The line that a JSON object holds."""
    header, host = told.header.encode(), told.host.encode()
    if told.program:  # the journal's form
        header, host = b"", f"{told.time} {told.program}".encode()
    return Piece(header, f"{told.host}{told.stream}", told.text.encode("utf-8", "replace"), False, host, rank=told.rank.encode())


def after(prefix: bytes, told: Told) -> Piece:
    """The line that a JSON object holds before which ``prefix`` stands."""
    piece = piece_of(told)
    if not prefix or prefix == _EVENT_STREAM:
        return piece
    piece = Piece(b"", piece.stream, piece.text, False)
    piece._take(prefix, told)
    return piece


def _unfolded(body: bytes) -> tuple[bytes, Told] | None:
    """The wrapping of which ``body`` is nothing but an object, behind a prefix perhaps."""
    if b"\n" in body or body.find(b'{"', 0, _LOOK) < 0:
        return None
    loaded = load(body)
    told = None if loaded is None else tell(loaded[1])
    return None if loaded is None or told is None else (loaded[0], told)

"""Tracebacks that rich draws in a box, the message below it; also with the box in ASCII or its characters lost."""

from __future__ import annotations

from memdoctor.lazy import lazy
from memdoctor.sources.logs.tracebacks.message import MAX_EMPTY, Message
from memdoctor.sources.logs.tracebacks.raised import Chain, Draft, Link
from memdoctor.sources.logs.tracebacks.shapes import CONNECTOR, is_rich_head, raised_here
from memdoctor.sources.logs.tracebacks.strangers import Strangers
from memdoctor.sources.logs.tracebacks.wrapping import Wrapping

BORDER = r"(?:[│┃|?]|â”‚|�{1,3})"  # the third is UTF-8 read as Windows-1252
LEFT = lazy(rf"^\s*{BORDER}(?: (?P<inner>.*))?$")
_RIGHT = lazy(rf"\s*{BORDER}$")
FRAME = lazy(r"^(?P<file>(?:[/~<.]|[A-Za-z]:[\\/]|\w).{0,2000}?):(?P<line>\d{1,9}) in (?P<function>\S.{0,500})$")
CURRENT = lazy(rf"^(?:❱|>|\?|â\S{{1,3}}|�{{1,3}}) {{0,8}}(?P<line>\d{{1,9}}) (?:{BORDER} ?)*(?P<source>.*)$")
_PATH = lazy(r"^(?:[/~<]|[A-Za-z]:[\\/])\S")
MAX_PATH_LINES = 4  # over which a long path may be wrapped


def inner_text(text: str) -> str | None:
    """What stands between the borders; None where the line has none."""
    match = LEFT.match(text)
    if match is None:
        return None
    inner = match["inner"] or ""
    right = _RIGHT.search(inner[-12:])
    return (inner[: len(inner) - (len(inner[-12:]) - right.start())] if right else inner).rstrip()


def is_edge(text: str) -> bool:
    """The last line of a box: ``╰────╯``."""
    text = text.strip()
    return len(text) >= 10 and not any(c.isspace() or (c.isascii() and c.isalnum()) for c in text)


class RichBox:
    """Reads boxes, the exception line below each, and the connectors between them."""

    def __init__(self, strangers: Strangers) -> None:
        self.chain = Chain()
        self._strangers = strangers
        self._draft: Draft | None = None
        self._message: Message | None = None
        self._next: Link | None = "first"
        self._inside = False
        self._path: list[str] = []
        self._indent = self._width = 0
        self._empty = 0

    def feed(self, text: str, number: int, foreign: bool, alone: bool) -> bool:
        if not text.strip():
            self._empty += 1
            if self._message is not None:
                self._message.empty()
            return self._empty <= MAX_EMPTY
        self._empty = 0
        if is_rich_head(text):
            if self._next is None:
                return False
            self._draft = self.chain.open(self._next, number)
            self._next, self._message, self._inside = None, None, True
            self._indent, self._width = len(text) - len(text.lstrip()), len(text.strip())
            return self._strangers.home()
        if foreign or self._draft is None:
            return (self._inside or self._message is None) and self._strangers.another()
        if self._inside:
            return self._within(text, self._draft)
        if CONNECTOR.match(text) and self._message is not None:
            self._next = "after"
            return self._strangers.home()
        if self._message is None:
            inside = text[self._indent :] if not text[: self._indent].strip() else text
            raised = raised_here(inside, self._draft.source)
            if raised is None:
                return self._strangers.another()
            self._draft.raised(*raised, number)
            self._message = Message(self._draft, len(text) - len(inside), alone, inside, Wrapping(self._width, inside))
            return self._strangers.home()
        if self._next is not None:
            return self._strangers.another()
        return self._message.feed(text, number)

    def finish(self) -> Chain:
        return self.chain

    def _within(self, text: str, draft: Draft) -> bool:
        if is_edge(text):
            self._inside = False
            return self._strangers.home()
        inner = inner_text(text)
        if inner is None:
            return self._strangers.another()
        current = CURRENT.match(inner.strip())
        if current is not None:
            draft.add_source(current["source"].lstrip("│|? "))
        elif self._path or _PATH.match(inner) or FRAME.match(inner):
            self._frame(inner, draft)
        return self._strangers.home()

    def _frame(self, inner: str, draft: Draft) -> None:
        """A frame's path may be wrapped over lines, in the middle of a word."""
        self._path.append(inner)
        frame = FRAME.match("".join(self._path)) or FRAME.match(" ".join(self._path))
        if frame is not None:
            draft.add_frame(frame["file"], frame["line"], frame["function"])
        if frame is not None or not inner or len(self._path) == MAX_PATH_LINES:
            self._path.clear()

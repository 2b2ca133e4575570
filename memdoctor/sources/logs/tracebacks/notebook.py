"""IPython's traceback layout, which notebooks and launchers of notebooks print: the class first, the message last."""

from __future__ import annotations

from memdoctor.lazy import lazy
from memdoctor.sources.logs.tracebacks.message import MAX_EMPTY, Message
from memdoctor.sources.logs.tracebacks.raised import Chain, Draft, Link
from memdoctor.sources.logs.tracebacks.shapes import CONNECTOR, bare_name, notebook_type, raised_here
from memdoctor.sources.logs.tracebacks.strangers import Strangers

_FILE = lazy(r"^File (?P<file>.{1,2000}?):(?P<line>\d{1,9}), in (?P<function>[\w.<>]{1,300})")
_CELL = lazy(r"^(?P<file>(?:Cell |Input )?In ?\[\d+\])(?:, line (?P<line>\d{1,9}))?(?:, in (?P<function>[\w.<>]{1,300}))?")
_OLD = lazy(r"^(?P<file>(?:[/~]|[A-Za-z]:\\).{1,2000}?|<ipython-input[^>]{1,200}>) in (?P<function>[\w.<>]{1,300})")
_ARROW = lazy(r"^-+> ?(?P<line>\d{1,9})(?: (?P<source>.*))?$")


class Notebook:
    """Reads one traceback with its chain."""

    def __init__(self, strangers: Strangers) -> None:
        self.chain = Chain()
        self._strangers = strangers
        self._draft: Draft | None = None
        self._type = ""
        self._message: Message | None = None
        self._next: Link | None = "first"
        self._empty = 0

    def feed(self, text: str, number: int, foreign: bool, alone: bool) -> bool:
        if not text.strip():
            self._empty += 1
            if self._message is not None:
                self._message.empty()
            return self._empty <= MAX_EMPTY
        self._empty = 0
        named = notebook_type(text)
        if named is not None:
            if self._next is None:
                return False
            self._draft, self._type, self._message = self.chain.open(self._next, number), named, None
            self._next = None
            return self._strangers.home()
        if self._draft is None or foreign:
            return self._message is None and self._strangers.another()
        if self._message is None:
            return self._within(text, number, self._draft, alone)
        if CONNECTOR.match(text):
            self._next = "after"
            return self._strangers.home()
        if self._next is not None:
            return self._strangers.another()
        return self._message.feed(text, number)

    def finish(self) -> Chain:
        return self.chain

    def _within(self, text: str, number: int, draft: Draft, alone: bool) -> bool:
        raised = raised_here(text, f"raise {self._type}") if text[0] not in " -" else None
        if raised is not None and bare_name(raised[0]) == bare_name(self._type):
            draft.raised(*raised, number)
            self._message = Message(draft, 0, alone, text)
            return self._strangers.home()
        arrow = _ARROW.match(text)
        if arrow is not None:
            draft.add_line_number(arrow["line"])
            draft.add_source(arrow["source"] or "")
            return self._strangers.home()
        frame = _FILE.match(text) or _CELL.match(text) or _OLD.match(text)
        if frame is not None:
            found = frame.groupdict()
            draft.add_frame(found["file"], found.get("line") or "", found.get("function") or "<module>")
            return self._strangers.home()
        return self._strangers.home() if text[0] in " -(" else self._strangers.another()

"""Python's own traceback layout, and what libraries make of it: worker tracebacks, Ray, exception groups, torchrun's box."""

from __future__ import annotations

import re

from memdoctor.sources.logs.tracebacks.echoes import Echoes
from memdoctor.sources.logs.tracebacks.message import MAX_EMPTY, Message
from memdoctor.sources.logs.tracebacks.mixture import Mixture
from memdoctor.sources.logs.tracebacks.raised import Chain, Draft, Link
from memdoctor.sources.logs.tracebacks.shapes import (
    CONNECTOR,
    FRAME,
    INNER_HINT,
    MARKER,
    QUOTES,
    REPEATED,
    Head,
    lone_exception,
    raised_here,
    read_head,
    read_margin,
)
from memdoctor.sources.logs.tracebacks.strangers import Strangers


class Plain:
    """Reads one traceback with its whole chain. ``strangers`` counts the lines between that are not of it."""

    def __init__(self, strangers: Strangers) -> None:
        self.chain = Chain()
        self._strangers = strangers
        self._echoes = Echoes()
        self._mixture: Mixture | None = None
        self._draft: Draft | None = None
        self._message: Message | None = None  # set once the exception line was read
        self._next: Link | None = "first"  # how the traceback whose head is due hangs together with the one before
        self._base = 0  # indentation of the whole traceback
        self._flat = False  # the indentation was lost
        self._prefix = ""
        self._group = False
        self._raised_at: dict[int, Draft] = {}  # place in the echoed lines -> the exception raised there
        self._apart: dict[str, Draft] = {}
        self._empty = 0
        self._after_frame = False
        self._bare = self._extra = 0  # frames without source, lines beside the source: signs of a mixture

    def feed(self, text: str, number: int, foreign: bool, alone: bool) -> bool:
        """Whether ``text`` belongs here. ``foreign``: a logger wrote it; ``alone``: the stream is one process's."""
        if self._prefix:
            text = text.removeprefix(self._prefix)
        if not text.strip():
            return self._blank()
        if foreign:
            return self._stranger() if self._mixture is None else self._mixture.stranger()
        if self._group:
            within = self._within_group(text)
            if isinstance(within, bool):
                return within
            text = within
        self._empty = 0
        if self._mixture is not None:
            return self._mixture.feed(text, number)
        place = self._echoes.follow(text)
        if place is not None:
            if place in self._raised_at:
                self._raised_at[place].repeats += 1
            return self._strangers.home()
        return self._line(text, number, alone)

    def finish(self) -> Chain:
        last = max(self._raised_at, default=-1)
        stuck = self._echoes.joined > 1 and self._echoes.behind(last)
        if stuck and (self._bare or self._extra) and self._mixture is None:
            for draft in self.chain.drafts:
                draft.spoil()
        return self.chain

    # --- kinds of lines ---------------------------------------------------------------------------------------------

    def _line(self, text: str, number: int, alone: bool) -> bool:
        head = read_head(text)
        if head is not None:
            return self._head(head, text, number)
        if CONNECTOR.match(text) and self._draft is not None:
            return self._connector(text)
        frame = FRAME.match(text)
        if frame is not None:
            return self._frame(frame, text, number)
        if self._message is not None or self._next == "part":
            return self._after_exception(text, number, alone)
        return self._between_frames(text, number, alone)

    def _head(self, head: Head, text: str, number: int) -> bool:
        if head.original:
            link: Link | None = "inner"
        elif head.rank is not None and self._draft is not None:
            link = "part"
        else:
            link = self._next
        if link is None:
            if self._message is not None and not self._behind():
                return False  # the next traceback
            self._echoes.join()
            return self._strangers.home()
        if link == "first":
            self._prefix, self._base = head.prefix, head.indent
        self._group = self._group or head.group
        self._open(link, number, head.rank)
        self._echoes.add(text)
        return self._strangers.home()

    def _connector(self, text: str) -> bool:
        if self._message is None and not self._unnamed():
            return self._stranger()
        self._next = "after"
        self._echoes.add(text)
        return self._strangers.home()

    def _frame(self, frame: re.Match[str], text: str, number: int) -> bool:
        draft = self._draft
        if draft is None or self._next is not None:
            draft = self._open(self._next or "first", number)
        elif self._message is not None:
            if self._wraps(draft):
                draft = self._open("inner", number)
            elif self._echoes.joined > 1:
                return self._mix(text, number)
            else:
                return self._continue(text, number)
        if not draft.has_frames:
            indent = len(frame["indent"])
            self._base, self._flat = max(0, indent - 2), indent == 0
        self._bare += self._after_frame and not frame["file"].startswith("<")
        self._after_frame = True
        draft.add_frame(frame["file"], frame["line"], frame["function"] or "")
        self._echoes.add(text)
        return self._strangers.home()

    def _between_frames(self, text: str, number: int, alone: bool) -> bool:
        draft = self._draft
        if draft is None:
            return self._stranger()
        indent = len(text) - len(text.lstrip()) - self._base
        if MARKER.match(text) or REPEATED.match(text):
            self._echoes.add(text)
            return self._strangers.home()
        raised = None
        if indent <= 1 and not (self._flat and self._after_frame):
            raised = raised_here(text, draft.source)
        if raised is not None:
            self._raise(raised, draft, text, number, alone)
        elif indent >= 3 or (self._flat and self._after_frame):
            self._extra += not self._after_frame
            self._after_frame = False
            draft.add_source(text)
            self._echoes.add(text)
        elif indent != 2:
            self._strangers.last = (text, number)
            return self._stranger()
        return self._strangers.home()

    def _after_exception(self, text: str, number: int, alone: bool) -> bool:
        if self._next == "part":  # a member of an exception group that has no traceback
            raised = raised_here(text, "")
            if raised is not None:
                self._raise(raised, self._open("part", number), text, number, alone)
                return True
        if INNER_HINT.match(text):
            self._next = "inner"
            return self._strangers.home()
        if text.strip() in QUOTES:
            return self._strangers.home()
        if self._next is not None:
            return self._stranger()
        if self._behind():
            found = lone_exception(text)
            if found is not None:
                return self._raise_apart(found, text, number, alone)
        return self._continue(text, number)

    def _continue(self, text: str, number: int) -> bool:
        if self._message is not None and self._message.feed(text, number):
            self._echoes.add(text)
            return self._strangers.home()
        return self._behind() and self._stranger()

    def _blank(self) -> bool:
        self._empty += 1
        if self._message is not None:
            self._message.empty()
        return self._empty <= MAX_EMPTY

    def _stranger(self) -> bool:
        if self._message is not None and self._next is None and not self._behind():
            return False
        return self._strangers.another()

    # --- exceptions -------------------------------------------------------------------------------------------------

    def _open(self, link: Link, number: int, rank: int | None = None) -> Draft:
        self._draft = self.chain.open(link, number, rank)
        self._message, self._next = None, None
        self._after_frame = False
        return self._draft

    def _raise(self, raised: tuple[str, str], draft: Draft, text: str, number: int, alone: bool) -> None:
        draft.raised(*raised, number)
        self._message = Message(draft, self._base, alone, text)
        self._raised_at[len(self._echoes.lines)] = draft
        self._echoes.add(text)
        self._after_frame = False

    def _raise_apart(self, raised: tuple[str, str], text: str, number: int, alone: bool) -> bool:
        """Another process raises with other words: from the same frames, or from ones that are mixed with these."""
        same = self._apart.get(text)
        for place, draft in self._raised_at.items():
            if self._echoes.step_over(place):
                if same is not None:
                    same.repeats += 1
                else:
                    self._apart[text] = other = self.chain.open("apart", number)
                    other.share_frames(draft)
                    other.first_line = draft.first_line
                    other.raised(*raised, number)
                    self._message = Message(other, self._base, alone, text)
                return self._strangers.home()
        return self._mix(text, number)

    def _unnamed(self) -> bool:
        """A class that looked like a stranger's line: only an exception can stand before a connector."""
        if self._draft is None or self._strangers.last is None:
            return False
        text, number = self._strangers.last
        name, _, message = text.strip().partition(": ")
        self._draft.raised(name.rstrip(":")[:200], message, number)
        return True

    @staticmethod
    def _wraps(draft: Draft) -> bool:
        """Ray prints the frames of the remote call under the exception line."""
        return "RayTaskError" in draft.type or draft.message.startswith("ray::")

    def _behind(self) -> bool:
        return self._echoes.joined > 1 and self._echoes.behind(max(self._raised_at, default=len(self._echoes.lines) - 1))

    def _mix(self, text: str, number: int) -> bool:
        heads = self._echoes.joined + sum(draft.link != "apart" for draft in self.chain.drafts) - 1
        self._mixture = Mixture(self.chain, heads, self._strangers)
        return self._mixture.feed(text, number)

    def _within_group(self, text: str) -> str | bool:
        """The line without the group's margin, or whether a line that has none belongs to the group."""
        kind, inner = read_margin(text)
        match kind:
            case "inside":
                return inner if inner.strip() else self._blank()
            case "member":
                self._next, self._message = "part", None
                return self._strangers.home()
            case "end":
                return self._strangers.home()
        if not CONNECTOR.match(text):
            return False
        self._group = False
        return self._connector(text)

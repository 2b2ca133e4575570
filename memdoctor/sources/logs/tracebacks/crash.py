"""What faulthandler prints when an interpreter dies: a message, then each thread's frames, innermost first."""

from __future__ import annotations

from memdoctor.lazy import lazy
from memdoctor.sources.logs.tracebacks.raised import Chain, Draft
from memdoctor.sources.logs.tracebacks.shapes import CRASH_TEXT, FRAME
from memdoctor.sources.logs.tracebacks.strangers import Strangers

MAX_EMPTY = 3
_THREAD = lazy(r"^(?P<current>Current )?[Tt]hread 0x[0-9A-Fa-f]+ (?:\[.{0,200}\] )?\(most recent call first\):$")
_OTHER = lazy(r"^(?:\s+\S|Python runtime state: |Current thread's C stack trace)")
_LAST = "Extension modules: "


class Crash:
    """Reads ``Fatal Python error: …`` and the frames of the thread that died (the first one where none is named)."""

    def __init__(self, strangers: Strangers) -> None:
        self.chain = Chain()
        self._strangers = strangers
        self._draft: Draft | None = None
        self._wanted = self._seen_thread = self._over = False
        self._empty = 0

    def feed(self, text: str, number: int, foreign: bool, alone: bool) -> bool:
        if self._over:
            return False
        if not text.strip():
            self._empty += 1
            return self._empty <= MAX_EMPTY
        self._empty = 0
        if text.startswith(CRASH_TEXT):
            if self._draft is not None:
                return False
            self._draft = self.chain.open("first", number)
            self._draft.reverse = True
            self._draft.raised(CRASH_TEXT.removesuffix(": "), text.removeprefix(CRASH_TEXT), number)
            return self._strangers.home()
        if foreign or self._draft is None:
            return self._strangers.another()
        thread = _THREAD.match(text)
        if thread is not None:
            self._thread(self._draft, thread["current"] is not None)
            return self._strangers.home()
        frame = FRAME.match(text)
        if frame is not None and self._seen_thread:
            if self._wanted:
                self._draft.add_frame(frame["file"], frame["line"], frame["function"] or "")
            return self._strangers.home()
        if text.startswith(_LAST):
            self._over = True
            return self._strangers.home()
        return self._strangers.home() if _OTHER.match(text) else self._strangers.another()

    def finish(self) -> Chain:
        return self.chain

    def _thread(self, draft: Draft, current: bool) -> None:
        self._wanted = current or not self._seen_thread
        if current and self._seen_thread:
            draft.drop_frames()
        self._seen_thread = True

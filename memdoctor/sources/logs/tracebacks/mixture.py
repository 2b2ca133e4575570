"""Different tracebacks mixed line by line in one stream: which frame is whose cannot be told, the exception lines still can be read."""

from __future__ import annotations

from memdoctor.sources.logs.tracebacks.raised import Chain, Draft
from memdoctor.sources.logs.tracebacks.shapes import CONNECTOR, FRAME, lone_exception, read_head
from memdoctor.sources.logs.tracebacks.strangers import Strangers

MAX_DISTINCT = 64


class Mixture:
    """Goes on with a chain that turned out to be a mixture of ``heads`` tracebacks."""

    __slots__ = ("_chain", "_found", "_heads", "_raised", "_strangers")

    def __init__(self, chain: Chain, heads: int, strangers: Strangers) -> None:
        self._chain, self._heads, self._strangers = chain, heads, strangers
        self._found: dict[tuple[str, str], Draft] = {}
        self._raised = 0
        for draft in chain.drafts:
            draft.spoil()
            if draft.type:
                self._found[draft.type, draft.message] = draft
                self._raised += draft.repeats

    def feed(self, text: str, number: int) -> bool:
        if read_head(text) is not None:
            self._heads += 1
            return self._strangers.home()
        found = lone_exception(text)
        if found is not None:
            self._raised += 1
            if found in self._found:
                self._found[found].repeats += 1
            elif len(self._found) < MAX_DISTINCT:
                self._found[found] = draft = self._chain.open("apart", number)
                draft.spoil()
                draft.raised(*found, number)
            return self._strangers.home()
        if FRAME.match(text) or CONNECTOR.match(text) or text.startswith("    "):
            return self._strangers.home()
        return self.stranger()

    def stranger(self) -> bool:
        """A line that is of no traceback: borne while exception lines are due."""
        return self._raised < self._heads and self._strangers.another()

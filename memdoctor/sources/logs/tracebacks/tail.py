"""The frames above an exception line whose head was cut off, overwritten or printed by another writer."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from memdoctor.sources.logs.lines import Line
from memdoctor.sources.logs.tracebacks import rich_box
from memdoctor.sources.logs.tracebacks.raised import HALF_OF_FRAMES, MAX_TEXT, Frame
from memdoctor.sources.logs.tracebacks.shapes import CONNECTOR, FRAME, MARKER, REPEATED, lone_exception, read_head

MAX_LINES = 300
MAX_STRANGERS = 3
MAX_EMPTY = 4


def from_tail(lines: Iterable[Line]) -> tuple[Frame, ...]:
    """Frames, outermost first, found by looking back from an exception line. ``lines``: those before it in its stream, the newest first;
    only as many are taken as are needed."""
    found: list[Frame] = []
    source, previous, strangers, empty = "", None, 0, 0
    for line in islice(lines, MAX_LINES):
        text = line.text[:8_192].rstrip()
        if text == previous and text:  # several processes print the same lines
            continue
        previous = text
        if not text:
            empty += 1
            if empty > MAX_EMPTY:
                break
            continue
        plain, boxed = FRAME.match(text), rich_box.inner_text(text)
        inner = rich_box.FRAME.match(boxed) if boxed else None
        frame = plain or inner
        current = rich_box.CURRENT.match(boxed.strip()) if boxed else None
        if frame is not None:
            found.append(Frame(frame["file"][:MAX_TEXT], int(frame["line"]), (frame["function"] or "")[:MAX_TEXT], source[:MAX_TEXT]))
            source = ""
        elif current is not None:
            source = current["source"].lstrip("│|? ")
        elif MARKER.match(text) or REPEATED.match(text) or boxed is not None or rich_box.is_edge(text):
            continue
        elif read_head(text) is not None or CONNECTOR.match(text) or lone_exception(text) is not None:
            break
        elif text.startswith("   "):
            source = text.strip()
        else:
            strangers += 1
            if strangers > MAX_STRANGERS:
                break
        if len(found) >= 2 * HALF_OF_FRAMES:
            break
    return tuple(reversed(found))

"""What is no text goes: NUL bytes, terminal escape sequences, the \\r of \\r\\n. A lone \\r stays (progress bars redraw with it)."""

from __future__ import annotations

from memdoctor.lazy import lazy

# ECMA-48. A sequence never runs over a line end. The body of a string (window title, hyperlink) is bounded, and a string that has no
# end loses its two opening bytes only, so that a stray ESC hides nothing.
_BODY = 2_048
_ESCAPE = lazy(
    rb"\x1b(?:"
    rb"\[[0-?]{0,256}[ -/]{0,16}[@-~]?"  # CSI: colours, cursor movement
    rb"|\][^\x07\x1b\r\n]{0,%(body)d}(?:\x07|\x1b\\)"  # OSC: titles, hyperlinks
    rb"|[PX^_][^\x07\x1b\r\n]{0,%(body)d}\x1b\\"  # DCS, SOS, PM, APC
    rb"|[ -/]{1,16}[0-~]?"  # character sets
    rb"|[0-~]"  # two-byte sequences, and the opening of a string without an end
    rb")?" % {b"body": _BODY}
)
_RETURN = 0x0D
LONGEST = _BODY + 8  # bytes of the longest sequence


def clean(data: bytes) -> bytes:
    """``data`` (whole lines) without NUL bytes and escape sequences, with \\n for \\r\\n. Costs next to nothing where none is in it."""
    if b"\0" in data:
        data = data.replace(b"\0", b"")
    if b"\x1b" in data:
        data = _ESCAPE.sub(b"", data)
    if _has_dos_end(data):
        data = data.replace(b"\r\n", b"\n")
    return data


def _has_dos_end(data: bytes) -> bool:
    """True where a \\r\\n is in ``data``. Goes from line to line that holds a \\r: a search for both bytes takes a hundred times longer."""
    at = data.find(b"\r")
    while at >= 0:
        end = data.find(b"\n", at)
        if end < 0:
            return False
        if data[end - 1] == _RETURN:
            return True
        at = data.find(b"\r", end)
    return False


class LineCleaner:
    """``clean`` for one long line that comes in pieces: what a piece cuts in two is held back until the next."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """The clean bytes that are settled by now."""
        data = self._held + piece.replace(b"\0", b"")
        at, kept = 0, []
        self._held = b""
        for match in _ESCAPE.finditer(data) if b"\x1b" in data else ():
            if match.start() + LONGEST > len(data):
                self._held = data[match.start() :]
                data = data[: match.start()]
                break
            kept.append(data[at : match.start()])
            at = match.end()
        out = b"".join([*kept, data[at:]])
        if out.endswith(b"\r"):
            self._held = b"\r" + self._held
            out = out[:-1]
        return out.replace(b"\r\n", b"\n")

    def finish(self) -> bytes:
        """The rest, at the end of the line."""
        held, self._held = self._held, b""
        return clean(held)

"""Text that was copied out of the source of a web page: ``&lt;0&gt;`` becomes ``<0>`` again."""

from __future__ import annotations

import re

from memdoctor.lazy import lazy

FEWEST = 3  # in a chunk
_SIGNS = {
    b"lt": b"<", b"gt": b">", b"quot": b'"', b"apos": b"'", b"amp": b"&", b"nbsp": b" ",
    b"#x27": b"'", b"#39": b"'", b"#039": b"'", b"#34": b'"', b"#x2f": b"/", b"#x3d": b"=", b"#x60": b"`",
}  # fmt: skip
_ESCAPE = lazy(rb"&(lt|gt|quot|apos|amp|nbsp|#x27|#0?39|#34|#x2F|#x3D|#x60);", re.IGNORECASE)


def unescaped(data: bytes) -> bytes:
    """``data`` as it was before it was escaped for a page; itself where it was not: text in which a bare ``<`` or ``>`` stands never was."""
    if b"&" not in data or b"<" in data or b">" in data:
        return data
    shown, count = _ESCAPE.subn(lambda match: _SIGNS.get(match[1].lower(), match[0]), data)
    return shown if count >= FEWEST else data

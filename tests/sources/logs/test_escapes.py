"""Text that was escaped for a web page, and text that only speaks of such."""

from __future__ import annotations

import html

from memdoctor.sources.logs.escapes import unescaped

TEXT = "Connect to 10.0.3.7<41823> failed\n  File \"/a/b.py\", line 1, in <module>\nKeyError: 'a' & 'b'\n"


def test_escaped():
    assert unescaped(html.escape(TEXT).encode()) == TEXT.encode()
    assert unescaped(html.escape(TEXT, quote=False).encode()) == TEXT.encode()


def test_what_is_not_escaped_stays():
    for text in (TEXT, TEXT + "&lt;0&gt; &quot;a&quot;\n", "sample: Tom &amp; Jerry\n", "a && b & c &unknown; &lt\n"):
        assert unescaped(text.encode()) == text.encode()

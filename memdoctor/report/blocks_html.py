"""Blocks as one HTML page that prints well on A4: no script, no font or picture from elsewhere, everything escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from memdoctor.report.blocks import Block, Bullets, Code, Heading, Link, PageBreak, Piece, Pieces, Prose, Strong, Table, Verbatim
from memdoctor.report.text import visible

STYLE = """
@page { size: A4; margin: 15mm 17mm 15mm; @bottom-center { content: counter(page); font: 8pt sans-serif; color: #555; } }
body { font: 9.5pt/1.33 "Liberation Sans", "DejaVu Sans", Arial, sans-serif; color: #111; max-width: 180mm; margin: 1em auto; }
@media print { body { max-width: none; margin: 0; } a { color: inherit; text-decoration: none; } }
h1 { font-size: 17pt; margin: 0 0 .2em; } h2 { font-size: 14pt; margin: .2em 0 .4em; border-bottom: .6pt solid #111; }
h3 { font-size: 11.5pt; margin: 1.2em 0 .25em; } h4 { font-size: 10pt; margin: .7em 0 .2em; }
h1, h2, h3, h4, p:has(+ pre), p:has(+ ul), p:has(+ ol) { break-after: avoid; } p { margin: .3em 0; orphans: 2; widows: 2; } ol, ul { margin: .35em 0; padding-left: 1.6em; } li { margin: .12em 0; }
code { font: .88em "DejaVu Sans Mono", "Liberation Mono", monospace; overflow-wrap: anywhere; }
pre { font: 7.9pt/1.32 "DejaVu Sans Mono", "Liberation Mono", monospace; background: #f3f3f3; border-left: 2pt solid #999; padding: .25em .6em;
  margin: .2em 0; white-space: pre-wrap; overflow-wrap: anywhere; break-inside: avoid; }
pre.log { border-left-color: #b66; } pre.paste { border-left-color: #484; }
table { border-collapse: collapse; width: 100%; font-size: 7.5pt; line-height: 1.18; table-layout: fixed; }
th { text-align: left; border-bottom: .8pt solid #111; } td { border-bottom: .3pt solid #aaa; vertical-align: top; }
th, td { padding: .16em .5em .16em 0; } tr { break-inside: avoid; }
td a[href^="#"] { white-space: nowrap; } td a[href^="#"]::after { content: " p. " target-counter(attr(href), page); }
.break { break-after: page; }
"""


def render(blocks: Iterable[Block], title: str) -> str:
    """A whole page."""
    body = "\n".join(_block(block) for block in blocks)
    head = f'<meta charset="utf-8"><title>{_text(title)}</title><style>{STYLE}</style>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _block(block: Block) -> str:
    match block:
        case Heading():
            anchor = f' id="{_text(block.anchor)}"' if block.anchor else ""
            return f"<h{block.level}{anchor}>{_text(block.text)}</h{block.level}>"
        case Prose():
            return f"<p>{_inline(block.pieces)}</p>"
        case Verbatim():
            lines = "\n".join(_text(line.expandtabs(4)).rstrip() for line in block.lines)
            return f'<pre class="{block.kind}">{lines}</pre>'
        case Bullets():
            tag = "ol" if block.ordered else "ul"
            return f"<{tag}>{''.join(f'<li>{_item(item)}</li>' for item in block.items)}</{tag}>"
        case Table():
            columns = "".join(f'<col style="width: {width}%">' for width in block.widths)
            head = "".join(f"<th>{_text(cell)}</th>" for cell in block.head)
            rows = "\n".join(f"<tr>{''.join(f'<td>{_inline(cell)}</td>' for cell in row)}</tr>" for row in block.rows)
            return f"<table><colgroup>{columns}</colgroup><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>"
        case PageBreak():
            return '<div class="break"></div>'


def _item(blocks: tuple[Block, ...]) -> str:
    if len(blocks) == 1 and isinstance(blocks[0], Prose):
        return _inline(blocks[0].pieces)
    return "".join(_block(block) for block in blocks)


def _inline(pieces: Pieces) -> str:
    return "".join(_piece(piece) for piece in pieces)


def _piece(piece: Piece) -> str:
    match piece:
        case Code():
            return f"<code>{_text(piece.text)}</code>"
        case Strong():
            return f"<strong>{_text(piece.text)}</strong>"
        case Link():
            text = f"<code>{_text(piece.text)}</code>" if piece.code else _text(piece.text)
            return f'<a href="{_text(piece.target)}">{text}</a>'
        case _:
            return _text(piece)


def _text(text: str) -> str:
    return escape(visible(text), quote=True)

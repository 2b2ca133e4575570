"""Several logs in one, as ``tail -f``, ``tail -n`` and ``head`` print them: before the lines of each the name of its file, ``==> rank_5.log <==``.

Each line gets the tag that its file's name is worth, as torch or kubectl would have put it there; the lines with the names stay.
"""

from __future__ import annotations

import os

from memdoctor.lazy import lazy
from memdoctor.sources.logs.naming import tell
from memdoctor.sources.logs.pieces import Piece
from memdoctor.sources.logs.wrapped import Unwrapper

BEGIN = b"==> "
_HEAD = lazy(rb"(?m)^==> ([^\n]{1,1000}) <==$")
_OWN = 200  # bytes of a line in which its own tag stands
_POD = lazy(r"[\w.-]{1,253}")


def follower(data: bytes) -> Unwrapper | None:
    """How the file that begins with ``data``, with ``BEGIN`` on one of its first lines, is to be read; None where it is one log."""
    return _Followed(data) if _HEAD.match(data, data.find(BEGIN)) is not None else None


class _Followed(Unwrapper):
    """``data``: what the file begins with; the names in it are read together."""

    def __init__(self, data: bytes) -> None:
        super().__init__(self._line)
        names = list(dict.fromkeys(match[1] for match in _HEAD.finditer(data)))
        paths = [_path(name) for name in names]
        self._tags = {name: _tag(path, told.rank) for name, path, told in zip(names, paths, tell(paths, {}), strict=True)}
        self._now = b""

    def _line(self, line: bytes) -> Piece | None:
        if line.startswith(BEGIN):
            head = _HEAD.fullmatch(line)
            if head is not None:
                if head[1] not in self._tags:
                    path = _path(head[1])
                    self._tags[head[1]] = _tag(path, tell([path], {})[0].rank)
                self._now = self._tags[head[1]]
                return None
        if not line or not self._now or b"[rank" in line[:_OWN]:
            return None
        return Piece(b"", "", line, False, self._now)


def _path(name: bytes) -> str:
    return os.path.join("/", os.fsdecode(name))


def _tag(path: str, rank: int | None) -> bytes:
    if rank is not None:
        return b"[rank%d]: " % rank
    name = os.path.basename(path)
    return f"[pod/{name}/-] ".encode() if _POD.fullmatch(name) else b""

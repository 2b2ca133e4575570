"""The reader at its border to the operating system: what a file does while it is read, and what the reader tells afterwards."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdoctor.sources.logs.cleaning import clean
from memdoctor.sources.logs.cutting import BLOCK, OVERLAP, WINDOW
from memdoctor.sources.logs.inputs import LogFile
from memdoctor.sources.logs.reading import Chunk, Reader


class Raw:
    """A stream that gives its data in pieces of the sizes named, and then fails, or ends."""

    def __init__(self, data: bytes, sizes: list[int] | None = None, error: OSError | None = None) -> None:
        self.data, self.sizes, self.error, self.closed = data, list(sizes or []), error, False

    def readinto(self, view: memoryview, /) -> int | None:
        size = min(len(view), len(self.data), self.sizes.pop(0) if self.sizes else len(view))
        if size == 0 and self.error is not None:
            raise self.error
        view[:size], self.data = self.data[:size], self.data[size:]
        return size

    def close(self) -> None:
        self.closed = True


def read(path: Path | str) -> tuple[list[Chunk], Reader]:
    reader = Reader(LogFile(str(path)))
    return list(reader), reader


def told(chunks: list[Chunk]) -> list[tuple[bytes, int, bool]]:
    return [(chunk.data, chunk.line, chunk.part) for chunk in chunks]


def write(folder: Path, data: bytes, name: str = "train.log") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def test_whole_lines_with_their_numbers(tmp_path):
    lines = [b"line %d %s\n" % (i, b"x" * (i % 300)) for i in range(20_000)]
    chunks, reader = read(write(tmp_path, b"".join(lines)))
    assert b"".join(chunk.data for chunk in chunks) == b"".join(lines)
    assert len(chunks) > 5
    for chunk in chunks:
        assert chunk.data.endswith(b"\n")
        assert chunk.data.startswith(b"line %d " % (chunk.line - 1))
        assert not chunk.part
    assert all(BLOCK <= len(chunk.data) + 400 <= 2 * BLOCK for chunk in chunks[:-1])
    assert (reader.lines, reader.bytes_read) == (20_000, sum(map(len, lines)))
    assert (reader.skip, reader.truncated, reader.ends_mid_line) == (None, False, False)
    assert reader.mtime == os.stat(reader.file.path).st_mtime


def test_a_last_line_without_end_gets_one(tmp_path):
    chunks, reader = read(write(tmp_path, b"first\nsecond is cut o"))
    assert told(chunks) == [(b"first\n", 1, False), (b"second is cut o\n", 2, False)]
    assert reader.ends_mid_line
    assert not reader.truncated
    assert reader.lines == 2


@pytest.mark.parametrize("data", [b"", b"\0\0\0", b"\xef\xbb\xbf", b"\x1b[0m"])
def test_empty(tmp_path, data):
    chunks, reader = read(write(tmp_path, data))
    assert chunks == []
    assert reader.lines == 0
    assert reader.bytes_read == len(data)
    assert reader.skip is not None
    assert reader.skip.reason.startswith("empty")
    assert reader.skip.source.endswith("train.log")
    assert not reader.ends_mid_line


@pytest.mark.parametrize("data", [b"\n\n\n", b" \r\n\t\n", b"\n" * 300_000])
def test_blank_lines_alone(tmp_path, data):
    _, reader = read(write(tmp_path, data))
    assert reader.blank
    assert reader.skip is not None
    assert reader.skip.reason == "empty: nothing but blank lines in it"


def test_a_hole_of_nul_bytes_at_the_end_is_no_line(tmp_path):
    chunks, reader = read(write(tmp_path, b"saved\n" + b"\0" * 5_000))
    assert told(chunks) == [(b"saved\n", 1, False)]
    assert not reader.ends_mid_line
    assert reader.skip is None


def test_a_file_that_is_gone(tmp_path):
    chunks, reader = read(tmp_path / "gone.log")
    assert chunks == []
    assert reader.skip is not None
    assert reader.skip.reason == "no such file"


def test_a_folder_in_place_of_a_file(tmp_path):
    chunks, reader = read(tmp_path)
    assert chunks == []
    assert reader.skip is not None
    assert "is a directory" in reader.skip.reason


def test_a_read_error_midway():
    raw = Raw(b"good\n" * 100_000 + b"half a li", error=OSError(5, "Input/output error"))
    reader = Reader(LogFile("train.log"), raw=raw)
    chunks = list(reader)
    assert b"".join(chunk.data for chunk in chunks) == b"good\n" * 100_000 + b"half a li\n"
    assert reader.bytes_read == 500_009
    assert reader.truncated
    assert reader.ends_mid_line
    assert reader.skip is not None
    assert reader.skip.reason == "read error after 488.29 KiB: input/output error"
    assert raw.closed


def test_a_read_error_at_the_first_byte():
    reader = Reader(LogFile("train.log"), raw=Raw(b"", error=OSError(116, "Stale file handle")))
    assert list(reader) == []
    assert reader.skip is not None
    assert reader.skip.reason == "read error after 0 bytes: stale file handle"


def test_reading_ends_at_the_first_end(tmp_path):
    """A job that still writes is read up to the first end of file, not followed."""

    class Growing(Raw):
        ends = 0

        def readinto(self, view: memoryview, /) -> int | None:
            got = super().readinto(view)
            if got == 0:
                self.ends += 1
                self.data = b"written later\n"
            return got

    raw = Growing(b"one\ntwo\n")
    reader = Reader(LogFile("train.log"), raw=raw)
    assert b"".join(chunk.data for chunk in reader) == b"one\ntwo\n"
    assert raw.ends == 1


def test_a_file_that_grows_and_is_removed_while_it_is_read(tmp_path):
    path = write(tmp_path, b"x" * 99 + b"\n" + b"line\n" * 300_000)
    reader = Reader(LogFile(str(path)))
    lines = 0
    for number, chunk in enumerate(reader):
        lines += chunk.data.count(b"\n")
        if number == 0:
            with path.open("ab") as more:
                more.write(b"more\n" * 10)
            path.unlink()
    assert lines == reader.lines == 300_011
    assert reader.skip is None


def test_a_file_that_shrinks_while_it_is_read(tmp_path):
    path = write(tmp_path, b"line\n" * 300_000)
    reader = Reader(LogFile(str(path)))
    for number, _ in enumerate(reader):
        if number == 0:
            os.truncate(path, 600_000)
    assert reader.bytes_read == 600_000
    assert reader.lines == 120_000
    assert reader.truncated
    assert reader.skip is not None
    assert reader.skip.reason == "the file shrank while it was read: 585.94 KiB of 1.43 MiB"


def test_on_bytes_tells_all_that_was_stored(tmp_path):
    told: list[int] = []
    reader = Reader(LogFile(str(write(tmp_path, b"line\n" * 200_000 + b"\0" * 300_000))), told.append)
    chunks = sum(1 for _ in reader)
    assert sum(told) == reader.bytes_read == 1_300_000
    assert all(told)
    assert chunks <= len(told) <= chunks + 1


def test_a_reader_that_is_left_early_closes_its_file():
    raw = Raw(b"line\n" * 500_000)
    chunks = iter(Reader(LogFile("train.log"), raw=raw))
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    assert raw.closed


def test_a_fifo(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    sent = b"through a pipe\n" * 50_000

    def write_slowly() -> None:
        with path.open("wb", buffering=0) as stream:
            for start in range(0, len(sent), 77_777):
                stream.write(sent[start : start + 77_777])

    writer = threading.Thread(target=write_slowly)
    writer.start()
    chunks, reader = read(path)
    writer.join()
    assert b"".join(chunk.data for chunk in chunks) == sent
    assert reader.mtime is None
    assert all(len(chunk.data) + 16 > BLOCK for chunk in chunks[:-1])


def test_standard_input_packed_or_not(tmp_path):
    import gzip

    program = (
        "from memdoctor.sources.logs.reading import Reader\nfrom memdoctor.sources.logs.inputs import expand\n"
        "(file,), _ = expand(['-'])\nreader = Reader(file)\nprint(repr(b''.join(c.data for c in reader)), file.path, reader.lines, reader.bytes_read)"
    )
    for sent in (b"a\nb", gzip.compress(b"a\nb")):
        done = subprocess.run([sys.executable, "-c", program], input=sent, capture_output=True, check=True)
        assert done.stdout.decode() == f"b'a\\nb\\n' - 2 {len(sent)}\n"


def test_standard_input_that_is_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    chunks, reader = read("-")
    assert chunks == []
    assert reader.skip is not None
    assert reader.skip.reason == "standard input is closed"


def test_standard_input_is_left_open(monkeypatch):
    stream = io.BytesIO(b"one\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
    assert told(read("-")[0]) == [(b"one\n", 1, False)]
    assert not stream.closed


def test_standard_input_that_does_not_block():
    """Some terminals and remote shells leave standard input in non-blocking mode: it is waited for."""
    from memdoctor.sources.logs.stored import Stored

    down, up = os.pipe()
    os.set_blocking(down, False)

    def write_later() -> None:
        for _ in range(3):
            threading.Event().wait(0.05)
            os.write(up, b"late\n")
        os.close(up)

    writer = threading.Thread(target=write_later)
    writer.start()
    stored = Stored(io.FileIO(down))
    buffer = bytearray(100)
    got = b""
    while count := stored.readinto(memoryview(buffer)):
        got += buffer[:count]
    writer.join()
    stored.raw.close()
    assert got == b"late\n" * 3


def test_the_path_that_is_opened_may_differ_from_the_one_shown(tmp_path):
    path = write(tmp_path, b"x\n", "a\nb.log")
    reader = Reader(LogFile("a\\nb.log", opened=str(path)))
    assert [chunk.data for chunk in reader] == [b"x\n"]


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b"x" * 257 + b"ustar\x0000", "tar archives are not read: unpack it and give the folder"),
        (b"PK\x03\x04\x14", "zip archives are not read: unpack it and give the folder"),
        (b"\x80\x02}q\x00", "not a log but a Python pickle"),
    ],
)
def test_what_is_no_log_is_not_read(tmp_path, head, reason):
    chunks, reader = read(write(tmp_path, head + b"\0" * 600))
    assert chunks == []
    assert reader.skip is not None
    assert reader.skip.reason == reason


# --- long lines ---------------------------------------------------------------------------------------------------------


def windows(line: bytes) -> list[bytes]:
    """The windows of one line, computed the slow way."""
    if len(line) <= WINDOW:
        return [line]
    starts = range(0, len(line) - OVERLAP, WINDOW - OVERLAP)
    return [line[start : start + WINDOW] for start in starts]


def check_against_reference(data: bytes, text: bytes, reader: Reader, chunks: list[Chunk]) -> None:
    """``text`` is what is expected of ``data`` before it is cut into chunks."""
    if text and not text.endswith(b"\n"):
        text += b"\n"
    expected: list[tuple[int, bytes, bool]] = []
    for number, line in enumerate(text.split(b"\n")[:-1], 1):
        pieces = windows(line + b"\n")
        expected += [(number, piece, len(pieces) > 1) for piece in pieces]
    got: list[tuple[int, bytes, bool]] = []
    for chunk in chunks:
        assert chunk.part or chunk.data.endswith(b"\n")
        if chunk.part:
            got.append((chunk.line, chunk.data, True))
        else:
            got += [(chunk.line + i, line + b"\n", False) for i, line in enumerate(chunk.data.split(b"\n")[:-1])]
    assert got == expected
    assert reader.lines == text.count(b"\n")
    assert reader.bytes_read == len(data)


@pytest.mark.parametrize(
    "length",
    [BLOCK - 1, BLOCK, WINDOW - 2, WINDOW - 1, WINDOW, WINDOW + 1, 2 * WINDOW - OVERLAP - 1, 2 * WINDOW - OVERLAP, 5 * WINDOW + 77],
)
@pytest.mark.parametrize("ended", [True, False])
def test_long_lines_come_in_windows(tmp_path, length, ended):
    source = random.Random(length)
    line = bytes(source.choices(b"abcdefgh ", k=1_000)) * (length // 1_000 + 1)
    data = b"before\n" + line[:length] + (b"\nafter\n" if ended else b"")
    chunks, reader = read(write(tmp_path, data))
    check_against_reference(data, data, reader, chunks)
    assert reader.ends_mid_line is not ended
    for chunk, following in pairwise(chunks):
        if chunk.part and following.part:
            assert following.data.startswith(chunk.data[-OVERLAP:])


def test_a_hole_in_a_line_does_not_make_it_long(tmp_path):
    data = b"a" + b"\0" * 3 * WINDOW + b"b\nc\n"
    chunks, reader = read(write(tmp_path, data))
    assert b"".join(chunk.data for chunk in chunks) == b"ab\nc\n"
    assert not any(chunk.part for chunk in chunks)
    assert reader.lines == 2


def test_an_escape_sequence_across_the_border_of_two_reads_of_a_long_line():
    """Colours at every place near the borders at which a long line is read in pieces."""
    for shift in range(12):
        line = b"x" * (WINDOW - 6 - shift) + b"\x1b[31;1m" + b"y" * BLOCK + b"\r\x1b[0m" + b"z" * 40 + b"\x1b]8;;http://a\x1b\\link\r\n"
        reader = Reader(LogFile("train.log"), raw=Raw(line + b"next\n"))
        chunks = list(reader)
        text = b"x" * (WINDOW - 6 - shift) + b"y" * BLOCK + b"\r" + b"z" * 40 + b"link\nnext\n"
        check_against_reference(line + b"next\n", text, reader, chunks)


# --- any bytes ------------------------------------------------------------------------------------------------------------


def slowly_cleaned(data: bytes) -> bytes:
    """What is left of ``data``: NUL bytes off, then escape sequences, then \\r\\n to \\n; one byte after the other."""
    data = bytes(byte for byte in data if byte)
    out, at = bytearray(), 0
    while at < len(data):
        if data[at] != 0x1B:
            out.append(data[at])
            at += 1
            continue
        at += 1
        kind = data[at : at + 1]
        if kind == b"[":
            at += 1
            count = 0
            while count < 256 and at < len(data) and 0x30 <= data[at] <= 0x3F:
                at, count = at + 1, count + 1
            count = 0
            while count < 16 and at < len(data) and 0x20 <= data[at] <= 0x2F:
                at, count = at + 1, count + 1
            if at < len(data) and 0x40 <= data[at] <= 0x7E:
                at += 1
        elif kind and kind in b"]PX^_":
            end = at + 1
            while end < len(data) and data[end] not in b"\x07\x1b\r\n":
                end += 1
            bell = kind == b"]" and data[end : end + 1] == b"\x07"
            short = end - at - 1 <= 2_048
            if short and bell:
                at = end + 1
            elif short and data[end : end + 2] == b"\x1b\\":
                at = end + 2
            else:
                at += 1
        elif kind and 0x20 <= kind[0] <= 0x2F:
            count = 0
            while count < 16 and at < len(data) and 0x20 <= data[at] <= 0x2F:
                at, count = at + 1, count + 1
            if at < len(data) and 0x30 <= data[at] <= 0x7E:
                at += 1
        elif kind and 0x30 <= kind[0] <= 0x7E:
            at += 1
    return bytes(out).replace(b"\r\n", b"\n")


TOKENS = [
    b"\x1b",
    b"\x1b[",
    b"\x1b[0;31m",
    b"\x1b]0;",
    b"\x07",
    b"\x1b\\",
    b"\x1bP",
    b"\x1b(",
    b"\r",
    b"\r\n",
    b"\n",
    b"\0",
    b"m",
    b"[",
    b"loss ",
    b"3",
    b";",
    b"\xc3\xa9",
    b"\xff",
]
PLAIN = st.one_of(st.binary(max_size=300), st.lists(st.sampled_from(TOKENS), max_size=80).map(b"".join))


@given(PLAIN.map(lambda data: b"log:" + data), st.lists(st.integers(1, 40), max_size=30))
def test_any_bytes_give_the_slow_reference(data, sizes):
    reader = Reader(LogFile("x.log"), raw=Raw(data, sizes))
    chunks = list(reader)
    check_against_reference(data, slowly_cleaned(data), reader, chunks)
    assert b"\x1b" not in b"".join(chunk.data for chunk in chunks)
    assert b"\0" not in b"".join(chunk.data for chunk in chunks)


@given(st.binary(max_size=2_000))
def test_no_bytes_whatever_raise(data):
    reader = Reader(LogFile("x.log"), raw=Raw(data))
    chunks = list(reader)
    line = 1
    for chunk in chunks:
        assert chunk.line == line
        line += chunk.data.count(b"\n")
    assert reader.lines == line - 1
    assert chunks or reader.skip is not None


@given(st.lists(st.sampled_from(TOKENS), max_size=60).map(b"".join), st.integers(0, 70), st.integers(0, 70))
def test_long_lines_of_any_bytes_give_the_slow_reference(tokens, shift, second):
    """What is cut by the border of two reads, or of two windows, comes out as if nothing had been cut."""
    data = b"x" * (WINDOW - shift) + tokens + b"y" * (BLOCK - second) + tokens
    reader = Reader(LogFile("x.log"), raw=Raw(data))
    check_against_reference(data, clean(data), reader, list(reader))  # clean() itself is held to the slow reference above

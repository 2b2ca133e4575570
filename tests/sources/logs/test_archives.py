"""Compressed logs: whole, in several members, cut off, damaged, and made to fill memory."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import resource
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from memdoctor.sources.logs import archives
from memdoctor.sources.logs.inputs import LogFile
from memdoctor.sources.logs.reading import Reader

Pack = Callable[[bytes], bytes]
PACKERS: dict[str, Pack] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
}
TEXT = b"".join(b"[2024-05-01 10:00:00] iteration %8d/ 50000 | lm loss: %.6E |\n" % (i, random.Random(i).random()) for i in range(40_000))
each = pytest.mark.parametrize("name", PACKERS)


def read(folder: Path, data: bytes, name: str = "train.log") -> tuple[bytes, Reader]:
    path = folder / name
    path.write_bytes(data)
    reader = Reader(LogFile(str(path)))
    return b"".join(chunk.data for chunk in reader), reader


def reason(reader: Reader) -> str:
    assert reader.skip is not None
    return reader.skip.reason


@each
def test_whole(tmp_path, name):
    packed = PACKERS[name](TEXT)
    text, reader = read(tmp_path, packed)
    assert text == TEXT
    assert reader.bytes_read == len(packed)
    assert (reader.skip, reader.truncated, reader.ends_mid_line) == (None, False, False)


def test_the_name_does_not_matter(tmp_path):
    assert read(tmp_path, b"plain text\n", "train.log.gz")[0] == b"plain text\n"
    assert read(tmp_path, zstandard.compress(b"packed\n"), "train.log.gz")[0] == b"packed\n"


@each
def test_members_that_follow_each_other(tmp_path, name):
    pack = PACKERS[name]
    text, reader = read(tmp_path, pack(TEXT) + pack(b"second\n") + pack(b"") + pack(b"third"))
    assert text == TEXT + b"second\nthird\n"
    assert reader.skip is None
    assert reader.ends_mid_line


def test_members_of_different_kinds_and_padding(tmp_path):
    packed = b"".join(pack(b"%s\n" % name.encode()) + b"\0" * 700 for name, pack in PACKERS.items())
    text, reader = read(tmp_path, packed)
    assert text == b"gzip\nbzip2\nxz\nzstd\n"
    assert reader.skip is None
    assert reader.bytes_read == len(packed)


def test_many_small_members(tmp_path):
    text, reader = read(tmp_path, b"".join(gzip.compress(b"line %d\n" % i) for i in range(3_000)))
    assert text == b"".join(b"line %d\n" % i for i in range(3_000))
    assert reader.lines == 3_000


def test_a_skippable_frame_of_zstd(tmp_path):
    assert read(tmp_path, b"\x52\x2a\x4d\x18\x04\0\0\0abcd" + zstandard.compress(TEXT))[0] == TEXT


def test_something_else_after_the_archive(tmp_path):
    text, reader = read(tmp_path, gzip.compress(b"packed\n") + b"\x01\x02\x03 something else\n")
    assert text == b"packed\n"
    assert reader.truncated
    assert reason(reader) == "what follows the gzip archive in the file is not an archive: left out after 7 bytes"


@each
def test_plain_text_after_the_archive(tmp_path, name):
    text, reader = read(tmp_path, PACKERS[name](b"packed\n") + b"appended as plain text\n" * 500)
    assert text == b"packed\n" + b"appended as plain text\n" * 500
    assert reader.skip is None
    assert not reader.truncated


@each
def test_cut_off(tmp_path, name):
    packed = PACKERS[name](TEXT)
    text, reader = read(tmp_path, packed[: len(packed) * 3 // 4])
    lost = 1_000_000 if name == "bzip2" else 200_000  # bzip2 gives a block of 900 kB or nothing, zstd one of 128 KiB
    assert len(TEXT) * 3 // 4 - lost < len(text) < len(TEXT)
    assert TEXT.startswith(text[:-1])
    assert reader.truncated
    assert f"the {name} archive is cut off: read up to there" in reason(reader)


@each
def test_cut_off_at_its_first_bytes(tmp_path, name):
    for length in (10, 12):
        text, reader = read(tmp_path, PACKERS[name](TEXT)[:length])
        assert text == b""
        assert reader.truncated
        assert "is cut off" in reason(reader)


def test_cut_off_in_the_second_member(tmp_path):
    text, reader = read(tmp_path, gzip.compress(b"first\n") + gzip.compress(TEXT)[:30])
    assert text.startswith(b"first\n")
    assert reader.truncated


@each
def test_damaged(tmp_path, name):
    packed = bytearray(PACKERS[name](TEXT))
    middle = len(packed) * 3 // 4
    packed[middle : middle + 64] = b"\xff" * 64
    text, reader = read(tmp_path, bytes(packed))
    assert len(text) < len(TEXT) + 1
    assert TEXT.startswith(text[: len(TEXT) // 8])
    if name != "bzip2":
        assert len(text) > len(TEXT) // 2
    assert reader.truncated
    assert reason(reader).startswith(f"the {name} archive is damaged")


def test_a_wrong_checksum(tmp_path):
    packed = bytearray(gzip.compress(TEXT))
    packed[-8] ^= 0xFF
    text, reader = read(tmp_path, bytes(packed))
    assert TEXT.startswith(text[:-1])
    assert len(text) > len(TEXT) - 100_000
    assert "incorrect data check" in reason(reader)


def test_a_tar_in_an_archive(tmp_path):
    text, reader = read(tmp_path, gzip.compress(b"log.txt".ljust(257, b"\0") + b"ustar\x0000" + b"\0" * 500))
    assert text == b""
    assert reason(reader) == "tar archives are not read: unpack it and give the folder"


def test_utf_16_in_an_archive(tmp_path):
    assert read(tmp_path, gzip.compress("loss é\r\n".encode("utf-16")))[0] == "loss é\n".encode()


def bomb(size: int) -> bytes:
    """A gzip archive of ``size`` line ends (a multiple of 16 MiB), made without spending long on it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = b"\n" * (1 << 24)
    return b"".join([*(packer.compress(block) for _ in range(size >> 24)), packer.flush()])


def test_an_archive_that_expands_too_far(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "FREE_OUTPUT", 1 << 26)
    text, reader = read(tmp_path, bomb(1 << 27))
    assert (1 << 26) - (1 << 20) < len(text) < (1 << 26) + (1 << 20)
    assert reader.truncated
    assert "expands more than 1,000 times" in reason(reader)


def test_a_small_one_may_expand_as_far_as_it_likes(tmp_path):
    text, reader = read(tmp_path, bomb(1 << 26))
    assert len(text) == 1 << 26
    assert not reader.truncated


def test_memory_stays_constant(tmp_path):
    """256 MiB out of 8 KiB (zstd writes a run of 128 KiB in 4 bytes) take far less memory than that."""
    path = tmp_path / "x.zst"
    packer = zstandard.ZstdCompressor(level=1).compressobj()
    path.write_bytes(b"".join(packer.compress(b"\n" * (1 << 20)) for _ in range(256)) + packer.flush())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reader = Reader(LogFile(str(path)))
    assert sum(len(chunk.data) for chunk in reader) == 1 << 28
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024  # KiB


def test_a_window_that_is_too_large(tmp_path):
    settings = zstandard.ZstdCompressionParameters.from_level(1, window_log=28)
    packer = zstandard.ZstdCompressor(compression_params=settings).compressobj()
    text, reader = read(tmp_path, packer.compress(b"x\n" * 1_000) + packer.flush())
    assert text == b""
    assert "requires too much memory" in reason(reader)


@given(st.sampled_from(sorted(PACKERS)), st.binary(max_size=500), st.integers(0, 600), st.integers(0, 255))
def test_any_damage_is_survived(tmp_path_factory, name, text, place, byte):
    packed = bytearray(PACKERS[name](b"log:" + text))
    packed[min(place, len(packed) - 1)] = byte
    reader = Reader(LogFile(str(tmp_path_factory.getbasetemp() / "damaged")))
    (tmp_path_factory.getbasetemp() / "damaged").write_bytes(bytes(packed))
    for chunk in reader:
        assert chunk.data
    assert reader.bytes_read <= len(packed)

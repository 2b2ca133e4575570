from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdoctor.sources.logs.encodings import encoding
from memdoctor.sources.logs.inputs import LogFile
from memdoctor.sources.logs.reading import Reader

TEXT = "Traceback (most recent call last):\n  loss é 损失 😀\n" * 3_000


def read(folder: Path, data: bytes) -> tuple[bytes, Reader]:
    path = folder / "train.log"
    path.write_bytes(data)
    reader = Reader(LogFile(str(path)))
    return b"".join(chunk.data for chunk in reader), reader


@pytest.mark.parametrize("name", ["utf-16-le", "utf-16-be", "utf-16", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_with_a_byte_order_mark(tmp_path, name, ending):
    mark = "" if name in ("utf-16", "utf-32", "utf-8-sig") else "\ufeff"
    data = (mark + TEXT).replace("\n", ending).encode(name)
    text, reader = read(tmp_path, data)
    assert text == TEXT.encode()
    assert reader.lines == 6_000
    assert reader.bytes_read == len(data)
    assert reader.skip is None


@pytest.mark.parametrize("name", ["utf-16-le", "utf-16-be"])
def test_without_a_byte_order_mark(tmp_path, name):
    assert read(tmp_path, TEXT.encode(name))[0] == TEXT.encode()


@pytest.mark.parametrize("name", ["utf-16-le", "utf-16-be"])
def test_mostly_chinese_without_a_byte_order_mark(tmp_path, name):
    text = "".join(f"第{n}步完成，数据集已经全部加载到内存之中，训练继续进行\n" for n in range(400)) + "ValueError: 损失\n"
    assert read(tmp_path, text.encode(name))[0] == text.encode()


def test_numbers_of_two_bytes_are_no_utf_16():
    tokens = b"".join(((n * 7919) % 32_000).to_bytes(2, "little") for n in range(2_048))
    few = b"".join(((n * 7919) % 300).to_bytes(2, "little") for n in range(2_048))
    assert encoding(tokens) == encoding(few) == ("utf-8", 0)


@pytest.mark.parametrize("name", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("lines", [3, 9_000])
def test_another_program_wrote_on_in_utf_8(tmp_path, name, lines):
    more = "[rank5]: FileNotFoundError: [Errno 2] No such file or directory: '/données/x.idx'\n"
    text = ("\ufeff" + TEXT[: lines * 20]).encode(name) + "\n".encode(name) + more.encode()
    shown, reader = read(tmp_path, text)
    assert shown.endswith(b"\n" + more.encode())
    assert shown.startswith(TEXT[: lines * 20].encode())
    assert reader.skip is None


def test_a_half_sign_at_the_end_and_a_lone_surrogate(tmp_path):
    text, reader = read(tmp_path, b"\xff\xfe" + "ab".encode("utf-16-le") + b"\x00\xd8" + "c".encode("utf-16-le") + b"d")
    assert text == "ab�c�\n".encode()
    assert reader.ends_mid_line


def test_latin_1_passes_untouched(tmp_path):
    assert read(tmp_path, b"d\xe9sol\xe9: m\xe9moire\n")[0] == b"d\xe9sol\xe9: m\xe9moire\n"


def test_nul_bytes_alone_are_no_utf_16(tmp_path):
    assert encoding(b"\0" * 4_096) == ("utf-8", 0)
    assert encoding(b"\0" * 2_000 + b"Traceback (most recent call last):\n" * 60) == ("utf-8", 0)
    assert encoding(b"a\0b\0") == ("utf-8", 0)  # too short to tell
    assert read(tmp_path, b"\0" * 2_000 + b"real text\n")[0] == b"real text\n"


@given(st.text(alphabet=st.characters(codec="utf-16"), max_size=400), st.sampled_from(["utf-16-le", "utf-16-be"]))
def test_any_text(tmp_path_factory, text, name):
    text = text.replace("\0", "").replace("\x1b", "")
    shown, _ = read(tmp_path_factory.getbasetemp(), ("\ufeffa" + text).encode(name))
    expected = ("a" + text).encode().replace(b"\r\n", b"\n")
    assert shown == expected + (b"" if expected.endswith(b"\n") else b"\n")

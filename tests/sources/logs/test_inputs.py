"""Which files are read, in which order, and what is said of those that are not."""

from __future__ import annotations

import gzip
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdoctor.errors import InputError
from memdoctor.sources.logs import walking
from memdoctor.sources.logs.inputs import LogFile, expand, sort_out
from memdoctor.sources.logs.naming import natural
from memdoctor.sources.logs.reading import Reader


def make(folder: Path, *names: str, data: bytes = b"line\n") -> list[Path]:
    paths = [folder / name for name in names]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return paths


def names(files: list[LogFile], folder: Path) -> list[str]:
    return [os.path.relpath(file.path, folder) for file in files]


def reasons(arguments: list[str]) -> dict[str, str]:
    _, skips = expand(arguments)
    return {os.path.basename(skip.source): skip.reason for skip in skips}


# --- files, folders, patterns, stdin ----------------------------------------------------------------------------------


def test_files_keep_the_order_in_which_they_are_named(tmp_path):
    make(tmp_path, "b.log", "a.log")
    files, skips = expand([str(tmp_path / "b.log"), str(tmp_path / "a.log")])
    assert names(files, tmp_path) == ["b.log", "a.log"]
    assert skips == []


def test_a_folder_is_walked_in_natural_order(tmp_path):
    make(tmp_path, "rank_10.log", "rank_9.log", "rank_2.log", "deep/er/x.log", "deep/a.txt", "no_extension")
    files, skips = expand([str(tmp_path)])
    assert names(files, tmp_path) == ["deep/a.txt", "deep/er/x.log", "no_extension", "rank_2.log", "rank_9.log", "rank_10.log"]
    assert skips == []


def test_patterns_that_the_shell_left_alone(tmp_path):
    make(tmp_path, "rank_10.log", "rank_2.log", "other.txt", "sub/rank_3.log", ".hidden.log")
    assert names(expand([str(tmp_path / "rank_*.log")])[0], tmp_path) == ["rank_2.log", "rank_10.log"]
    assert names(expand([str(tmp_path / "**" / "rank_[0-9]*.log")])[0], tmp_path) == ["rank_2.log", "rank_10.log", "sub/rank_3.log"]
    assert names(expand([str(tmp_path / "**")])[0], tmp_path) == ["other.txt", "rank_2.log", "rank_10.log", "sub/rank_3.log"]
    assert names(expand([str(tmp_path / "su?")])[0], tmp_path) == ["sub/rank_3.log"]


def test_a_pattern_and_the_shell_give_the_same_order(tmp_path):
    make(tmp_path, *(f"rank_{i}.log" for i in range(12)))
    expanded = sorted(str(path) for path in tmp_path.iterdir())  # as the shell sorts: 0, 1, 10, 11, 2
    assert [file.rank for file in expand(expanded)[0]] == list(range(12))
    assert expand(expanded) == expand([str(tmp_path / "*.log")])


def test_a_file_whose_name_looks_like_a_pattern(tmp_path):
    make(tmp_path, "train[1].log", "train1.log")
    assert names(expand([str(tmp_path / "train[1].log")])[0], tmp_path) == ["train[1].log"]


def test_standard_input():
    for argument in ("-", "/dev/stdin"):
        assert expand([argument]) == ([LogFile("-")], [])
    assert expand(["-", "-"]) == ([LogFile("-")], [])


def test_standard_input_beside_a_file(tmp_path):
    make(tmp_path, "rank_3.log")
    files, _ = expand([str(tmp_path / "rank_3.log"), "-"])
    assert [(os.path.basename(file.path), file.rank) for file in files] == [("rank_3.log", 3), ("-", None)]


def test_the_same_file_is_read_once(tmp_path):
    make(tmp_path, "train.log", "a/b.log")
    (tmp_path / "link.log").symlink_to("train.log")
    (tmp_path / "hard.log").hardlink_to(tmp_path / "train.log")
    files, skips = expand(
        [
            str(tmp_path / "train.log"),
            str(tmp_path / "a" / ".." / "train.log"),
            str(tmp_path / "link.log"),
            str(tmp_path / "hard.log"),
            str(tmp_path),
            str(tmp_path),
        ]
    )
    assert names(files, tmp_path) == ["train.log", "a/b.log"]
    assert skips == []


def test_home_in_a_quoted_path(tmp_path, monkeypatch):
    make(tmp_path, "rank_1.log")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert names(expand(["~/rank_*.log"])[0], tmp_path) == ["rank_1.log"]


def test_rotated_logs_come_oldest_first(tmp_path):
    make(tmp_path, "train.log", "train.log.1", "train.log.10", "train.log.2.gz", "zoo.log")
    files, _ = expand([str(tmp_path)])
    assert names(files, tmp_path) == ["train.log.10", "train.log.2.gz", "train.log.1", "train.log", "zoo.log"]
    assert {file.rank for file in files} == {None}


# --- what is left out -------------------------------------------------------------------------------------------------


def test_what_a_folder_holds_beside_logs_is_left_out_silently(tmp_path):
    make(
        tmp_path,
        "model.pt",
        "optim.pkl",
        "x.bin",
        "x.safetensors",
        "plot.png",
        "lib.so",
        "data.idx",
        "a.npy",
        "train.py",
        "run.sh",
        "ds_config.yaml",
    )
    make(
        tmp_path,
        ".hidden",
        ".git/config",
        "iter_0001000/mp_rank_00/metadata.txt",
        "global_step100/latest.txt",
        "checkpoint-500/notes.txt",
        "latest",
        "requirements.txt",
    )
    make(tmp_path, "events.out.tfevents.1714557600.node01")
    make(tmp_path, "core.4711", data=b"\x7fELF\x02\x01")
    make(tmp_path, "weights", data=b"PK\x03\x04" + b"\0" * 300)
    make(tmp_path, "tokens", data=bytes(range(256)) * 40)
    make(tmp_path, "config.json", data=b'{\n  "hidden_size": 4096\n}\n')
    make(tmp_path, "data.jsonl", data=b'{"text": "CUDA out of memory"}\n' * 500)
    make(tmp_path, "train.log")
    files, skips = expand([str(tmp_path)])
    assert names(files, tmp_path) == ["train.log"]
    assert {skip.source: skip.reason for skip in skips} == {
        str(tmp_path / "weights"): "zip archives are not read: unpack it and give the folder"
    }


def test_logs_that_look_odd_are_taken_from_a_folder(tmp_path):
    make(tmp_path, "hole.log", data=b"\0" * 8_192 + b"text\n")
    make(tmp_path, "wide.log", data="text\n".encode("utf-16"))
    make(tmp_path, "bars.log", data=b"\x1b[2K\r10%\b\b\r20%\n" * 50)
    make(tmp_path, "packed.json.gz", data=gzip.compress(b"x"))
    make(tmp_path, "wrapped.json", data=b'{"textPayload": "x", "timestamp": "2024-05-01T10:00:00Z"}\n')
    make(tmp_path, "long.jsonl", data=b'{"message": "%s"}\n' % (b"x" * 9_000))
    make(tmp_path, "one.log", data=b"\x01")
    make(tmp_path, "empty.log", data=b"")
    assert names(expand([str(tmp_path)])[0], tmp_path) == [
        "bars.log",
        "empty.log",
        "hole.log",
        "long.jsonl",
        "one.log",
        "packed.json.gz",
        "wide.log",
        "wrapped.json",
    ]


def test_a_file_that_is_named_is_taken_whatever_it_is_called(tmp_path):
    make(tmp_path, "log.py", "model.pt", ".hidden")
    files, skips = expand([str(tmp_path / name) for name in ("log.py", "model.pt", ".hidden")])
    assert names(files, tmp_path) == ["log.py", "model.pt", ".hidden"]
    assert skips == []


def test_a_file_that_is_named_and_known_to_be_no_log(tmp_path):
    make(tmp_path, "a.log")
    make(tmp_path, "model.pt", data=b"PK\x03\x04" + b"\0" * 300)
    make(tmp_path, "logs.tar", data=b"a.log".ljust(257, b"\0") + b"ustar\x0000" + b"\0" * 300)
    make(tmp_path, "x.npy", data=b"\x93NUMPY\x01\0")
    assert reasons([str(path) for path in sorted(tmp_path.iterdir())]) == {
        "logs.tar": "tar archives are not read: unpack it and give the folder",
        "model.pt": "zip archives are not read: unpack it and give the folder",
        "x.npy": "not a log but a NumPy array",
    }


def test_flight_recorder_dumps_are_set_aside(tmp_path):
    pickled = b"\x80\x02}q\x00(X\x09\x00\x00\x00pg_configq\x01}q\x02u."
    make(tmp_path, "nccl_trace_rank_10", "comm_lib_trace_rank_1", "sub/own_name_3", "four_4.pkl", data=pickled)
    make(tmp_path, "nccl_trace_rank_2.json", "other_5.json", data=b'{"entries": [], "pg_status": {}}')
    make(tmp_path, "a.log", "nccl_trace_rank_0.log")
    make(tmp_path, "weights.pkl", data=b"\x80\x02}q\x00.")
    make(tmp_path, "config.json", data=b'{"entries": []}')
    dumps = ["comm_lib_trace_rank_1", "four_4.pkl", "nccl_trace_rank_2.json", "nccl_trace_rank_10", "other_5.json", "own_name_3"]
    walked = sort_out([str(tmp_path)])
    assert [os.path.basename(path) for path in walked.dumps] == dumps
    assert [os.path.basename(file.path) for file in walked.logs] == ["a.log", "nccl_trace_rank_0.log"]
    named = sort_out([str(tmp_path / "nccl_trace_rank_10"), str(tmp_path / "sub"), str(tmp_path / "nccl_trace_rank_10")])
    assert [os.path.basename(path) for path in named.dumps] == ["nccl_trace_rank_10", "own_name_3"]
    assert not named.logs
    assert not named.skips
    with pytest.raises(InputError):
        expand([str(tmp_path / "sub")])


def test_links_pipes_sockets_and_devices(tmp_path):
    outside = tmp_path / "outside"
    inside = tmp_path / "inside"
    make(outside, "x.log")
    make(inside, "a.log", "sub/b.log")
    (inside / "broken").symlink_to("nowhere")
    (inside / "ring1").symlink_to("ring2")
    (inside / "ring2").symlink_to("ring1")
    (inside / "sub" / "up").symlink_to("..")
    (inside / "self").symlink_to(".")
    (inside / "same").symlink_to("sub")
    (inside / "away").symlink_to(outside)
    (inside / "null").symlink_to("/dev/null")
    os.mkfifo(inside / "pipe")
    here = os.getcwd()
    os.chdir(inside)  # the path of a socket is short
    try:
        server = socket.socket(socket.AF_UNIX)
        server.bind("plug")
    finally:
        os.chdir(here)
    files, _ = expand([str(inside)])
    assert names(files, inside) == ["a.log", "sub/b.log"]
    assert reasons([str(inside)]) == {
        "broken": "a broken link, to nowhere",
        "ring1": "a loop of links",
        "ring2": "a loop of links",
        "up": "a link back to a folder that it is in: not followed",
        "self": "a link back to a folder that it is in: not followed",
        "away": "a link to a folder: not followed; name the folder itself to have it read",
        "null": "a device, not a log",
        "pipe": "a FIFO: read only when it is named itself",
        "plug": "a socket, not a log",
    }
    named = [str(inside / name) for name in ("a.log", "broken", "ring1", "null", "plug", "pipe")]
    files, skips = expand(named)
    assert names(files, inside) == ["a.log", "pipe"]
    assert [skip.reason for skip in skips] == ["a broken link, to nowhere", "a loop of links", "a device, not a log", "a socket, not a log"]
    assert names(expand([str(inside / "away")])[0], inside) == ["away/x.log"]
    server.close()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that an unprivileged user may enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_what_may_not_be_read(open_folder):
    make(open_folder, "a.log", "secret.log", "closed/x.log")
    (open_folder / "secret.log").chmod(0)
    (open_folder / "closed").chmod(0)
    me = os.geteuid()
    if me == 0:
        os.seteuid(65_534)  # root may read everything
    try:
        files, skips = expand([str(open_folder)])
        assert names(files, open_folder) == ["a.log"]
        assert {(os.path.basename(skip.source), skip.reason) for skip in skips} == {
            ("secret.log", "permission denied"),
            ("closed", "permission denied"),
        }
        with pytest.raises(InputError, match=r"secret\.log: permission denied"):
            expand([str(open_folder / "secret.log")])
        reader = Reader(LogFile(str(open_folder / "secret.log")))
        assert list(reader) == []
        assert reader.skip is not None
        assert reader.skip.reason == "permission denied"
        with pytest.raises(InputError, match=r"x\.log: permission denied"):
            expand([str(open_folder / "closed" / "x.log")])
    finally:
        if me == 0:
            os.seteuid(0)
        (open_folder / "closed").chmod(0o755)


def test_more_files_than_any_job_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(walking, "MOST_FILES", 20)
    make(tmp_path, *(f"{i}.log" for i in range(21)))
    files, skips = expand([str(tmp_path)])
    assert len(files) == 20
    assert skips[0].reason == "more than 20 files: the rest was left out; name the folder of the logs"


def test_a_skip_is_no_error_while_something_can_be_read(tmp_path):
    make(tmp_path, "a.log")
    (tmp_path / "empty").mkdir()
    make(tmp_path, "weights/model.pt")
    arguments = [str(tmp_path / name) for name in ("gone.log", "a.log", "*.xyz", "empty", "weights")] + ["", "a\0b"]
    assert [file.path for file in expand(arguments)[0]] == [str(tmp_path / "a.log")]
    assert reasons(arguments) == {
        "gone.log": "no such file",
        "*.xyz": "no file has a name of this pattern",
        "empty": "an empty folder",
        "weights": "no log in this folder",
        "": "not a path",
        "a\\x00b": "not a path",
    }


def test_nothing_to_read_is_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(InputError) as caught:
        expand([str(tmp_path / "gone.log")])
    assert (
        str(caught.value)
        == f"no log could be read: {tmp_path}/gone.log: no such file. Give a file, a folder, a pattern, or - for standard input"
    )
    with pytest.raises(InputError, match="an empty folder"):
        expand([str(tmp_path)])
    with pytest.raises(InputError, match="no log was named"):
        expand([])
    with pytest.raises(InputError, match=r"'': not a path"):
        expand([""])
    with pytest.raises(InputError, match=r"c: no such file; and 2 more\. Give"):
        expand([str(tmp_path / name) for name in "abcde"])
    make(tmp_path, "a.log")
    with pytest.raises(InputError, match="not a directory"):
        expand([str(tmp_path / "a.log" / "b.log")])
    with pytest.raises(InputError, match="file name too long"):
        expand(["x" * 300])


def test_odd_names_are_read_and_shown_escaped(tmp_path):
    raw = os.fsdecode(b"rank_1\n\xff\x1b[31m\xe2\x80\xae.log")
    make(tmp_path, raw, "损失 é.log")
    for arguments in ([str(tmp_path)], [str(tmp_path / raw), str(tmp_path / "损失 é.log")]):
        files, _ = expand(arguments)
        assert [os.path.basename(file.path) for file in files] == ["rank_1\\n\\xff\\x1b[31m\\u202e.log", "损失 é.log"]
        assert [file.rank for file in files] == [1, None]
        assert all(file.path.isprintable() and file.group.isprintable() for file in files)
        assert [b"".join(chunk.data for chunk in Reader(file)) for file in files] == [b"line\n"] * 2
    assert files[1].opened is None


@given(
    st.lists(
        st.binary(min_size=1, max_size=12).filter(lambda name: not set(name) & {0, 0x2F} and not name.startswith(b".")),
        min_size=1,
        max_size=8,
        unique=True,
    )
)
def test_any_names_work(tmp_path_factory, raw_names):
    folder = os.fsencode(tmp_path_factory.mktemp("names"))
    paths = [os.path.join(folder, name) for name in raw_names]
    for path in paths:
        with open(path, "wb") as stream:
            stream.write(b"x\n")
    files, _ = expand([os.fsdecode(path) for path in paths])
    assert len(files) == len(paths)
    assert sorted(os.fsencode(file.opened or file.path) for file in files) == sorted(paths)
    assert all(file.path.isprintable() for file in files)
    assert files == expand([os.fsdecode(path) for path in paths])[0]


@given(st.lists(st.text(max_size=20), min_size=2, max_size=5))
def test_natural_order_is_an_order(texts):
    backwards = texts[::-1]
    assert sorted(backwards, key=natural) == sorted(texts, key=natural)


def test_natural_order():
    assert sorted(["r10", "r9", "r", "r1a", "r1", "10", "9", "a"], key=natural) == ["9", "10", "a", "r", "r1", "r1a", "r9", "r10"]

"""What is no log: known by its first bytes, and in a folder by its name."""

from __future__ import annotations

import re
from functools import lru_cache

from memdoctor.lazy import lazy
from memdoctor.records import record
from memdoctor.sources.dumps.names import dump_head, dump_name, maybe_dump
from memdoctor.sources.logs.archives import MAGIC, packing
from memdoctor.sources.logs.encodings import LOOK, encoding
from memdoctor.sources.logs.wrapped import unwrapper

__all__ = ["LOOK", "Foreign", "dump", "foreign", "maybe_dump", "uninteresting_folder", "uninteresting_head", "uninteresting_name", "wraps"]


@record
class Foreign:
    """A format that is not read. ``archive``: it may well hold logs, so that leaving it out is worth saying."""

    what: str
    archive: bool = False

    @property
    def reason(self) -> str:
        if self.archive:
            return f"{self.what} archives are not read: unpack it and give the folder"
        return f"not a log but {self.what}"


_MAGICS = (
    (257, b"ustar", Foreign("tar", archive=True)),
    (0, b"PK\x03\x04", Foreign("zip", archive=True)),
    (0, b"7z\xbc\xaf\x27\x1c", Foreign("7z", archive=True)),
    (0, b"Rar!\x1a\x07", Foreign("rar", archive=True)),
    (0, b"\x04\x22\x4d\x18", Foreign("lz4", archive=True)),
    (0, b"\x1f\x9d", Foreign("compress (.Z)", archive=True)),
    (0, b"\x89LZO\0", Foreign("lzop", archive=True)),
    (0, b"\x7fELF", Foreign("a program or a core dump")),
    (0, b"\x93NUMPY", Foreign("a NumPy array")),
    (0, b"\x89PNG", Foreign("an image")),
    (0, b"\xff\xd8\xff", Foreign("an image")),
    (0, b"%PDF-", Foreign("a PDF document")),
    (0, b"\x89HDF\r\n", Foreign("an HDF5 file")),
    (0, b"PAR1", Foreign("a Parquet file")),
    (0, b"GGUF", Foreign("a GGUF model")),
    (0, b"SQLite format 3\0", Foreign("an SQLite database")),
    (0, b"MMIDIDX\0\0", Foreign("a Megatron dataset index")),
    *((0, b"\x80" + bytes([protocol]), Foreign("a Python pickle")) for protocol in range(2, 6)),
)
_BEGINNINGS = tuple(magic for offset, magic, _ in _MAGICS if offset == 0)

_EXTENSIONS = frozenset(
    # weights, checkpoints, data sets
    "pt pth pkl pickle bin safetensors npy npz idx ckpt distcp h5 hdf5 onnx gguf pb parquet arrow feather msgpack tfrecord tfrecords "
    "lmdb mdb db sqlite sqlite3 model tiktoken "
    # programs, images, profiles
    "so o a pyc pyo pyd whl egg jar class exe dll cubin fatbin ptx png jpg jpeg gif bmp svg webp ico pdf mp4 mkv wav mp3 flac "
    "nsys-rep ncu-rep qdrep pftrace wandb lock pid sock swp "
    # sources and settings, which talk of errors without having any
    "py pyi pyx c cc cpp cxx cu cuh h hpp js ts go rs java sh bash zsh ipynb yaml yml toml ini cfg conf md rst html htm css tex patch diff".split()
)
_NAMES = frozenset(
    "license licence makefile dockerfile latest requirements.txt merges.txt vocab.txt latest_checkpointed_iteration.txt".split()
)
_TENSORBOARD = lazy(r"^events\.out\.tfevents\.")
_FOLDERS = lazy(r"^(?:iter_\d{5,}|global_step_?\d+|checkpoint-\d+|__pycache__|site-packages|node_modules)$")
_PACKED = lazy(r"\.(?:gz|zst|xz|bz2)$", re.IGNORECASE)
# Control bytes that no text holds; NUL bytes are left out, for crashed file systems leave them in logs.
_CONTROL = bytes(set(range(1, 32)) - set(b"\a\b\t\n\v\f\r\x1b"))
_MOST_CONTROL = 0.05  # share of the bytes that are not NUL, in a file that a walk came upon ...
_CERTAIN, _ENOUGH = 0.07, 256  # ... and in one that was named, of at least so many bytes; random bytes have 0.09
_LONGEST_HEADER = 100_000_000  # of a safetensors file, as its own library holds it


def foreign(head: bytes) -> Foreign | None:
    """What the file that begins with ``head`` is, where it is known to be no log."""
    if head.startswith(_BEGINNINGS) or head[257:262] == b"ustar":
        for offset, magic, what in _MAGICS:
            if head[offset : offset + len(magic)] == magic:
                return what
    if head[8:10] == b'{"' and b"\0" in head[:8] and int.from_bytes(head[:8], "little") < _LONGEST_HEADER:
        return Foreign("a safetensors file")
    if packing(head[:MAGIC]) is None and len(head) >= _ENOUGH and _is_no_text(head, _CERTAIN):
        return Foreign("bytes that are no text")
    return None


@lru_cache(maxsize=1)  # it is asked twice
def _control(head: bytes) -> int:
    return len(head) - len(head.translate(None, _CONTROL))


def _is_no_text(head: bytes, most: float) -> bool:
    """True where more than the share ``most`` of ``head`` are bytes that no text holds."""
    control = _control(head)
    if not control or encoding(head)[0] != "utf-8":
        return False
    return control > 1 and control > most * (len(head) - head.count(0))


def dump(name: str, head: bytes) -> bool:
    """True for a flight-recorder dump of torch, by its name or by how it begins."""
    return dump_name(name) or dump_head(head)


def uninteresting_folder(name: str) -> bool:
    """True for a folder that is not entered on a walk: hidden, a checkpoint, a cache."""
    return name.startswith(".") or _FOLDERS.match(name) is not None


def uninteresting_name(name: str) -> bool:
    """True for a file that is left out on a walk because of its name."""
    bare = _PACKED.sub("", name.lower())
    return (
        bare.startswith(".")
        or bare in _NAMES
        or _TENSORBOARD.match(bare) is not None
        or ("." in bare and bare.rpartition(".")[2] in _EXTENSIONS)
    )


def uninteresting_head(name: str, head: bytes) -> bool:
    """True for a file that is left out on a walk because of how it begins: bytes that are no text, or JSON that wraps no log lines."""
    if packing(head[:MAGIC]) is not None or not head:
        return False
    if _is_no_text(head, _MOST_CONTROL):
        return True
    return name != "error.json" and wraps(name) and unwrapper(head) is None


def wraps(name: str) -> bool:
    """True for a file whose name says JSON: a setting, a data set, or wrapped log lines."""
    return name.lower().endswith((".json", ".jsonl", ".ndjson"))

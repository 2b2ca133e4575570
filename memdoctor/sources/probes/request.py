"""What a check is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from memdoctor.records import record


@record
class Request:
    """``environ`` is the environment that the job would start in; ``python`` the interpreter to examine (None: memdoctor's own).

    ``timeout`` is in seconds, for each probe; None leaves each its own. ``root`` stands before every absolute path of the host ("" is the
    host itself). ``build``: extensions may be built. ``busy`` are UUIDs of GPUs on which nothing must be run (None: of no GPU
    is it known that it is free); ``cuda``: the driver answers, and may be asked through torch, too; ``gpus``: how many it counts.
    ``silent``: why the interpreter is not to be started at all.
    """

    environ: Mapping[str, str] = field(default_factory=dict)
    python: str | None = None
    build: bool = False
    expect_gpus: int | None = None
    timeout: float | None = None
    root: str = ""
    busy: tuple[str, ...] | None = None
    cuda: bool = True
    gpus: int = 0
    silent: str = ""

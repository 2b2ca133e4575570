"""What a text for people names that must exist: commands of memdoctor with their options, flags, environment variables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

import click

from memdoctor.cli.group import LATER, root

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>```+)(?P<language>\w*)\n(?P<body>.*?)^ *(?P=ticks)$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_COMMAND = re.compile(r"^(?:\$ )?memdoctor(?: |$)")
_FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")
VARIABLE = re.compile(
    r"(?<![\w.])(?:NCCL|TORCH|TORCHELASTIC|PYTORCH|CUDA|DEEPSPEED|DS|HF|NVTE|OMP|TRITON|MASTER|SLURM|GLOO|MKL|CUBLAS|CUDNN|TRANSFORMERS|LOCAL|WORLD)_[A-Z0-9_]+(?![\w*])"
)


@dataclass(frozen=True, slots=True)
class Snippet:
    """Text that is set as code. ``kind``: paste (a block to paste), text (a block of output or log), span (within a sentence)."""

    text: str
    kind: str


def snippets(markdown: str) -> Iterator[Snippet]:
    """Everything that is set as code, blocks first."""
    for hit in _FENCE.finditer(markdown):
        body = re.sub(rf"^{hit['indent']}", "", hit["body"], flags=re.MULTILINE)
        yield Snippet(body.rstrip("\n"), "text" if hit["language"] in ("text", "") else "paste")
    for hit in _SPAN.finditer(_FENCE.sub("", markdown)):
        yield Snippet(" ".join(hit[2].split()), "span")


def commands(markdown: str) -> list[list[str]]:
    """The calls of memdoctor in blocks to paste and in spans, as words; a word in capitals stands for something to fill in."""
    found = []
    for snippet in snippets(markdown):
        if snippet.kind == "text":
            continue
        for line in snippet.text.replace("\\\n", " ").split("\n"):
            for part in re.split(r"\s*(?:&&|\||;)\s*", line):
                if _COMMAND.match(part.strip()):
                    found.append(shlex.split(part.strip().removeprefix("$ "), comments=True)[1:])
    return found


def flags(markdown: str) -> set[str]:
    """Flags in blocks to paste and in spans."""
    return {flag for snippet in snippets(markdown) if snippet.kind != "text" for flag in _FLAG.findall(snippet.text)}


def variables(markdown: str) -> set[str]:
    """Environment variables in blocks to paste and in spans."""
    return {name for snippet in snippets(markdown) if snippet.kind != "text" for name in VARIABLE.findall(snippet.text)}


def problem(words: list[str]) -> str | None:
    """What is wrong with a call of memdoctor: an unknown command or option. None where it could be run; its arguments are not looked at."""
    command: click.Command = root
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        if command is root and name in LATER:
            return f"`memdoctor {name}` is not in this version"
        inner = command.get_command(click.Context(command), name)
        if inner is None:
            return f"`memdoctor` has no command `{name}`"
        command = inner
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)} | {"--help", "-h"}
    for word in rest:
        option = word.partition("=")[0]
        if option.startswith("-") and option != "-" and option not in known:
            return f"`memdoctor {' '.join(words)}`: no option {option}"
    return None

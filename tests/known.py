"""What exists, by the tables: flags, keys of ds_config, variables, commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from click import Command, Context, Group

from memdoctor.cli.group import root
from memdoctor.derive.variables import load_table
from memdoctor.resources import rules_dir
from memdoctor.tables import read

Entries = Mapping[str, Mapping[str, Any]]
_TOOLS = read(str(Path(__file__).parent / "data" / "tools.yaml"))
TOOLS: Entries = _TOOLS["tools"]


def _table(name: str) -> Any:
    return read(str(rules_dir() / "tables" / f"{name}.yaml"))


_MEGATRON = _table("megatron_flags")
_RELEASES = {release: number for number, release in enumerate(_MEGATRON["releases"])}
MEGATRON: Entries = _MEGATRON["flags"]
_FORK = _table("megatron_deepspeed_flags")
TRAINER: Entries = _table("transformers_flags")["flags"]
KEYS: Entries = _table("deepspeed_config")["keys"]
LAUNCHERS: Mapping[str, Entries] = {command: data["flags"] for command, data in _table("launcher_flags")["commands"].items()}
_OTHERS = {name for group in _TOOLS["variables"] for name in group["names"]}
VARIABLES = _OTHERS | {name for name, entry in load_table().entries.items() if not {"never", "gone"} & set(entry)}
SPOKEN_OF = VARIABLES | set(load_table().entries)  # and those that are gone, or that people only believe in


def releases() -> list[str]:
    """Of Megatron-LM, in order of time."""
    return list(_RELEASES)


def has(entry: Mapping[str, Any], release: str) -> bool:
    """Does this release of Megatron-LM have the flag?"""
    place = _RELEASES[release]
    first, end = _RELEASES[entry.get("since", _MEGATRON["releases"][0])], _RELEASES.get(entry.get("gone", ""), len(_RELEASES))
    return first <= place < end and release not in entry.get("not_in", ())


FORK: Entries = {name: entry for name, entry in MEGATRON.items() if has(entry, _FORK["base"])} | _FORK["flags"]
GONE = {"gone", "refused", "ignored"}  # keys of what is not to be used today
OF_FRAMEWORK: Mapping[str, Entries] = {
    "megatron-lm": MEGATRON,
    "deepspeed": {**FORK, **LAUNCHERS["deepspeed"]},
    "transformers": TRAINER,
    "torchrun": LAUNCHERS["torchrun"],
    "accelerate": LAUNCHERS["accelerate launch"],
    "inference": _TOOLS["inference"],
}


def _everywhere() -> Iterator[str]:
    for table in (*OF_FRAMEWORK.values(), *LAUNCHERS.values()):
        for name, entry in table.items():
            yield from (name, *entry.get("also", ()))
    for tool in TOOLS.values():
        yield from tool.get("flags", ())
    yield from _options(root)


def _options(command: Command) -> Iterator[str]:
    yield from (option for parameter in command.params for option in parameter.opts)
    if isinstance(command, Group):
        context = Context(command)
        inner = [command.get_command(context, name) for name in command.list_commands(context)]
        yield from (option for each in inner if each is not None for option in _options(each))


EVERYWHERE = frozenset(_everywhere())  # flags of anything, in any version

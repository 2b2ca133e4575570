"""Is what a text names really there? Problems of texts to paste, of configurations and of sentences, each in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memdoctor.derive.variables import judge_variables
from tests import named
from tests.flags import of_flags
from tests.known import EVERYWHERE, GONE, KEYS, LAUNCHERS, SPOKEN_OF, TOOLS, VARIABLES
from tests.pastes import ASSIGNMENT, FLAG, VARIABLE, commands, ds_config, is_code, paths

# Verdicts of `memdoctor check` on a setting that a fix may still ask for: what it costs, and a name that is the old one where the new one is not known yet.
_WANTED = ("leftover", "risky", "contradiction", "renamed")
_KEY = re.compile(r"(?<![\w./])(?:zero_optimization|fp16|bf16|activation_checkpointing|offload_\w+)\.[a-z_0-9.]*[a-z_0-9]")
_ENVIRON = re.compile(r"environ(?:\[|\.get\()[\"'](\w+)")
_OVERRIDE = re.compile(r"\+?[a-z_]+(?:\.[a-z_0-9]+)+=\S+")  # of a Hydra configuration: NeMo, verl
_IMAGE = re.compile(r"[a-z.]+/[\w./-]+:[\w.-]+")
_MODULES = {"pip": "pip", "torch.distributed.run": "torchrun"}


def of_paste(text: str, framework: str | None) -> Iterator[str]:
    """What a text to paste names that is not there today."""
    found = None if is_code(text) else commands(text)
    if found is None:
        yield from _of_variables(_ENVIRON.findall(text))
        return
    yield from _of_variables(name for name in VARIABLE.findall(text) if f"${name}" in text)
    for words in found:
        yield from _of_command(words, framework)


def of_config(text: str) -> Iterator[str]:
    """What is wrong with some lines of a configuration: keys of a ds_config, or settings of variables."""
    config = ds_config(text)
    for path, value in paths(config or {}):
        entry = KEYS.get(path)
        if any(KEYS.get(above, {}).get("type") == "free" for above in _above(path)):
            continue
        if entry is None or GONE & set(entry):
            yield f"no key {path} in today's ds_config"
        elif entry["type"] == "word" and value not in (*entry["values"], "auto"):
            yield f"{path} is one of {entry['values']}, not {value!r}"
        elif isinstance(value, dict) != (entry["type"] in ("section", "free")):
            yield f"{path} is a {entry['type']}"
    if config is None and not is_code(text):
        yield from _of_settings(word for words in commands(text) or () for word in words)


def of_prose(text: str) -> Iterator[str]:
    """Flags, keys and variables that stand in a sentence: they must have been there once, somewhere."""
    for flag in FLAG.findall(text):
        if not any(name == flag or (flag.endswith("-") and name.startswith(flag)) for name in EVERYWHERE):
            yield f"no flag {flag} anywhere"
    yield from (f"no key {key} in ds_config" for key in _KEY.findall(text) if not any(f".{name}".endswith(f".{key}") for name in KEYS))
    yield from (f"no variable {name}" for name in named.VARIABLE.findall(text) if name not in SPOKEN_OF)


def _above(path: str) -> Iterator[str]:
    while path := path.rpartition(".")[0]:
        yield path


def _of_variables(names: Iterable[str]) -> Iterator[str]:
    yield from (f"no variable {name}" for name in sorted(set(names)) if name not in VARIABLES)


def _of_settings(words: Iterable[str]) -> Iterator[str]:
    """``NAME=value``, each by itself, judged as `memdoctor check` judges them."""
    for word in words:
        match = ASSIGNMENT.fullmatch(word)
        if match is None or not (VARIABLE.fullmatch(match[1]) or match[1] in VARIABLES):
            continue
        yield from _of_variables([match[1]])
        if "$" not in match[2] and "..." not in match[2]:
            told = judge_variables({match[1]: match[2]})
            yield from (f"{word}: {each.problem}" for each in told if each.problem not in _WANTED)


def _of_command(words: list[str], framework: str | None) -> Iterator[str]:
    while words and ASSIGNMENT.fullmatch(words[0]):
        yield from _of_settings(words[:1])
        words = words[1:]
    if len(words) > 2 and words[:2] == ["python", "-m"] and words[2] in _MODULES:
        words = [_MODULES[words[2]], *words[3:]]
    if not words or words[0] in ("...", "VALUE") or all(_OVERRIDE.fullmatch(word) or _IMAGE.fullmatch(word) for word in words):
        return
    if words[0].startswith("--"):
        yield from of_flags(words, framework)
    elif words[0] in ("export", "unset"):
        yield from _of_settings(words[1:])
        yield from _of_variables(word for word in words[1:] if VARIABLE.fullmatch(word))
    elif words[0] == "memdoctor":
        told = named.problem(words[1:])
        yield from [told] if told else []
    elif (launcher := _known(words, LAUNCHERS)) is not None:
        yield from _of_launch(launcher, words[len(launcher.split()) :], framework)
    elif (tool := _known(words, TOOLS)) is not None:
        yield from _of_tool(tool, words[len(tool.split()) :], framework)
    else:
        yield f"no command {' '.join(words[:2])}"


def _known(words: list[str], table: Mapping[str, Any]) -> str | None:
    """The longest beginning of a command that a table has."""
    return next((name for length in (3, 2, 1) if (name := " ".join(words[:length])) in table), None)


def _of_launch(launcher: str, words: list[str], framework: str | None) -> Iterator[str]:
    """The launcher's flags, then the command that it starts."""
    names = {other: entry for name, entry in LAUNCHERS[launcher].items() for other in (name, *entry.get("also", ()))}
    rest = list(words)
    while rest and rest[0].startswith("-"):
        flag, _, value = rest.pop(0).partition("=")
        entry = names.get(flag) or names.get(flag.replace("-", "_").replace("__", "--", 1))
        if entry is None or "gone" in entry:
            yield f"`{launcher}` has no {flag}"
        elif entry["type"] not in ("switch", "optional") and not value:
            value = rest.pop(0) if rest else ""
        if entry is not None and entry["type"] == "word" and value not in entry["values"]:
            yield f"{launcher} {flag} is one of {entry['values']}, not {value!r}"
    if rest and launcher in ("srun",):
        yield from _of_command(rest, framework)
    elif rest:
        yield from of_flags(rest[1:], framework)


def _of_tool(tool: str, words: list[str], framework: str | None) -> Iterator[str]:
    entry = TOOLS[tool]
    letters, flags, values = entry.get("letters", ""), entry.get("flags", ()), entry.get("value", "").split()
    rest, passed = list(words), 0
    while rest:
        if entry.get("runs") and not rest[0].startswith("-") and not ASSIGNMENT.fullmatch(rest[0]):
            if passed == int(entry["runs"]) - (entry["runs"] is True):
                yield from _of_command(rest, framework)
                return
            passed += 1
        word = rest.pop(0)
        if ASSIGNMENT.fullmatch(word) and entry.get("runs"):
            yield from _of_settings([word])
        if not re.match(r"--?[A-Za-z]", word):
            continue
        bare = word.partition("=")[0]
        joined = re.match(r"-([A-Za-z]+)", word)
        if bare not in flags and not (joined and set(joined[1]) <= set(letters)):
            yield f"`{tool}` has no {word}"
        if bare.lstrip("-") in values:
            rest = rest[1:]
        if entry.get("any") and tool != "docker run":
            return

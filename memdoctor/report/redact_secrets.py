"""Secrets in text: known by their beginnings, or by the name that stands before them."""

from __future__ import annotations

import re
from collections.abc import Callable

Name = Callable[[str, str], str]  # (kind, what is private) -> its stand-in

_KNOWN = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}|xox[abprs]-[A-Za-z0-9-]{10,}|nvapi-[\w-]{16,}|AIza[\w-]{30,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
)
_HEADER = re.compile(r"\b(?P<head>Bearer\s+|(?i:authorization)\W{1,4}Basic\s+)(?P<value>[A-Za-z0-9._~+/=-]{8,})")
_NAME = r"(?P<name>passw(?:or)?d|passphrase|secret|credentials?|api[_-]?key|access[_-]?key|key|token)"
_VALUE = r"(?P<value>[^\s\"',;&<>{}\[\]()]{4,})"
_ASSIGNED = re.compile(
    rf"(?i)(?P<head>(?<![a-z0-9]){_NAME}[\"']?\s{{0,2}}[=:]\s{{0,2}}[\"']?){_VALUE}"
)  # "api_key": "...", WANDB_API_KEY=...
_FLAG = re.compile(rf"(?i)(?P<head>--[\w-]{{0,40}}?{_NAME}\s+){_VALUE}")  # --hf-token ...
_WORLD = re.compile(r"(?P<head>--world_info[= ])(?P<value>[A-Za-z0-9+/=_-]{8,})")  # DeepSpeed's host list, only encoded
_ALWAYS = ("passw", "passphrase", "secret", "credential", "api", "access")  # whatever their value looks like
_NO_SECRETS = ("none", "null", "true", "false")


def hide_secrets(text: str, name: Name) -> str:
    """``text`` with every secret replaced by ``name("secret", it)``."""

    def named(match: re.Match[str]) -> str:
        value = match["value"]
        certain = match["name"].lower().startswith(_ALWAYS) and value.lower() not in _NO_SECRETS and not value.isdigit()
        return match["head"] + name("secret", value) if certain or _random(value) else match[0]

    text = _KNOWN.sub(lambda match: name("secret", match[0]), text)
    for pattern in (_HEADER, _WORLD):
        text = pattern.sub(lambda match: match["head"] + name("secret", match["value"]), text)
    return _FLAG.sub(named, _ASSIGNED.sub(named, text))


def _random(value: str) -> bool:
    """True where ``value`` looks drawn, not written: a number of tokens, a class or the key of a weight must stay."""
    if len(value) < 16 or value.isdigit() or not re.fullmatch(r"[A-Za-z0-9+/_=-]+", value):
        return False
    mixed = all(re.search(signs, value) for signs in ("[a-z]", "[A-Z]", r"\d+\D+\d|[+/=]"))
    return mixed or bool(re.fullmatch(r"[0-9a-f]+|[0-9A-F]+", value))

"""Hosts, addresses and users in text."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator

from memdoctor.report.redact_secrets import Name

_HOST = r"(?P<host>[A-Za-z][\w-]*(?:\.[\w-]+)*)"
# Where only a host name can stand: NCCL's prefix, syslog, srun, the variable.
_SURE = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:^|[\s|]){_HOST}:\d+:\d+ (?:\[\w+\] |NCCL )",
        rf"^(?:[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d|\d{{4}}-\d\d-\d\dT\S+) {_HOST} [\w./-]+(?:\[\d+\])?:",
        rf"srun: error: {_HOST}: ",
        rf"\bnfs: server {_HOST} (?:not responding|OK)",
        rf"\bNodeName={_HOST}",
        rf"MASTER_ADDR[\"']?\s?[=:]\s?[\"']?{_HOST}",
    )
)
_ZONES = "internal|local|lan|cluster|corp|intra|intranet|com|net|org|edu|gov|io|ai|cloud|eu|de|fr|uk|ch|cn|jp"
# Where a host name may stand, among other words: taken for one only with a digit or a dot in it.
_LIKELY = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?i)(?<!\w)(?:host(?:name)?|node(?:name|list)?|address|endpoint)[\"']?\s{{0,12}}[=:]\s{{0,2}}[\"']?{_HOST}",
        rf"\b(?:ON|Node failure on|nodes?|host) {_HOST}",
        rf"\[{_HOST}\]:\d{{2,5}}\b",
        rf"\({_HOST}, \d{{2,5}}\)",
        rf"\[{_HOST}:\d+\]",
        rf"(?:to|endpoint|server|master|store|peer|from|with) \(?{_HOST}:\d{{2,5}}\b",
        rf"\w@{_HOST}",
        rf"://{_HOST}",
        r"(?P<host>\bip-\d+-\d+-\d+-\d+\b)",
        rf"(?<![\w/.-])(?P<host>[A-Za-z0-9][\w-]*(?:\.[\w-]+)+\.(?:{_ZONES}))\b(?![\w./-]*\()",
        r"(?<![\w/.-])(?P<host>[A-Za-z0-9][\w-]*\.(?:internal|local|com|net|org))\b(?![\w./-]*\()",
    )
)
_PUBLIC = re.compile(
    r"(?i)localhost(\.localdomain)?|(.*\.)?(pytorch\.org|python\.org|pypi\.org|nvidia\.com|github\.com|github\.io|githubusercontent\.com|readthedocs\.io"
    r"|deepspeed\.ai|pydantic\.dev|huggingface\.co|kubernetes\.io|microsoft\.com|kernel\.org|schedmd\.com|ubuntu\.com|docker\.com|docker\.io|w3\.org|apache\.org|arxiv\.org)"
)
_NOT_HOSTS = re.compile(
    r"(?i)(rank|gpu|cuda|mlx\d?|eth|ens|enp|bond|ib|stage|step|layer|xid|nvlink|sm)[_-]?\d[\w:.-]*|.*\.(py|so|cpp|cc|cu|h|log|yaml|json|sh|out|err|txt|gz)"
)
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d)")
_IPV6 = re.compile(
    r"(?:(?<![\w:.])|(?<=[a-z]\d:))(?=[0-9A-Fa-f]*:[0-9A-Fa-f]*:)[0-9A-Fa-f:]{3,39}(?:(?<=:)(?:\d{1,3}\.){3}\d{1,3})?(?:%\w+)?(?![\w:]|\.\d)"
)
_MAC = re.compile(r"(?<![\w:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![\w:])")
_VERSION_BEFORE = re.compile(r"(?i)(version|driver|release|firmware|ver\.?|vbios|nccl|cuda|cudnn|torch|==|>=|<=|~=|\bv)[\s:=('\"]*$")
# Loopback, "any" and docker's default bridge are the same everywhere, and explain faults.
_KEPT_NETWORKS = ("127.0.0.0/8", "0.0.0.0/32", "255.255.255.255/32", "172.17.0.0/16", "::1/128", "::/128")
_USER = (
    re.compile(r"(?i)(?<![a-z])(?:user(?:name)?|logname|owner)[\"']?\s{0,2}[=:]\s{0,2}[\"']?(?P<user>[a-z_][\w.-]*)"),
    re.compile(r"\buid=\d+\((?P<user>[^)\s]+)\)"),
    re.compile(r"(?<![\w.+-])(?P<user>[A-Za-z_][\w.+-]*)@[A-Za-z]"),
)
# Names that give nobody away, and that replaced everywhere would spoil the sense.
COMMON_WORDS = frozenset(
    "root user users ubuntu admin data train model test work torch node nodes rank host hosts worker master gpu cuda nccl all none null unknown localhost "
    "the this that and error failed down not is has was of to in on at for by from with state reason".split()
)


def hosts_in(text: str) -> Iterator[str]:
    """Names that stand where a host name stands."""
    for patterns, sure in ((_SURE, True), (_LIKELY, False)):
        for pattern in patterns:
            for match in pattern.finditer(text):
                host = match["host"].rstrip(".-_")
                if is_private(host) and (sure or (re.search(r"[\d.]", host) and not _NOT_HOSTS.fullmatch(host))):
                    yield host


def is_private(host: str) -> bool:
    """False for a host name that is public or says nothing."""
    return len(host) > 1 and not host.isdigit() and host.lower() not in COMMON_WORDS and not _PUBLIC.fullmatch(host)


def users_in(text: str) -> Iterator[str]:
    """Names that stand where a user name stands."""
    for pattern in _USER:
        for match in pattern.finditer(text):
            if match["user"].lower() not in COMMON_WORDS:
                yield match["user"]


def hide_addresses(text: str, name: Name) -> str:
    """IPv4, IPv6 and hardware addresses replaced; loopback and version numbers stay."""
    kept = [ipaddress.ip_network(network) for network in _KEPT_NETWORKS]

    def replace(match: re.Match[str]) -> str:
        bare = match[0].partition("%")[0]
        try:
            address = ipaddress.ip_address(bare)
        except ValueError:
            return match[0]
        address = getattr(address, "ipv4_mapped", None) or address
        version = address.version == 4 and _VERSION_BEFORE.search(text[max(0, match.start() - 24) : match.start()])
        if version or any(address in network for network in kept if network.version == address.version):
            return match[0]
        return name("ip", str(address))

    text = _MAC.sub(lambda match: name("mac", match[0]), text)
    for pattern in (_IPV6, _IPV4):
        text = pattern.sub(replace, text)
    return text


def words(names: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern that finds each of ``names`` as a whole word, the longest first; None where there are none."""
    each = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?<![A-Za-z0-9])(?:{each})(?![A-Za-z0-9])") if each else None

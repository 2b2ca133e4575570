"""Version ranges such as ``">=1.4, <2.6"``, for versions as logs print them (``2.13.0+cpu``, ``1.13.0a0``, ``v0.20.0+d98e8a``)."""

from __future__ import annotations

from memdoctor.lazy import lazy

_CLAUSE = lazy(r"\s*(>=|<=|==|!=|>|<)\s*v?(\d+(?:\.\d+)*)\s*")
_RELEASE = lazy(r"\s*v?(\d+(?:\.\d+)*)")
ANY = "*"


def parse_range(text: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The clauses of a range, all of which must hold; none for ``*``. Raises ValueError with what is wrong."""
    if text.strip() == ANY:
        return ()
    clauses = []
    for part in text.split(","):
        match = _CLAUSE.fullmatch(part)
        if match is None:
            raise ValueError(f"'{part.strip()}' is no version range")
        clauses.append((match[1], _numbers(match[2])))
    return tuple(clauses)


def fits(version: str, range_: str) -> bool | None:
    """Does ``version`` lie in ``range_``? None where the version cannot be read.

    Only the release numbers count: a pre-release (``2.1.0a0`` of a vendor's container) has the code of its release and prints its messages.
    """
    match = _RELEASE.match(version)
    if match is None:
        return None
    have = _numbers(match[1])
    return all(_holds(have, op, want) for op, want in parse_range(range_))


def compare(left: str, right: str) -> int | None:
    """-1, 0 or 1; None where one of the two is no version."""
    first, second = _RELEASE.match(left), _RELEASE.match(right)
    if first is None or second is None:
        return None
    a, b = _numbers(first[1]), _numbers(second[1])
    return (a > b) - (a < b)


def _numbers(text: str) -> tuple[int, ...]:
    parts = [int(part[:9]) for part in text.split(".")]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def _holds(have: tuple[int, ...], op: str, want: tuple[int, ...]) -> bool:
    match op:
        case ">=":
            return have >= want
        case "<=":
            return have <= want
        case ">":
            return have > want
        case "<":
            return have < want
        case "==":
            return have == want
        case _:
            return have != want

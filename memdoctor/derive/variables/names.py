"""Names that no program reads: which known name was meant?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from memdoctor.derive.variables.table import Table, Verdict

# A name that begins so is read by one library only, so an unknown one is read by nobody.
OWNED = ("NCCL_", "TORCH_NCCL_", "TORCH_FR_", "NVTE_", "OMP_")
FARTHEST = 2  # letters that may be wrong, missing, too many or exchanged
SHORTEST = 8  # characters of a name below which two wrong letters prove nothing


def judge_name(name: str, value: str, table: Table) -> Verdict | None:
    """The verdict on a name that the tables do not hold; None where it may well be somebody else's."""
    bare = re.sub(r"^\s*(?:(?:export|set|declare -x)\s+)?|\s+$", "", name)
    if bare != name and bare in table.entries:
        text = f"the name that is read is {name!r}: NCCL's files hold name=value alone"
        return Verdict(name, value, "misspelt", text, meant=bare)
    if name.startswith(table.foreign):
        return None
    if name.startswith("NCCL_") and f"TORCH_{name}" in table.entries:
        return Verdict(name, value, "misspelt", f"nothing reads {name}", meant=f"TORCH_{name}")
    meant = nearest(name, real_names(table))
    if meant is not None:
        return Verdict(name, value, "misspelt", f"nothing reads {name}", meant=meant)
    if name.startswith(OWNED):
        return Verdict(name, value, "unknown", f"no version of the library that owns the prefix {name.split('_')[0]}_ reads it")
    return None


def real_names(table: Table) -> list[str]:
    return [name for name, entry in table.entries.items() if not entry.get("never") and "gone" not in entry]


def is_near(name: str, known: Iterable[str]) -> bool:
    """True where ``name`` is one of ``known`` or nearly so."""
    return nearest(name, known) is not None


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that ``name`` is a slip of: a few letters, the case, underscores, or the order of its words; else None."""
    best, distance = None, FARTHEST + 1
    plain, words, mask = name.upper().replace("_", ""), sorted(name.upper().split("_")), _letters(name)
    for other in known:
        if other == name:
            return other
        if plain == other.upper().replace("_", "") or words == sorted(other.upper().split("_")):
            return other
        if abs(len(other) - len(name)) >= distance or len(name) < SHORTEST or (mask ^ _letters(other)).bit_count() > 2 * FARTHEST:
            continue
        found = edits(name.upper(), other.upper(), distance - 1)
        if found < distance and not _differ_in_digit(name, other):
            best, distance = other, found
    return best


def _differ_in_digit(one: str, other: str) -> bool:
    """NVTE_FLASH_ATTN_V5 is no slip of NVTE_FLASH_ATTN_V4: a number counts something."""
    return [sign for sign in one if sign.isdigit()] != [sign for sign in other if sign.isdigit()] and len(one) == len(other)


_MASKS: dict[str, int] = {}


def _letters(name: str) -> int:
    mask = _MASKS.get(name)
    if mask is None:
        mask = 0
        for sign in name.upper():
            mask |= 1 << (ord(sign) & 63)
        if len(_MASKS) < 4096:
            _MASKS[name] = mask
    return mask


def edits(one: str, other: str, limit: int) -> int:
    """How many letters to change, insert, remove or exchange with their neighbour; ``limit + 1`` where it is more than ``limit``."""
    rows: list[list[int]] = [[], list(range(len(other) + 1))]
    for i, sign in enumerate(one, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            cost = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (sign != wanted))
            if i > 1 and j > 1 and sign == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, rows[-2][j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
        rows = [rows[-1], row]
    return rows[-1][-1]


def suggest(word: str, values: Iterable[Any]) -> str | None:
    """The allowed value that ``word`` is a slip of."""
    texts = [str(value) for value in values]
    folded = word.upper()
    for text in texts:
        if text.upper() == folded:
            return text
    near = [(edits(folded, text.upper(), 2), text) for text in texts]
    best = min(near, default=(3, ""), key=lambda pair: pair[0])
    return best[1] if best[0] <= (1 if len(word) < 5 else 2) else None

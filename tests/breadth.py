"""How broadly the fixtures show each cause, told from the fixtures themselves: what they are is read off their lines and what they expect.

``python -m tests.breadth`` prints a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from memdoctor.engine.load import load
from memdoctor.engine.tiers import load_tiers
from memdoctor.fixtures import Case, find_cases, read_cases
from memdoctor.records import record
from memdoctor.resources import rules_dir

FIXTURES = Path(__file__).parent.parent / "fixtures"
FRAGMENT = range(5, 16)  # lines, as people paste them
MANY = 3  # ranks that tell of one fault: the one to look at is among them
DUMPS = (".pickle", ".pkl", ".json")
# What started the processes, or stands before each of their lines.
LAUNCHERS: Mapping[str, re.Pattern[str]] = {
    "torchrun": re.compile(r"torch[./]distributed[./](?:run|elastic|launch)"),
    "deepspeed": re.compile(r"\[(?:launch|runner)\.py:"),
    "slurm": re.compile(r"^(?:srun|slurmstepd|sbatch): |^ ?\d+: ", re.M),
    "mpi": re.compile(r"^\[\d+,\d+\]<|mpirun|prterun", re.M),
    "ray": re.compile(r"\((?:\w+ )?pid=\d+"),
    "kubernetes": re.compile(r"^\[pod/|OOMKilled", re.M),
    "lightning": re.compile(r"lightning|^LOCAL_RANK: \d+ - CUDA|GLOBAL_RANK: \d", re.M),
    "accelerate": re.compile(r"accelerate"),
    "pdsh": re.compile(r"^[a-z][\w-]*\d: ", re.M),
    "kernel": re.compile(r" kernel: "),
}


@record
class Breadth:
    """Entries by what they show of one cause. ``fires``: logs whose root cause it is. Of these ``fragments`` are short pieces and
    ``cascades`` hold consequences beside the origin, or the reports of several ranks. ``alike``: near misses that are another cause;
    ``harmless``: ones that are none. ``launchers`` are those of the firing logs."""

    fires: int
    fragments: int
    cascades: int
    alike: int
    harmless: int
    launchers: frozenset[str]


class _Count:
    def __init__(self) -> None:
        self.fires = self.fragments = self.cascades = self.alike = self.harmless = 0
        self.launchers: set[str] = set()


def breadth() -> dict[str, Breadth]:
    """Cause → what the fixtures show of it. Near misses are those in the folder of the cause, or of one of its rules."""
    base = load([rules_dir()])
    causes = {rule.id: rule.cause for rule in base.rules}
    never = load_tiers().harmless  # told, and never the root cause
    counts = {cause: _Count() for cause in base.causes}
    for folder, case in _entries():
        own = folder.name if folder.parent.name == "causes" else causes.get(str(folder.relative_to(FIXTURES)))
        told = {causes.get(each["rule"]) for each in case.diagnoses if not each.get("explained_by")}
        shown = case.root_cause or next((cause for cause in never if cause in told), None)
        if shown is not None:
            _add(counts[shown], folder, case, causes, shown)
        if own is not None and own != shown:
            counts[own].alike += case.root_cause is not None
            counts[own].harmless += case.root_cause is None
    return {
        cause: Breadth(each.fires, each.fragments, each.cascades, each.alike, each.harmless, frozenset(each.launchers))
        for cause, each in sorted(counts.items())
    }


def _entries() -> Iterator[tuple[Path, Case]]:
    for path in find_cases(FIXTURES):
        if "bad_rules" not in path.parts:
            for case in read_cases(path):
                if not case.facts:
                    yield path.parent, case


def _add(count: _Count, folder: Path, case: Case, causes: Mapping[str, str], cause: str) -> None:
    files = [file for name in case.input for file in _files(folder / name)]
    if any(file.suffix in DUMPS for file in files):
        return
    text = "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files)
    count.fires += 1
    count.fragments += len(files) == 1 and sum(bool(line.strip()) for line in text.split("\n")) in FRAGMENT
    ranks = max((len(each.get("ranks", ())) for each in case.diagnoses if causes.get(each["rule"]) == cause), default=0)
    count.cascades += ranks >= MANY or any(each.get("explained_by") for each in case.diagnoses)
    count.launchers.update(name for name, pattern in LAUNCHERS.items() if pattern.search(text))


def _files(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def main() -> None:
    print(f"{'cause':22} fires fragments cascades alike harmless  launchers")
    for cause, each in breadth().items():
        print(
            f"{cause:22} {each.fires:5} {each.fragments:9} {each.cascades:8} {each.alike:5} {each.harmless:8}  {', '.join(sorted(each.launchers))}"
        )


if __name__ == "__main__":
    main()

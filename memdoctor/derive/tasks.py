"""Whether the tasks of Slurm are the ranks: they are where a node has several, and the nodes where each starts a launcher of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from memdoctor.model import Fact

MOST = 100_000  # tasks of a range


def tasks_are_ranks(facts: Sequence[Fact]) -> bool:
    """True where srun tells of several tasks on one node and nothing shows that a task starts more processes."""
    nodes: dict[str, set[int]] = defaultdict(set)
    for fact in facts:
        fields = fact.fields
        local = fields.get("local") if fields.get("local") is not None else fields.get("local_rank")
        if local is not None and (fact.fields.get("stream") or "")[:1] == "n":
            return False
        node, task = fields.get("node") or fact.host, fields.get("task")
        if node is not None and task is not None and fact.kind in ("scheduler", "host.oom"):
            nodes[str(node)].update(_tasks(str(task)))
    return any(len(tasks) > 1 for tasks in nodes.values())


def _tasks(text: str) -> Iterator[int]:
    """The numbers of ``8,10-15``."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            yield from range(int(first), min(int(last or first), int(first) + MOST) + 1)

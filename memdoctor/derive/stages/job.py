"""One attempt of a job as this package sees it, and how its facts are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memdoctor import units
from memdoctor.catalog import with_computed
from memdoctor.derive.shapes import Shapes
from memdoctor.derive.stages.expected import Expected
from memdoctor.derive.stages.grid import Grid
from memdoctor.derive.stages.proposal import Proposal, show_sizes
from memdoctor.model import Fact
from memdoctor.records import record

BECAUSE = {
    "embedding": "it holds the embedding",
    "logits": "it holds the output layer, the logits and the loss",
    "warm_up": "the 1F1B schedule keeps the most micro-batches in flight there",
    "layers": "it holds more layers",
    "moe": "its layers have experts",
    "fewer_layers": "it holds fewer layers",
    "light": "its layers cost less than those of the others",
    "rank": "the other ranks of its stage hold less",
}


@record
class Job:
    attempt: int
    facts: Sequence[Fact]
    shapes: Shapes | None
    grid: Grid | None
    expected: Expected | None

    def fact(self, kind: str, fields: Mapping[str, Any], at: Fact, event: str | None = None) -> Fact:
        """A derived fact that stands where ``at`` stands. ``fields`` may hold ``rank``; unknown ones (None) are left out.

        Facts with one ``event`` are readings of one observation: what rules make of them compete.
        """
        known = {key: value for key, value in fields.items() if value is not None}
        rank = known.pop("rank", None)
        event = event or f"{kind}:{self.attempt}:{known.get('what', '')}:{known.get('stage', '')}:{rank}"
        return Fact(kind, with_computed(kind, known), at.origin, rank, self._host(rank), at.time, self.attempt, at.seq, event, at.after)

    def _host(self, rank: int | None) -> str | None:
        """Where ``rank`` runs, as far as any line tells."""
        if rank is None:
            return None
        for fact in self.facts:
            if fact.fields.get("of_rank", fact.rank) == rank:
                host = fact.fields.get("on_host") or fact.host
                if host is not None:
                    return str(host)
        return None

    @property
    def microbatches(self) -> int | None:
        return self.shapes.layout.microbatches if self.shapes is not None else None


def name_ranks(ranks: Sequence[int]) -> str:
    """``rank 13``, or ``one of ranks 8-11 (a tensor-parallel group)``: within such a group all wait for the slowest."""
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"one of ranks {units.format_ranks(tuple(ranks))} (a tensor-parallel group)"


def proposal_fields(proposal: Proposal | None, grid: Grid, gain: Callable[[Proposal], str]) -> dict[str, Any]:
    if proposal is None:
        return {}
    return {"proposal": proposal.flags, "proposal_split": show_sizes(proposal.sizes, grid.pp), "gain": gain(proposal)}

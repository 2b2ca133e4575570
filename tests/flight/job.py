"""A training job as its ranks' programs: who calls what in which group, in Megatron's order of things. Tensor x pipeline x data parallel.

One-forward-one-backward pipelines with single or batched messages, sharded optimizers that reduce while they compute, norms over the
model-parallel ranks, a barrier-like sum over all.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

FILE = "/workspace/Megatron-LM/megatron/"


@dataclass(frozen=True)
class Group:
    name: str
    desc: str
    ranks: tuple[int, ...]


@dataclass
class Item:
    """One call. ``messages`` are (sender, receiver, elements) of sends and receives; a collective has none."""

    group: Group
    op: str
    sent: tuple[int, ...] = (1,)
    received: tuple[int, ...] = (1,)
    dtype: str = "BFloat16"
    line: int = 0
    aside: bool = False  # on a stream of its own: the rank does not wait for it
    blocks: bool = False  # the host waits for it
    messages: tuple[tuple[int, int, tuple[int, ...]], ...] = ()
    batched: bool = False


@dataclass
class Job:
    """``world = tp * pp * dp`` ranks; rank = tp + TP * (dp + DP * pp)."""

    tp: int
    pp: int
    dp: int
    micro: int = 4
    steps: int = 2
    layers: int = 2
    batched: bool = True
    overlapped: bool = True
    idle_groups: int = 0
    rng: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        self.world = self.tp * self.pp * self.dp
        self.groups: list[Group] = []
        self._number = 0
        every = range(self.world)
        self.all = self._make("default_pg", [tuple(every)])[0]
        self.tensor = self._by_rank("TENSOR_MODEL_PARALLEL_GROUP", lambda t, d, p: (d, p))
        self.data = self._by_rank("DATA_PARALLEL_GROUP", lambda t, d, p: (t, p))
        self.pipe = self._by_rank("PIPELINE_MODEL_PARALLEL_GROUP", lambda t, d, p: (t, d))
        self.model = self._by_rank("MODEL_PARALLEL_GROUP", lambda t, d, p: (d,))
        ends = [tuple(self.rank(t, d, p) for p in (0, self.pp - 1)) for d in range(self.dp) for t in range(self.tp)] if self.pp > 1 else []
        self.ends = {rank: group for group in self._make("EMBEDDING_GROUP", ends) for rank in group.ranks}
        for number in range(self.idle_groups):
            size = 2 + number % 3
            self._make("", [tuple(sorted(self.rng.sample(every, min(size, self.world))))])
        self.programs = {rank: self._program(rank) for rank in every}

    def rank(self, t: int, d: int, p: int) -> int:
        return t + self.tp * (d + self.dp * p)

    def place(self, rank: int) -> tuple[int, int, int]:
        return rank % self.tp, rank // self.tp % self.dp, rank // self.tp // self.dp

    def _make(self, desc: str, members: list[tuple[int, ...]]) -> list[Group]:
        made = []
        for ranks in members:
            made.append(Group(str(self._number), desc or "undefined", ranks))
            self._number += 1
        self.groups += made
        return made

    def _by_rank(self, desc: str, key: object) -> dict[int, Group]:
        parts: dict[object, list[int]] = {}
        for rank in range(self.world):
            parts.setdefault(key(*self.place(rank)), []).append(rank)  # type: ignore[operator]
        return {rank: group for group in self._make(desc, [tuple(ranks) for ranks in parts.values()]) for rank in group.ranks}

    # --- programs -----------------------------------------------------------------------------------------------------

    def _program(self, rank: int) -> list[Item]:
        items: list[Item] = []
        for _ in range(self.steps):
            self._pipeline(rank, items)
            self._finish(rank, items)
        return items

    def _compute(self, rank: int, items: list[Item], line: int) -> None:
        group = self.tensor[rank]
        if self.tp > 1:
            for layer in range(self.layers):
                op, sent, received = (
                    ("_all_gather_base", (512, 1024), (512 * self.tp, 1024)),
                    ("_reduce_scatter_base", (512 * self.tp, 1024), (512, 1024)),
                )[layer % 2]
                items.append(Item(group, op, sent, received, line=line + layer))

    def _pipeline(self, rank: int, items: list[Item]) -> None:
        stage = self.place(rank)[2]
        warm = min(self.pp - stage - 1, self.micro)
        steady = self.micro - warm
        for _ in range(warm):
            self._message(rank, items, take=-1)
            self._compute(rank, items, 100)
            self._message(rank, items, give=1)
        if steady:
            self._message(rank, items, take=-1)
        for number in range(steady):
            self._compute(rank, items, 120)
            self._message(rank, items, give=1, take=1)
            self._compute(rank, items, 140)
            if self.overlapped and self.dp > 1 and number == steady - 1:
                self._reduce(rank, items)
            self._message(rank, items, give=-1, take=-1 if number < steady - 1 else 0)
        for _ in range(warm):
            self._message(rank, items, take=1)
            self._compute(rank, items, 160)
            self._message(rank, items, give=-1)

    def _message(self, rank: int, items: list[Item], *, give: int = 0, take: int = 0) -> None:
        t, d, p = self.place(rank)
        size = (2048, 1, 4096)
        messages = []
        if give and 0 <= p + give < self.pp:
            messages.append((rank, self.rank(t, d, p + give), size))
        if take and 0 <= p + take < self.pp:
            messages.append((self.rank(t, d, p + take), rank, size))
        if not messages:
            return
        if self.batched:
            items.append(Item(self.pipe[rank], "coalesced", line=200, messages=tuple(messages), batched=True))
            return
        if len(messages) > 1 and p % 2:
            messages.reverse()  # single messages: neighbours take turns, or both would send and none receive
        items.extend(Item(self.pipe[rank], "message", line=210, messages=(message,)) for message in messages)

    def _reduce(self, rank: int, items: list[Item]) -> None:
        for bucket in range(2):
            items.append(
                Item(self.data[rank], "_reduce_scatter_base", (8192 * self.dp,), (8192,), "Float", 300 + bucket, aside=self.overlapped)
            )

    def _finish(self, rank: int, items: list[Item]) -> None:
        if self.dp > 1 and not self.overlapped:
            self._reduce(rank, items)
        if rank in self.ends:
            items.append(Item(self.ends[rank], "all_reduce", (1024, 4096), (1024, 4096), "Float", 310))
        if self.tp > 1:
            items.append(Item(self.tensor[rank], "all_reduce", (4096,), (4096,), "Float", 315))
        if self.tp * self.pp > 1:
            items.append(Item(self.model[rank], "all_reduce", (1,), (1,), "Float", 320, blocks=True))
        if self.dp > 1:
            items.append(Item(self.data[rank], "_all_gather_base", (8192,), (8192 * self.dp,), "BFloat16", 330))
        items.append(Item(self.all, "all_reduce", (1,), (1,), "Float", 340, blocks=True))

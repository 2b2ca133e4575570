"""From what a dump holds to a ``RankDump``: the calls that matter, and how far the rank came in each of its groups.

Layouts of torch 2.1 to 2.13: a bare list of entries or a mapping; ``seq_id`` or ``collective_seq_id``; groups by name or only by the rank's
own number; times in ns or us; states that nothing updates (gloo, captured graphs, members of a batch).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memdoctor.model import Call, RankDump
from memdoctor.sources.dumps.batches import BATCH, PAIR, Entry, batch_ends, end_left_out, seq_of
from memdoctor.sources.dumps.fields import dtypes, number, seconds, shapes, text, user_frame
from memdoctor.sources.dumps.groups import Groups, Ranks, rank_by_groups
from memdoctor.sources.dumps.unpacking import NotADump

LAST = 128  # calls kept from the end of a ring, besides those that had not ended
MOST_OPEN = 4_096  # calls kept that had not ended: more than a ring of the usual size holds
FRAMED = 16  # calls from the end whose stack is looked at, besides those that had not ended
NEWEST = 16  # entries from the end among which the last time stands
MOST_ENTRIES = 1_000_000
_KEYS = ("entries", "pg_config", "pg_status")


def rank_dump(raw: Any, path: str, rank: int | None, size: int, known: Ranks) -> RankDump:
    """The dump of one rank. ``known`` is shared between the dumps of a job. Raises NotADump where ``raw`` is something else."""
    if isinstance(raw, list):
        raw = {"entries": raw}
    if not isinstance(raw, Mapping) or not any(key in raw for key in _KEYS):
        raise NotADump("not a flight-recorder dump: it has neither entries nor process groups")
    listed = raw.get("entries") or []
    if not isinstance(listed, (list, tuple)):
        raise NotADump("damaged: its entries are no list")
    entries = [entry for entry in listed[-MOST_ENTRIES:] if type(entry) is dict]
    if listed and not entries:
        raise NotADump("not a flight-recorder dump: what it lists are no operations")
    groups = Groups(raw.get("pg_config"), known)
    recorder = _Recorder(entries, groups)
    recorder.add_status(raw.get("pg_status"))
    if rank is None:
        rank = rank_by_groups(list(groups.by_key.values()))
        if rank is None:
            raise NotADump("it does not tell its rank: let the name end in the rank, as in nccl_trace_rank_3")
    return RankDump(
        path=path,
        rank=rank,
        size=size,
        entries=len(entries),
        groups=groups.by_key,
        calls=recorder.calls(),
        enqueued=recorder.enqueued,
        completed=recorder.completed,
        whole=recorder.whole,
        backend=recorder.backend,
        library=text(raw.get("comm_lib_version")) or text(raw.get("nccl_version")),
        newest=recorder.newest,
    )


class _Recorder:
    def __init__(self, entries: Sequence[Entry], groups: Groups) -> None:
        self._entries, self._groups = entries, groups
        self.enqueued: dict[str, int] = {}
        self.completed: dict[str, int] = {}
        self._last_done: dict[tuple[str, str], int] = {}  # (group, kind of stream) -> place of the last entry that ended
        self._numbers: dict[int, str] = {}  # the rank's own number of a group -> key
        self._sends: set[str] = set()  # groups with sends and receives, whose status counts something else
        self._keys = groups.keys(entries)
        name = text(entries[-1].get("profiling_name")) if entries else ""
        self.backend = name.partition(":")[0] if ":" in name else ""
        self.whole = len(entries) <= LAST and (not entries or number(entries[0].get("record_id", entries[0].get("id")), -1) == 0)
        self._timed = any(entry.get("state") == "started" or entry.get("time_discovered_started_ns") for entry in reversed(entries))
        self.newest: float | None = None
        self._survey()
        self._ends = batch_ends(entries, self._keys) if self._sends else {}

    def _survey(self) -> None:
        """One look at every entry: how far each group came, which entries had not ended."""
        self._open: list[int] = []
        enqueued, completed, last_done = self.enqueued, self.completed, self._last_done
        for place, (entry, key) in enumerate(zip(self._entries, self._keys, strict=True)):
            done = entry.get("state") == "completed" or self._done(entry)
            name = entry.get("profiling_name")
            if entry.get("is_p2p") or (isinstance(name, str) and (":send " in name or ":recv " in name)):
                self._sends.add(key)
                if done:
                    pair = PAIR.search(name) if isinstance(name, str) else None
                    last_done[key, "p2p" if pair is None else pair[0]] = place
            else:
                seq = seq_of(entry)
                if seq > enqueued.get(key, 0):
                    enqueued[key] = seq
                if done:
                    last_done[key, ""] = place
                    if seq > completed.get(key, 0):
                        completed[key] = seq
            if not done:
                self._open.append(place)
        times = [seconds(entry, time) or 0.0 for entry in self._entries[-NEWEST:] for time in ("time_created", "time_discovered_completed")]
        self.newest = max(times, default=0.0) or None

    @staticmethod
    def _done(entry: Entry) -> bool:
        """Whether an operation had ended. NCCL's are retired when they time out, too; of others nothing else is known."""
        if entry.get("time_discovered_completed_ns") or entry.get("time_discovered_completed_us"):
            return True
        return bool(entry.get("retired")) and str(entry.get("profiling_name")).startswith("gloo:")

    def add_status(self, status: Any) -> None:
        """What the process itself counted: it reaches further back than the ring, and is all there is where the ring is empty."""
        for entry, key in zip(self._entries, self._keys, strict=True):
            own = entry.get("pg_id")
            if type(own) is int:
                self._numbers[own] = key
        self._link_unused(status)
        for local, told in status.items() if isinstance(status, Mapping) else ():
            group = self._numbers.get(int(local)) if isinstance(local, str) and local.isdecimal() and len(local) < 8 else None
            if group is None or group in self._sends or not isinstance(told, Mapping):
                continue
            self.enqueued[group] = max(self.enqueued.get(group, 0), number(told.get("last_enqueued_collective")))
            if self.backend == "nccl":
                self.completed[group] = max(self.completed.get(group, 0), number(told.get("last_completed_collective")))

    def _link_unused(self, status: Any) -> None:
        """Groups without an entry: a rank numbers its groups in the order in which it makes them, which is that of their names where those
        are numbers."""
        if not isinstance(status, Mapping):
            return
        linked = set(self._numbers.values())
        left = [group for group in self._groups.by_key.values() if group.key not in linked and group.ranks is not None]
        locals_ = sorted(int(local) for local in status if isinstance(local, str) and local.isdecimal() and len(local) < 8)
        free = [local for local in locals_ if local not in self._numbers]
        if len(left) == len(free) and all(group.name.isdecimal() for group in left):
            for local, group in zip(free, sorted(left, key=lambda group: int(group.name)), strict=True):
                self._numbers[local] = group.key

    def calls(self) -> tuple[Call, ...]:
        """The last calls, and the open ones, in the order of the ring; members of a batch are its parts."""
        count = len(self._entries)
        chosen = sorted({*range(max(0, count - LAST), count), *(place for place in self._open if self._still_open(place))})
        chosen = chosen[-LAST - MOST_OPEN :]
        parts: dict[int, list[Call]] = {}
        calls: list[Call] = []
        for place in chosen:
            entry = self._entries[place]
            call = self._call(place, entry)
            if call is None:
                continue
            end = self._ends.get(place)
            if end is not None and end != place and call.pair is not None:
                parts.setdefault(end, []).append(call)
            else:
                calls.append(call)
        return tuple(
            call if call.index not in parts else _with_parts(call, parts[call.index]) for call in calls if self._whole_batch(call, parts)
        )

    def _whole_batch(self, call: Call, parts: Mapping[int, list[Call]]) -> bool:
        """False for the end of a batch of sends whose members the ring has lost."""
        return call.op != BATCH or call.index in parts or not self._entries[call.index].get("is_p2p")

    def _still_open(self, place: int) -> bool:
        """False where something later on the same stream had ended: the state of this one was just never updated."""
        entry, key = self._entries[place], self._keys[place]
        end = self._ends.get(place)
        if end is not None and end != place:
            return self._is_open(end) and self._still_open(end)
        if end is not None:  # before torch 2.7 a batch of messages was counted as a collective
            return place > max(self._last_done.get((key, stream), -1) for stream in ("p2p", ""))
        pair = PAIR.search(str(entry.get("profiling_name")))
        stream = pair[0] if pair is not None else "p2p" if entry.get("is_p2p") else ""
        if stream == "" and seq_of(entry) <= self.completed.get(key, 0):
            return False
        if pair is not None and end_left_out(self._entries, place):
            return False
        return place > self._last_done.get((key, stream), -1)

    def _is_open(self, place: int) -> bool:
        entry = self._entries[place]
        return not (entry.get("state") == "completed" or self._done(entry))

    def _call(self, place: int, entry: Entry) -> Call | None:
        key = self._keys[place]
        op = text(entry.get("profiling_name")).rpartition(":")[2]
        pair = PAIR.fullmatch(op) if op.startswith(("send ", "recv ")) else None
        between: tuple[int, int] | None = None
        if pair is not None:
            op, first, _, second = pair.groups()
            between = self._global(key, int(first), int(second)) if op == "send" else self._global(key, int(second), int(first))
        elif entry.get("is_p2p") and op != BATCH:
            return None
        limit = number(entry.get("timeout_ms"))
        state = entry.get("state")
        return Call(
            index=place,
            group=key,
            seq=number(entry.get("p2p_seq_id")) if between is not None else seq_of(entry),
            op=op,
            done=not (self._is_open(place) and self._still_open(place)),
            started=state in ("started", "completed") or bool(entry.get("time_discovered_started_ns")) if self._timed else None,
            pair=between,
            inputs=shapes(entry.get("input_sizes")),
            outputs=shapes(entry.get("output_sizes")),
            dtypes=dtypes(entry.get("input_dtypes")) or dtypes(entry.get("output_dtypes")),
            created=seconds(entry, "time_created"),
            ended=seconds(entry, "time_discovered_completed"),
            limit=limit / 1000 if limit > 0 else None,
            frame=user_frame(entry.get("frames")) if place >= len(self._entries) - FRAMED or self._is_open(place) else "",
        )

    def _global(self, key: str, sender: int, receiver: int) -> tuple[int, int]:
        """NCCL names the two by their places in the group."""
        group = self._groups.by_key.get(key)
        ranks = group.ranks if group is not None else None
        if ranks is None or max(sender, receiver) >= len(ranks):
            return sender, receiver
        return ranks[sender], ranks[receiver]


def _with_parts(call: Call, parts: list[Call]) -> Call:
    return Call(
        call.index, call.group, parts[0].seq, call.op, call.done, call.started, None, (), (), (), call.created, call.ended, call.limit,
        call.frame or parts[0].frame, tuple(parts),
    )  # fmt: skip

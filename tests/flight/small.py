"""Flight recorders made call by call, for tests that want to see exactly what stands in them."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

START = 1_795_957_000_000_000_000
FOUR = {
    "0": ("default_pg", (0, 1, 2, 3)),
    "1": ("TP", (0, 1)),
    "2": ("TP", (2, 3)),
    "3": ("DP", (0, 2)),
    "4": ("DP", (1, 3)),
    "5": ("PP", (0, 1, 2, 3)),
}


class Small:
    """Recorders of the ranks of ``groups`` (name -> description, ranks). Calls are numbered as torch numbers them."""

    def __init__(
        self, groups: Mapping[str, tuple[str, tuple[int, ...]]] | None = None, *, backend: str = "nccl", timed: bool = True
    ) -> None:
        self.groups = groups or FOUR
        self.backend, self.timed = backend, timed
        self.ranks = sorted({rank for _, ranks in self.groups.values() for rank in ranks})
        self.entries: dict[int, list[dict[str, Any]]] = {rank: [] for rank in self.ranks}
        self._counts: dict[tuple[int, str], list[int]] = {}

    def call(
        self, ranks: int | tuple[int, ...], group: str, op: str = "all_reduce", size: int | list[int] = 8, *, dtype: str = "Float",
        state: str = "completed", at: float = 0.0, line: int = 10, **more: Any,
    ) -> Small:  # fmt: skip
        """One collective on each of ``ranks``, ``at`` seconds after the start."""
        for rank in (ranks,) if isinstance(ranks, int) else ranks:
            count = self._counts.setdefault((rank, group), [0, 0])
            count[0] += 1
            self._add(
                rank,
                group,
                f"{self.backend}:{op}",
                count,
                [size] if isinstance(size, int) else size,
                dtype,
                state,
                at,
                line,
                p2p=False,
                **more,
            )
        return self

    def message(self, rank: int, group: str, way: str, size: int = 8, *, dtype: str = "Float", state: str = "completed", at: float = 0.0, line: int = 20, batch: bool = False, **more: Any) -> Small:  # fmt: skip
        """A send or receive such as ``0->1`` or ``1<-0`` (places in the group); several, joined by blanks, are a batch."""
        count = self._counts.setdefault((rank, group), [0, 0])
        count[1] += 1
        ways = way.split()
        together = batch or len(ways) > 1
        for one in ways:
            name = f"{self.backend}:{'send' if '->' in one else 'recv'} {one}"
            self._add(rank, group, name, count, [size], dtype, "scheduled" if together else state, at, line, p2p=True, **more)
        if together:
            self._add(rank, group, f"{self.backend}:coalesced", count, None, dtype, state, at, line, p2p=True, **more)
        return self

    def _add(self, rank: int, group: str, name: str, count: list[int], size: list[int] | None, dtype: str, state: str, at: float, line: int, *, p2p: bool, **more: Any) -> None:  # fmt: skip
        created = START + int(at * 1e9)
        own = [key for key, (_, ranks) in self.groups.items() if rank in ranks]
        entry = {
            "record_id": len(self.entries[rank]),
            "pg_id": own.index(group),
            "process_group": (group, self.groups[group][0]),
            "collective_seq_id": count[0],
            "p2p_seq_id": count[1],
            "op_id": count[0] + count[1],
            "profiling_name": name,
            "time_created_ns": created,
            "input_sizes": [] if size is None else [size],
            "input_dtypes": [] if size is None else [dtype],
            "output_sizes": [] if size is None else [size],
            "output_dtypes": [] if size is None else [dtype],
            "state": state,
            "time_discovered_started_ns": created + 10_000 if self.timed and state in ("started", "completed") else None,
            "time_discovered_completed_ns": created + 2_000_000 if state == "completed" else None,
            "retired": state == "completed",
            "timeout_ms": 600_000,
            "is_p2p": p2p,
            "frames": [
                {
                    "name": "all_reduce",
                    "filename": "/opt/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py",
                    "line": 2810,
                },
                {"name": "train_step", "filename": "/workspace/train/loop.py", "line": line},
            ],
        }
        self.entries[rank].append({**entry, **more})

    def dump(self, rank: int, **more: Any) -> dict[str, Any]:
        own = [name for name, (_, ranks) in self.groups.items() if rank in ranks]
        status = {}
        for local, name in enumerate(own):
            done = [
                entry["collective_seq_id"]
                for entry in self.entries[rank]
                if entry["process_group"][0] == name and not entry["is_p2p"] and entry["state"] == "completed"
            ]
            status[str(local)] = {
                "last_enqueued_collective": self._counts.get((rank, name), [0])[0] or -1,
                "last_started_collective": -1,
                "last_completed_collective": max(done, default=-1),
            }
        config = {name: {"name": name, "desc": self.groups[name][0], "ranks": str(list(self.groups[name][1]))} for name in own}
        whole = {"version": "2.10", "pg_config": config, "comm_lib_version": "2.27.5", "pg_status": status, "entries": self.entries[rank]}
        return {**whole, **more}

    def dumps(self, *without: int) -> dict[int, dict[str, Any]]:
        return {rank: self.dump(rank) for rank in self.ranks if rank not in without}

    def write(self, folder: Path, *without: int, as_json: bool = False, prefix: str = "nccl_trace_rank_") -> Path:
        """One file a rank, but for those ``without`` a dump."""
        folder.mkdir(parents=True, exist_ok=True)
        for rank, dump in self.dumps(*without).items():
            if as_json:
                (folder / f"{prefix}{rank}.json").write_text(json.dumps(dump, indent=1) + "\n")
            else:
                (folder / f"{prefix}{rank}").write_bytes(pickle.dumps(dump, protocol=2))
        return folder


def warm(small: Small, rounds: int = 2) -> Small:
    """A few rounds in which all goes well: a sum in each tensor group, one in each data group, one over all."""
    for number in range(rounds):
        for name, (desc, ranks) in small.groups.items():
            if desc != "PP":
                small.call(ranks, name, at=number + (2 if desc == "default_pg" else 1 if desc == "DP" else 0) / 10, line=10 + int(name))
    return small

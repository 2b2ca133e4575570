"""The flight recorder of each rank of a run, in the layout of a given version of torch."""

from __future__ import annotations

import json
import pickle
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.flight.job import FILE, Item
from tests.flight.running import LIMIT, Made, Run

START = 1_795_957_000_000_000_000


@dataclass(frozen=True)
class Style:
    """How the dumps look. ``ring``: entries that a rank keeps. ``timed``: starts are recorded. ``layout``: of torch 2.1, 2.4 or 2.13."""

    ring: int = 2_000
    timed: bool = True
    layout: str = "2.13"
    as_json: bool = False
    frames: bool = True
    skew: float = 0.05
    offset: int = 0  # calls that every group had before the part of the run that is told


class Recording:
    def __init__(self, run: Run, style: Style, rng: random.Random) -> None:
        self.run, self.style, self._rng = run, style, rng
        hosts = {rank: rank // 8 for rank in run.job.programs}
        skews = {host: rng.uniform(-style.skew, style.skew) for host in set(hosts.values())}
        self._skew = {rank: skews[host] for rank, host in hosts.items()}
        self._before = {group.name: rng.randrange(1 + style.offset) for group in run.job.groups}

    def dump(self, rank: int) -> dict[str, Any] | list[dict[str, Any]]:
        """The dump of one rank, as ``pickle.load`` would yield it."""
        job, style = self.run.job, self.style
        local = {group.name: number for number, group in enumerate(group for group in job.groups if rank in group.ranks)}
        entries: list[dict[str, Any]] = []
        counts: dict[str, list[int]] = {name: [self._before[name], 0, -1, -1] for name in local}
        first = self._rng.randrange(1 + 3 * style.offset) if style.offset else 0
        for place, made in sorted(self.run.made[rank].items()):
            self._record(rank, job.programs[rank][place], made, local, counts, entries)
        for number, entry in enumerate(entries):
            entry["record_id"] = first + number
        entries = entries[-style.ring :]
        if style.layout == "2.1":
            return entries
        status = {}
        for name, number in local.items():
            enqueued, _, _, completed = counts[name]
            used = enqueued > 0
            status[str(number)] = {
                "last_enqueued_collective": enqueued if used else -1,
                "last_started_collective": -1,
                "last_completed_collective": completed if completed >= 0 else self._before[name] if used else -1,
            }
        config = {
            group.name: {"name": group.name, "desc": group.desc, "ranks": str(list(group.ranks))}
            for group in job.groups
            if rank in group.ranks
        }
        version = {"2.4": "2.2", "2.13": "2.10"}[style.layout]
        library = "nccl_version" if style.layout == "2.4" else "comm_lib_version"
        return {"version": version, "pg_config": config, library: "2.27.5", "pg_status": status, "entries": entries}

    def write(self, folder: Path, ranks: list[int] | None = None) -> list[Path]:
        """Write the dumps of ``ranks`` (all) into ``folder``, named as torch names them."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for rank in self.run.job.programs if ranks is None else ranks:
            data = self.dump(rank)
            if self.style.as_json:
                path = folder / f"nccl_trace_rank_{rank}.json"
                path.write_text(json.dumps(data))
            else:
                path = folder / f"nccl_trace_rank_{rank}"
                path.write_bytes(pickle.dumps(data, protocol=2))
            paths.append(path)
        return paths

    # --- entries -------------------------------------------------------------------------------------------------------

    def _record(
        self, rank: int, item: Item, made: Made, local: dict[str, int], counts: dict[str, list[int]], entries: list[dict[str, Any]]
    ) -> None:
        count = counts[item.group.name]
        done = made.ended is not None
        if item.messages:
            count[1] += 1
            for message in item.messages:
                own = item.group.ranks.index
                sender, receiver, size = own(message[0]), own(message[1]), message[2]
                name = f"nccl:send {sender}->{receiver}" if message[0] == rank else f"nccl:recv {receiver}<-{sender}"
                member = item.batched
                entries.append(self._entry(rank, item, made, local, count, name, size, size, p2p=True, untouched=member))
            if item.batched:
                entries.append(self._entry(rank, item, made, local, count, "nccl:coalesced", None, None, p2p=True))
            return
        count[0] += 1
        if done:
            count[3] = count[0]
        entries.append(self._entry(rank, item, made, local, count, f"nccl:{item.op}", item.sent, item.received))

    def _entry(
        self, rank: int, item: Item, made: Made, local: dict[str, int], count: list[int], name: str, sent: Any, received: Any, *,
        p2p: bool = False, untouched: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        style = self.style
        done = made.ended is not None and not untouched
        started = made.reached is not None and not untouched and style.timed
        nothing = 0 if style.as_json else None
        entry: dict[str, Any] = {
            "pg_id": local[item.group.name],
            "profiling_name": name,
            "time_created_ns": self._ns(rank, made.created),
            "input_sizes": [] if sent is None else [list(sent)],
            "output_sizes": [] if received is None else [list(received)],
            "state": "completed" if done else "started" if started else "scheduled",
            "time_discovered_started_ns": self._ns(rank, made.reached) if started and made.reached is not None else nothing,
            "time_discovered_completed_ns": self._ns(rank, made.ended) if done and made.ended is not None else nothing,
            "retired": done,
        }
        if style.frames and not style.as_json:
            entry["frames"] = [
                {
                    "name": "all_reduce",
                    "filename": "/opt/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py",
                    "line": 2810,
                },
                {"name": "wrapper", "filename": "/opt/venv/lib/python3.12/site-packages/torch/distributed/c10d_logger.py", "line": 81},
                {"name": "step", "filename": FILE + "core/parallel_state.py", "line": item.line},
                {"name": "train", "filename": FILE + "training/training.py", "line": 1500},
            ]
        if style.layout == "2.1":
            entry["seq_id"] = count[0]
            return entry
        entry["process_group"] = (item.group.name, item.group.desc)
        entry["collective_seq_id"], entry["p2p_seq_id"], entry["op_id"] = count[0], count[1], count[0] + count[1]
        entry["is_p2p"], entry["timeout_ms"] = p2p, int(LIMIT * 1000)
        if style.layout == "2.13":
            entry["input_dtypes"] = [] if sent is None else [item.dtype]
            entry["output_dtypes"] = [] if received is None else [item.dtype]
            entry["thread_id"], entry["thread_name"] = "140000000000", "pt_autograd_0"
        return entry

    def _ns(self, rank: int, second: float) -> int:
        return START + int((second + self._skew[rank]) * 1e9)

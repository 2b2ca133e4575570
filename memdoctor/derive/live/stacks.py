"""Who is in a collective and who is not, by the Python stacks of the ranks of a job that hangs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from memdoctor.derive.live.telling import verdict
from memdoctor.model import Fact
from memdoctor.records import record

_COMMUNICATION = ("torch/distributed/", "deepspeed/comm/")
_WRAPPERS = ("c10d_logger.py", "deepspeed/comm/torch.py", "deepspeed/comm/comm.py", "deepspeed/utils/timer.py")
_BESIDE = frozenset({"wrapper", "wrap", "log_wrapper", "_wrapped", "__init__", "__enter__", "__exit__", "decorate_context"})
# Of what torch.distributed does not is a wait for other ranks: the work of this one, or the set-up and the end of the job.
_NOT_WAITING = frozenset(
    {"rendezvous", "init_process_group", "_new_process_group_helper", "destroy_process_group", "save", "load", "async_save", "_run_trainer"}
)
_LIBRARIES = (
    "torch/", "threading.py", "selectors.py", "socket.py", "queue.py", "subprocess.py", "asyncio/", "concurrent/", "multiprocessing/", "site-packages/", "<frozen", "contextlib.py", "runpy.py",
)  # fmt: skip
ENOUGH = 3  # processes of which nearly all may be called usual
MOSTLY = 2 / 3


@record
class Waiter:
    """One process. ``op`` is the collective that it is in, "" where it is in none; ``place`` the innermost line that is not a library's."""

    fact: Fact
    op: str
    place: str
    frame: str
    steady: bool


def stack_facts(facts: Sequence[Fact]) -> list[Fact]:
    """One fact for each rank that is not where the others are; for each where all are in one collective. Needs two processes."""
    waiters = waiters_of(facts)
    waiting = [waiter for waiter in waiters if waiter.op and waiter.steady]
    if len(waiters) < 2:
        return []
    if not any(waiter.op for waiter in waiters):
        return _apart(waiters)
    if not waiting:
        return []
    op, usual = _most([waiter.op for waiter in waiting]), _most([waiter.place for waiter in waiting])
    ranks = tuple(sorted(waiter.fact.rank for waiter in waiting if waiter.fact.rank is not None))
    common = {"op": op, "waiting": len(waiting), "waiting_ranks": ranks, "others": usual}
    absent = [waiter for waiter in waiters if not waiter.op]
    if absent:
        return [verdict(waiter.fact, {"name": "absent", **common, **_own(waiter)}) for waiter in absent]
    if len(waiting) < len(waiters):
        return []  # some go on from collective to collective: nothing hangs
    odd = [waiter for waiter in waiting if (waiter.op, waiter.place) != (op, usual)]
    if odd and 2 * len(odd) == len(waiting):
        odd = list(waiting)  # as many here as there
    if odd:
        return [verdict(waiter.fact, {"name": "differs", **common, **_own(waiter)}) for waiter in odd]
    return [verdict(waiter.fact, {"name": "together", **common, **_own(waiter)}) for waiter in waiting]


def _apart(waiters: Sequence[Waiter]) -> list[Fact]:
    """With NCCL nobody stands in a collective, but at the first line that needs its result: there nearly all are, for they all went the same way."""
    usual = _most([waiter.place for waiter in waiters])
    there = [waiter for waiter in waiters if waiter.place == usual]
    if len(waiters) < ENOUGH or not all(waiter.steady for waiter in there) or not MOSTLY * len(waiters) <= len(there) < len(waiters):
        return []
    ranks = tuple(sorted(waiter.fact.rank for waiter in there if waiter.fact.rank is not None))
    common = {"waiting": len(there), "waiting_ranks": ranks, "others": usual}
    return [verdict(waiter.fact, {"name": "apart", **common, **_own(waiter)}) for waiter in waiters if waiter.place != usual]


def _own(waiter: Waiter) -> dict[str, object]:
    frame = waiter.frame if waiter.frame != waiter.place else ""
    return {
        "place": waiter.place,
        "frame": frame,
        "steady": waiter.steady,
        "of_pid": waiter.fact.fields.get("of_pid"),
        **({"op": waiter.op} if waiter.op else {}),
    }


def _most(values: Sequence[str]) -> str:
    return Counter(values).most_common(1)[0][0]


def waiters_of(facts: Sequence[Fact]) -> list[Waiter]:
    """Each process by its last stack; ``steady`` where the one before was the same, or there is none."""
    stacks: dict[object, list[Fact]] = {}
    for fact in facts:
        if fact.kind == "process.stack" and fact.fields.get("values"):
            key = fact.rank if fact.rank is not None else (fact.host, fact.fields.get("of_pid"), fact.fields.get("stream"))
            stacks.setdefault(key, []).append(fact)
    return [_waiter(own[-1], own[-2] if len(own) > 1 else None) for own in stacks.values()]


def _waiter(fact: Fact, before: Fact | None) -> Waiter:
    frames: Mapping[str, str] = fact.fields["values"]
    steady = before is None or dict(before.fields["values"]) == dict(frames)
    function, line = next(iter(frames.items()))
    return Waiter(fact, collective(frames), place(frames), f"{function} ({line})", steady)


def collective(frames: Mapping[str, str]) -> str:
    """The collective that the innermost frames are in; "" where they are in none."""
    found = ""
    for function, line in frames.items():
        if not any(part in line for part in _COMMUNICATION):
            if found or not line.startswith(("torch/", "threading.py", "<frozen")):
                return found
            continue
        function = function.rpartition(".")[2]
        if function in _NOT_WAITING:
            return ""
        if function not in _BESIDE and not any(part in line for part in _WRAPPERS):
            found = function
    return found


def place(frames: Mapping[str, str]) -> str:
    """The innermost frame that is not a library's, as "function (file:line)"."""
    own = next(
        ((function, line) for function, line in frames.items() if not line.startswith(_LIBRARIES) and "/site-packages/" not in line), None
    )
    function, line = own if own is not None else next(iter(frames.items()))
    return f"{function} ({line})"

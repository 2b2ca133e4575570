"""What the lines of NCCL's set-up tell of each process, in the wordings of old and new versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdoctor.derive.placement import place
from memdoctor.engine.load import load
from memdoctor.model import Fact
from memdoctor.resources import rules_dir
from memdoctor.sources.logs.collect import read_logs
from tests.nccl_logs import VERSIONS, job, text_of

SIGNALS = load([rules_dir()]).signals
HEAD = "node-01:4100:5200 [0] NCCL INFO "
COMM = "ncclCommInitRank comm 0x55d1 rank 3 nranks 16 cudaDev 3 nvmlDev 3 busId 5d000 commId 0xabc - Init "


def setups(text: str, folder: Path, name: str = "train.log") -> list[Fact]:
    path = folder / name
    path.write_text(text)
    return [fact for fact in read_logs([str(path)], SIGNALS).facts if fact.kind == "nccl.setup"]


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: ".".join(map(str, version)))
def test_every_version_tells_the_same_of_a_rank(version: tuple[int, int, int], tmp_path: Path) -> None:
    made = job(version, seed=3, machines=2)
    made.style = "plain"
    found = {fact.fields["of_rank"]: fact for fact in setups(text_of(made), tmp_path)}
    assert sorted(found) == made.all()
    fact = found[11]
    assert (fact.host, fact.fields["of_pid"], fact.fields["gpu"]) == (made.ranks[11].host, made.ranks[11].pid, 3)
    assert fact.fields["world_size"] == 16
    assert fact.fields["stage"] == "complete"
    assert not fact.fields["connecting"]
    assert (fact.fields["interface"], fact.fields["address"], fact.fields["network"]) == ("eth0", "10.0.7.2", "IB")
    assert len(fact.fields["cards"]) == 8
    assert fact.fields["edges"] == {"p2p": 14, "net": 4, "net_gdr": 4}
    if version >= (2, 5, 0):
        assert (fact.fields["channels"], fact.fields["bus_id"]) == (16, "31000")
    if version >= (2, 20, 0):
        assert (fact.fields["nodes"], fact.fields["local_ranks"], fact.fields["local"]) == (2, 8, 3)
    if version >= (2, 22, 0):
        assert fact.fields["seconds"] == pytest.approx(0.93)
        assert fact.fields["timings"]["bootstrap"] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("lines", "stage"),
    [
        ([HEAD + "Using network IB"], "network"),
        ([HEAD + COMM + "START"], "bootstrap"),
        ([HEAD + COMM + "START", HEAD + "NVLS multicast support is not available on dev 3"], "topology"),
        ([HEAD + COMM + "START", HEAD + "comm 0x55d1 rank 3 nRanks 16 nNodes 2 localRanks 8 localRank 3 MNNVL 0"], "graph"),
        ([HEAD + COMM + "START", HEAD + "Trees [0] 4/-1/-1->3->2 [1] 4/-1/-1->3->2"], "connect"),
        ([HEAD + COMM + "START", HEAD + "Channel 00/0 : 3[3] -> 4[4] via P2P/CUMEM/read"], "connect"),
        ([HEAD + COMM + "START", HEAD + "Connected all rings"], "trees"),
        (
            [
                HEAD + COMM + "START",
                HEAD + "16 coll channels, 16 collnet channels, 0 nvls channels, 16 p2p channels, 2 p2p channels per peer",
            ],
            "finish",
        ),
        ([HEAD + COMM + "START", HEAD + COMM + "COMPLETE"], "complete"),
    ],
)
def test_how_far_the_set_up_came(lines: list[str], stage: str, tmp_path: Path) -> None:
    (fact,) = setups("\n".join(lines) + "\n", tmp_path)
    assert fact.fields["stage"] == stage


def test_a_later_communicator_that_is_not_complete_is_told_of(tmp_path: Path) -> None:
    later = "ncclCommSplit comm 0x66e2 rank 1 nranks 2 cudaDev 3 nvmlDev 3 busId 5d000 parent 0x55d1 splitCount 1 color 7 key 1- Init START"
    (fact,) = setups(f"{HEAD}{COMM}START\n{HEAD}{COMM}COMPLETE\n{HEAD}{later}\n", tmp_path)
    assert (fact.fields["of_rank"], fact.fields["world_size"]) == (3, 16)
    assert (fact.fields["open_rank"], fact.fields["open_size"], fact.fields["stage"]) == (1, 2, "bootstrap")


def test_glued_lines_belong_to_both_of_their_processes(tmp_path: Path) -> None:
    other = COMM.replace("rank 3", "rank 4").replace("cudaDev 3", "cudaDev 4")
    found = setups(f"{HEAD}{COMM}COMPLETEnode-01:4200:5300 [1] NCCL INFO {other}COMPLETE\n", tmp_path)
    assert [(fact.fields["of_pid"], fact.fields["of_rank"]) for fact in found] == [(4100, 3), (4200, 4)]


def test_containers_with_equal_process_ids_stay_apart(tmp_path: Path) -> None:
    text = "".join(f"pod-{pod}:77:90 [0] NCCL INFO {COMM.replace('rank 3', f'rank {pod}')}COMPLETE\n" for pod in range(40))
    found = setups(text, tmp_path)
    assert [(fact.host, fact.fields["of_rank"]) for fact in found] == [(f"pod-{pod}", pod) for pod in range(40)]


def test_connections_at_the_first_collective_are_open_until_they_are_told_of(tmp_path: Path) -> None:
    edge = HEAD + "Channel 00/0 : 3[3] -> 4[4] via P2P/CUMEM\n"
    begun = f"{HEAD}{COMM}START\n{HEAD}{COMM}COMPLETE\n{edge}"
    assert setups(begun, tmp_path)[0].fields["connecting"] is True
    assert setups(f"{begun}{HEAD}Connected all rings, use ring PXN 0 GDR 1\n", tmp_path)[0].fields["connecting"] is False
    assert setups(begun.replace("00/0", "00/1"), tmp_path)[0].fields["connecting"] is False  # a send or receive


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Ring 00 : 0 -> 1 [send] via NET/IB/0/GDRDMA", "net_gdr"),
        ("Ring 00 : 0[0] -> 1[1] via direct shared memory", "shm"),
        ("Channel 02 : 5[8a000] -> 6[8b000] via P2P/IPC/read", "p2p"),
        ("Channel 01/0 : 7[7] -> 8[0] [receive] via NET/IB/1(3)/GDRDMA/Shared", "net_gdr"),
        ("Channel 00/0 : 0[0] -> 8[0] [send] via NET/AWS Libfabric/2", "net_host"),
        ("Channel 00/0 : 0[0] -> 8[0] [send] via NET/Socket/0", "socket"),
        ("Channel 00 : 0[0] -> 1[1] via SHM/CE/direct", "shm"),
    ],
)
def test_the_way_of_a_channel(text: str, kind: str, tmp_path: Path) -> None:
    (fact,) = setups(f"{HEAD}{text}\n", tmp_path)
    assert fact.fields["edges"][kind] == 1


def test_a_log_of_one_rank_keeps_the_rank_of_its_name(tmp_path: Path) -> None:
    (fact,) = setups(HEAD + "Using network IB\n", tmp_path, "rank_5.log")
    assert fact.fields["file_rank"] == 5
    assert place([fact], ())[0].rank == 5


def test_several_processes_are_not_all_of_the_rank_in_the_file_name(tmp_path: Path) -> None:
    text = "".join(f"node-01:{4100 + rank}:5200 [{rank}] NCCL INFO {COMM.replace('rank 3', f'rank {rank}')}COMPLETE\n" for rank in range(4))
    assert [fact.rank for fact in place(setups(text, tmp_path, "rank_0.log"), ())] == [0, 1, 2, 3]


def test_of_very_many_lines_a_part_is_read_and_that_is_said(tmp_path: Path) -> None:
    edge = HEAD + "Channel 00/0 : 3[3] -> 4[4] via P2P/CUMEM\n"
    few = setups(HEAD + COMM + "START\n" + edge * 1_000, tmp_path)[0]
    many = setups(HEAD + COMM + "START\n" + edge * 150_000 + HEAD + COMM + "COMPLETE\n", tmp_path)[0]
    assert (few.fields["whole"], few.fields["edges"]["p2p"]) == (True, 1_000)
    assert (many.fields["whole"], many.fields["stage"]) == (False, "complete")
    assert many.fields["edges"]["p2p"] < 150_000


@pytest.mark.parametrize(
    "line", ["NCCL INFO", HEAD, HEAD + "comm 0xzz rank", HEAD + "Trees [0]", HEAD + "\xff\xfe", "a:1:2 [0] NCCL INFO Channel"]
)
def test_torn_lines_are_left_alone(line: str, tmp_path: Path) -> None:
    assert len(setups(f"{line} - Init COMPLETE via P2P/ Trees [0]\n", tmp_path)) <= 1

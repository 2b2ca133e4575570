"""Ambiguous prefixes are believed only where most lines of a sample have them."""

from __future__ import annotations

import pytest

from memdoctor.sources.logs.beginning import Beginning
from memdoctor.sources.logs.inputs import LogFile
from memdoctor.sources.logs.lines import Line
from memdoctor.sources.logs.prefixes import Prefixes


def taught(sample: list[str], file_rank: int | None = None, year_hint: int | None = None) -> Prefixes:
    prefixes = Prefixes(file_rank=file_rank, year_hint=year_hint)
    prefixes.learn(sample)
    return prefixes


def stripped(sample: list[str], raw: str) -> Line:
    return taught(sample).strip(raw)


SRUN = ["0: start", "1: start", "0: step", "3: step", "2: step", ""]


def test_srun_label() -> None:
    line = stripped(SRUN, "12: hello")
    assert (line.text, line.rank, line.stream) == ("hello", 12, "r12")


def test_srun_label_on_four_lines_of_five() -> None:
    assert stripped([*SRUN, "srun: job 12 queued"], "2: hello").rank == 2
    assert stripped([*SRUN, "a", "b"], "2: hello").text == "2: hello"


def test_what_the_labeller_says_itself_does_not_count() -> None:
    ends = [f"srun: error: gpu-{number}: task {number}: Exited with exit code 1" for number in range(8)]
    assert stripped([*SRUN, *ends, "slurmstepd: error: *** STEP 1.0 ON gpu-1 CANCELLED ***"], "2: hello").rank == 2
    assert stripped(["w1: a", "w2: b", "w1: c", "pdsh@login: w1: ssh exited with exit code 1"], "w2: hello").host == "w2"


def test_srun_label_behind_a_time() -> None:
    line = stripped([f"2024-05-01T10:00:00Z {raw}" for raw in SRUN if raw], "2024-05-01T10:00:01Z 3: [rank3]: x")
    assert (line.text, line.rank) == ("x", 3)
    assert line.time is not None


def test_lines_that_count_up_are_a_listing() -> None:
    assert stripped(["1: import torch", "2: import os", "3:", "4: x"], "5: y").text == "5: y"


def test_numbers_that_only_grow_are_those_of_steps() -> None:
    assert stripped([f"{step}: train 2.1 val 2.3" for step in range(0, 2000, 100)], "2000: train 2.0").text == "2000: train 2.0"


TALK = ["+ export OMP_NUM_THREADS=8", "++ hostname", "+ : 8"] * 100  # a batch script that tells its commands


def stripped_later(later: list[str], raw: str) -> Line:
    prefixes = Prefixes()
    prefixes.learn(TALK, later)
    return prefixes.strip(raw)


def test_lines_further_on_are_asked_where_the_first_ones_teach_nothing() -> None:
    line = stripped_later([*SRUN, " 7: step", "11: step"], " 3: [rank3]: hello")
    assert (line.text, line.rank) == ("hello", 3)
    assert stripped_later(["[0] start", "[3] start", "[0] step"], "[2] hello").rank == 2


def test_lines_further_on_teach_no_names() -> None:
    assert stripped_later(["w1: a", "w2: b", "w1: c"], "w2: hello").host is None
    assert stripped_later(["1: a", "2: b", "3: c", "4: d"], "5: e").text == "5: e"


def test_the_first_lines_count_before_those_further_on() -> None:
    prefixes = Prefixes()
    prefixes.learn(["gpu-1: a", "gpu-2: b", "gpu-1: c"], SRUN)
    assert prefixes.strip("gpu-2: x").host == "gpu-2"
    assert prefixes.strip("2: x").text == "2: x"


def test_a_log_is_asked_in_its_middle() -> None:
    beginning = Beginning(LogFile("train.log"), 1)
    beginning.read("\n".join([*TALK, *SRUN * 60, ""]).encode(), None)
    line = " 2: hello"
    assert beginning.prefixes.strip(line).rank == 2
    assert beginning.ranks == {0, 1, 2, 3}


def test_too_few_lines_teach_nothing() -> None:
    assert stripped(["0: a", "1: b"], "0: c").text == "0: c"


def test_srun_numbers_are_nodes_where_a_tag_inside_says_so() -> None:
    sample = ["0: start", "1: [default3]:start", "0: [default1]:x", "1: y"]
    line = stripped(sample, "1: [default3]:[rank11]: x")
    assert (line.text, line.rank, line.local_rank, line.stream) == ("x", 11, 3, "n1/l3")
    line = stripped(sample, "1: plain")
    assert (line.text, line.rank, line.stream) == ("plain", None, "n1")
    line = stripped(["0: a", "1: [rank11]: x", "0: [rank3]: y"], "1: [rank9]: z")
    assert (line.rank, line.stream) == (9, "n1/r9")
    line = stripped(["0: a", "1: W1129 13:09:23.793000 7 torch/distributed/run.py:874] x", "0: b"], "1: c")
    assert line.rank is None


def test_file_rank_beats_a_task() -> None:
    assert taught(SRUN, file_rank=9).strip("2: x").rank == 9


def test_pipe_label() -> None:
    line = stripped(["0|a", "1|b", "0|c", "1| d"], "3|  File")
    assert (line.text, line.rank) == (" File", 3)


def test_host_label() -> None:
    sample = ["node01: a", "node02: b", "node01: c", "node02: d", "node01:   json = {"]
    line = stripped(sample, "node02: [rank9]: x")
    assert (line.text, line.host, line.rank, line.stream) == ("x", "node02", 9, "node02/r9")
    assert stripped(sample, "node03: late").host == "node03"
    assert stripped(sample, "login-1: x").text == "login-1: x"
    assert stripped(sample, "RuntimeError: x").text == "RuntimeError: x"
    line = stripped(sample, "node01: node01:1:2 [0] NCCL INFO x")
    assert (line.text, line.host, line.pid, line.stream) == ("NCCL INFO x", "node01", 1, "node01")


def test_a_driver_is_no_host() -> None:
    line = "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 46 MC TS crumbstore MCTO (First)"
    assert stripped([line] * 5, line).text == line


def test_many_hosts_with_a_line_each() -> None:
    assert stripped([f"gpu-{number}-b: x" for number in range(50)], "gpu-99-b: y").host == "gpu-99-b"
    assert stripped(["worker-a: x", "worker-b: x"] * 4, "worker-b: y").host == "worker-b"
    assert stripped(["10.0.0.1: x", "10.0.0.2: x"] * 4, "10.0.0.3: y").host == "10.0.0.3"


def test_a_script_that_talks_before_its_job() -> None:
    sample = [f"+ module load x{number}" for number in range(40)] + [f"{task}: a" for task in (0, 2, 1, 0, 3)] * 10
    assert stripped(sample, "3: y").rank == 3
    assert stripped(sample[:50], "3: y").text == "3: y"


@pytest.mark.parametrize(
    "sample",
    [
        ["INFO: a", "INFO: b", "INFO: c"],
        ["WARNING: a", "ERROR: b", "INFO: c", "INFO: d"],
        ["Epoch: 1", "Epoch: 2", "Epoch: 3"],
        ["step1: a", "step1: b", "step2: c", "step2: d"],
        ["layer0: a", "layer0: b", "layer1: c", "layer1: d"],
        ["a1: x", "b2: x", "c3: x", "d4: x"],
        ["srun: a", "srun: b", "srun: c"],
        ["loss: 1", "loss: 2", "loss: 3"],
    ],
)
def test_words_are_no_hosts(sample: list[str]) -> None:
    assert stripped(sample, sample[0]).text == sample[0]


def test_hydra_rank() -> None:
    line = stripped(["[0] a", "[1] b", "[0] c", "[1] d"], "[3]   File")
    assert (line.text, line.rank, line.stream) == ("  File", 3, "r3")
    line = stripped(["[0] a", "[1] b", "[0] c", "[1] d"], "[1] node01:1:2 [0] NCCL INFO x")
    assert (line.text, line.rank, line.stream) == ("NCCL INFO x", 1, "r1")


def test_role_of_torchrun() -> None:
    sample = ["[worker0]:a", "[worker1]:b", "[worker0]:c", "[worker1]:[rank1]: d"]
    line = stripped(sample, "[worker1]:[rank9]:   File")
    assert (line.text, line.rank, line.local_rank, line.stream) == ("  File", 9, 1, "l1")
    assert stripped(["[epoch0]:a", "[epoch0]:b", "[epoch1]:c"], "[epoch1]:x").text == "[epoch1]:x"
    assert stripped(["[a0]:a", "[b0]:b", "[c1]:c"], "[a0]:x").text == "[a0]:x"


def test_pod_and_container() -> None:
    sample = [
        "worker-0 pytorch a",
        "worker-1 pytorch b",
        "worker-0 pytorch c",
        "worker-1 pytorch d",
        "worker-0 pytorch e",
        "worker-0 pytorch f",
    ]
    line = stripped(sample, "worker-3 pytorch [rank3]: x")
    assert (line.text, line.host, line.rank, line.stream) == ("x", "worker-3", 3, "worker-3/r3")
    assert stripped(sample, "a sentence here").text == "a sentence here"
    assert stripped(["this is a", "this is b", "this is c"], "this is d").text == "this is d"


def test_two_layers_are_learnt() -> None:
    sample = ["node01: 0: a", "node01: 1: b", "node02: 2: c", "node02: 3: d", "node01: 0: e", "node02: 3: f"]
    line = stripped(sample, "node02: 3: x")
    assert (line.text, line.host, line.rank, line.stream) == ("x", "node02", 3, "node02/r3")


def test_no_ambiguous_prefix_behind_a_header() -> None:
    assert stripped([f"INFO:root:{raw}" for raw in SRUN if raw], "INFO:root:3: x").text == "3: x"


def iso(prefixes: Prefixes, raw: str) -> str | None:
    stamp = prefixes.strip(raw).time
    return None if stamp is None else stamp.iso[:10]


def test_year_from_dated_prefixes_of_the_sample() -> None:
    prefixes = taught(["x", "[2023-12-31 23:00:00,123] [INFO] [a.py:1:f] y"], year_hint=2026)
    assert prefixes.year == 2023
    assert iso(prefixes, "[E1231 23:30:00.000000000 a.cpp:1] x") == "2023-12-31"
    assert iso(prefixes, "[E101 00:10:00.000000000 a.cpp:1] x") == "2024-01-01"


def test_year_from_the_text_unless_the_hint_gainsays() -> None:
    assert taught(["  time      : 2025-11-29_13:09:27"], year_hint=2026).year == 2025
    assert taught(["built on 2019-11-29 13:09:27"], year_hint=2026).year == 2026
    assert taught(["built on 2019-11-29 13:09:27"]).year == 2019
    assert taught(["W1129 13:09:23.793000 2024 torch/distributed/run.py:874] x"], year_hint=2026).year == 2026


def test_empty_samples() -> None:
    for sample in ([], [""], ["", " ", ""]):
        assert stripped(sample, "x").text == "x"


def test_docker_compose() -> None:
    sample = ["worker-3  | a", "worker-3  | b", "worker-12 | c", "worker-3  |   File"]
    line = stripped(sample, "worker-12 | 2025-05-01 12:00:00,123 [rank27]:   File")
    assert (line.text, line.rank, line.host, line.stream) == ("  File", 27, "worker-12", "worker-12/r27")
    few, raw = ["a"], "2025-05-01T12:00:00.123456789Z stderr F worker-3 | 2025-05-01 12:00:00,123 [rank27]: RuntimeError: x"
    line = stripped(few, raw)  # torch's tag behind it is telling enough
    assert (line.text, line.rank, line.host) == ("RuntimeError: x", 27, "worker-3")
    assert stripped(few, "worker-3 | a | b").text == "worker-3 | a | b"
    table = ["epoch | loss", "one   | 2.0", "two   | 1.9", "three | 1.8"]
    assert stripped(table, table[1]).text == table[1]


@pytest.mark.parametrize(
    "sample",
    [
        ["[Rank 27] a", "[Rank 3] b", "[Rank 27] c", "[Rank 5] d"],
        ["[RANK 27]: a", "[RANK 3]: b", "[RANK 27]: c", "[RANK 5]: d"],
        ["rank=27 a", "rank=3 b", "rank=27 c", "rank=5 d"],
        ["rank: 27, a", "rank: 3, b", "rank: 27, c", "rank: 5, d"],
        ["[GPU27] a", "[GPU3] b", "[GPU27] c", "[GPU5] d"],
    ],
)
def test_words_for_a_rank(sample: list[str]) -> None:
    line = stripped(sample, sample[0][:-1] + "  File")
    assert (line.text, line.rank, line.stream) == ("  File", 27, "r27")
    assert stripped([*sample, *["other text"] * 2], sample[0]).text == sample[0]  # four lines of six are too few


def test_gpu_of_the_node() -> None:
    line = stripped(["[GPU0] a", "[GPU3] b", "[GPU1] c", "[GPU7] d"], "[GPU3] x")
    assert (line.text, line.rank, line.local_rank, line.stream) == ("x", None, 3, "l3")


def test_ranks_that_belong_to_the_message() -> None:
    sample = ["[Rank 27] a", "[Rank 3] b", "[Rank 27] c", "[Rank 5] d"]
    text = "[Rank 1] Watchdog caught collective operation timeout"
    assert stripped(sample, text).text == text
    listing = ["rank=1 a", "rank=2 b", "rank=3 c", "rank=4 d"]
    assert stripped(listing, listing[0]).text == listing[0]


@pytest.mark.parametrize(
    ("form", "rank"),
    [
        ("rank {}: x", 5), ("Rank {}: x", 5), ("[rank_{}] x", 5), ("[rank {}/8] x", 5), ("[R{}] x", 5), ("2026-03-14 14:48:05 | rank={} | x", 5),
        ("2026-03-14 14:48:05 (rank {}) x", 5),
    ],
)  # fmt: skip
def test_words_for_the_rank(form: str, rank: int) -> None:
    sample = [form.format(number) for number in (0, 3, 1, 2, 7)]
    assert (stripped(sample, form.format(rank)).text, stripped(sample, form.format(rank)).rank) == ("x", rank)


@pytest.mark.parametrize("form", ["{} x", "{}.447 x", "[{}.447] x", "{}447 x"])
def test_seconds_since_1970(form: str) -> None:
    line = stripped([form.format(1_773_499_685 + number) for number in range(5)], form.format(1_773_499_690))
    assert line.text == "x"
    assert line.time is not None
    assert line.time.iso[:19] == "2026-03-14T14:48:10"


def test_a_bare_time_of_day() -> None:
    line = stripped(["Sat Mar 14 23:59:50 2026", "23:59:57 a", "23:59:58 b", "00:00:01 c", "00:00:02 d"], "00:00:03 x")
    assert line.text == "x"
    assert line.time is not None
    assert line.time.iso == "2026-03-15T00:00:03"

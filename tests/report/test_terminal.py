"""The report at a terminal: what stands in it, what is folded, what can be pasted, and what a log cannot do to it."""

from __future__ import annotations

import dataclasses
import io
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from memdoctor.model import Diagnosis, Evidence, Fix, Incident, InputFile, Report, Run, Skip, Stamp
from memdoctor.report.terminal import render
from memdoctor.report.text import valid, visible, visible_lines

COMMAND = "--micro-batch-size 1 --global-batch-size 512 --recompute-granularity selective --recompute-modules core_attn mlp"
CONFIG = '{\n  "train_micro_batch_size_per_gpu": 1,\n  "gradient_accumulation_steps": 16\n}'
OOM = Diagnosis(
    "d1", "oom/logits", "oom.logits", "error", "likely", "GPU 3 has no room for the logits: 2 GiB asked, 1.2 GiB free of 79.15 GiB",
    "The output layer makes one number per token and vocabulary entry, in fp32. At this micro-batch that is the largest tensor of the step.",
    "If it fails in the first step with a small tensor, the states do not fit.", "The logits do not fit", "fix-config",
    ranks=(7,), hosts=("node-02",), first_time=Stamp(1.0, "2025-03-01T10:00:01"), iteration=1201,
    evidence=(
        Evidence("train.log", 88123, 7, None, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB"),
        Evidence("train.log", 88120, 7, None, "    loss = cross_entropy(logits, labels)"),
    ),
    fixes=(
        Fix("halve", "Halve the micro-batch and double the accumulation; the global batch stays.", COMMAND, None, "safe", "half of the activations", "oom_logits"),
        Fix("config", "The same in DeepSpeed.", None, CONFIG, "changes-results"),
    ),
)  # fmt: skip
HANG = dataclasses.replace(
    OOM, id="d3", rule="hang/straggler", cause="hang.straggler", title="A rank is late", message="ALLREDUCE did not end within 10 min", explained_by="d1",
    ranks=tuple(rank for rank in range(64) if rank != 7), hosts=(), count=63, first_time=Stamp(601.0, "2025-03-01T10:10:01"), fixes=(),
    evidence=(Evidence("train.log", 90001, 0, None, "Watchdog caught collective operation timeout"),),
)  # fmt: skip
SLOW = dataclasses.replace(
    OOM, id="d2", rule="net/fallback", cause="net.fallback", severity="warning", title="NCCL takes sockets", message="NET/Socket on eth0", ranks=(), hosts=(),
    evidence=(Evidence("train.log", 12, 0, None, "NCCL INFO Using network Socket"),), fixes=(Fix("ib", "Let NCCL see the cards.", "unset NCCL_IB_DISABLE"),),
)  # fmt: skip
NOTE = dataclasses.replace(
    OOM, id="d4", rule="oom/activations", cause="oom.activations", severity="note", recovered=True, title="An early OOM", fixes=()
)
RUN = Run(("megatron-lm", "nccl"), {"nccl": "2.21"}, 64, 64, 1, "failed", 1, 1201)
READ = (InputFile("train.log", 5 << 20, 90010),)
FULL = Report(
    "logs", READ, RUN, "oom.logits", "likely", "fix-config", (), (), (Incident(1, "oom.logits", ("d1", "d2", "d3")),), (OOM, SLOW, HANG, NOTE),
    (("env/driver_old", "no nvidia-smi was read"),), (Skip("dmesg.txt", "permission denied"),),
)  # fmt: skip


class File(io.StringIO):
    def __init__(self, encoding: str | None) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> Any:  # type: ignore[override]
        return self._encoding


def show(report: Report, *, verbose: int = 0, color: bool = False, width: int = 80, encoding: str | None = "utf-8") -> str:
    file = File(encoding)
    render(report, verbose=verbose, color=color, width=width, file=file)
    return file.getvalue()


def of(*diagnoses: Diagnosis, **more: Any) -> Report:
    return dataclasses.replace(FULL, diagnoses=diagnoses, **more)


class TestFailure:
    def test_whole(self) -> None:
        assert show(FULL) == WHOLE

    def test_headline_first(self) -> None:
        first, second, *_ = show(FULL).splitlines()
        assert first == "ROOT CAUSE: The logits do not fit [oom.logits]"
        assert second == "likely, rank 7 on node-02, iteration 1,201, 2025-03-01 10:00:01"

    @pytest.mark.parametrize("width", [20, 60, 80, 100, 200])
    @pytest.mark.parametrize("verbose", [0, 1])
    def test_commands_and_settings_can_be_pasted(self, width: int, verbose: int) -> None:
        text = show(FULL, width=width, verbose=verbose)
        assert COMMAND in [line.strip() for line in text.splitlines()]
        assert '       "train_micro_batch_size_per_gpu": 1,' in text.splitlines()
        assert text.index('"train_micro_batch_size_per_gpu"') < text.index('"gradient_accumulation_steps"')

    @pytest.mark.parametrize("width", [60, 72, 80, 120])
    def test_all_but_what_is_pasted_fits(self, width: int) -> None:
        deep = dataclasses.replace(
            OOM,
            evidence=(
                Evidence("/mnt/" + "deep/" * 40 + "rank7.log", 12, 7, None, "text " * 50),
                Evidence("日本語/" * 12, 1, 3, None, "漢字" * 60),
            ),
        )
        for line in show(of(deep, SLOW, HANG, NOTE), width=width).splitlines():
            assert cell_len(line) <= width or line.strip() in COMMAND

    def test_evidence_is_cropped_or_whole(self) -> None:
        full = "  train.log:88123 [rank 7] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB"
        assert full not in show(FULL)
        assert "  train.log:88123 [rank 7] torch.OutOfMemoryError: CUDA out of memory. Tried to…" in show(FULL).splitlines()
        assert full in show(FULL, verbose=1).splitlines()

    def test_a_long_path_keeps_its_end(self) -> None:
        text = show(of(dataclasses.replace(OOM, evidence=(Evidence("/mnt/" + "deep/" * 40 + "rank7.log", 12, 7, None, "boom"),))))
        assert re.search(r"^  …[/dep]+/rank7\.log:12 \[rank 7\]\n    boom$", text, re.M)

    def test_risk_stands_beside_the_fix(self) -> None:
        text = show(FULL, width=120)
        assert "1. Halve the micro-batch and double the accumulation; the global batch stays. (safe; saves half of" in text
        assert "2. The same in DeepSpeed. (changes results)" in text

    def test_candidates(self) -> None:
        text = show(dataclasses.replace(FULL, candidates=("oom.growth", "oom.activations"), confidence="possible"))
        assert "It could also be: oom.growth, oom.activations" in text

    def test_hosts_to_exclude_can_be_pasted(self) -> None:
        assert "  --exclude=n1,n2.cluster\n" in show(dataclasses.replace(FULL, hosts_to_exclude=("n1", "n2.cluster")))

    def test_a_host_that_is_no_host_is_never_put_into_a_command(self) -> None:
        text = show(dataclasses.replace(FULL, hosts_to_exclude=("n1", "n2; rm -rf ~")))
        assert "--exclude" not in text
        assert "n1, n2; rm -rf ~" in text

    def test_a_warning_is_no_root_cause_in_the_headline(self) -> None:
        text = show(of(SLOW, root_cause="net.fallback", run=dataclasses.replace(RUN, ended="completed")))
        assert text.startswith("WARNING: NCCL takes sockets [net.fallback]\n")
        assert "The run completed." in text

    def test_how_often(self) -> None:
        assert "ranks 0, 1, 12 times" in show(
            of(dataclasses.replace(OOM, ranks=(0, 1), hosts=(), count=12, iteration=None, first_time=None))
        )


class TestFolding:
    def test_consequences_are_one_line_each(self) -> None:
        assert "\nConsequences\n  hang.straggler: 63 ranks (0-6, 8-63), 10 min later: ALLREDUCE did not end wit…\n" in show(FULL)
        assert "Watchdog caught" not in show(FULL)
        assert "Watchdog caught" in show(FULL, verbose=1)

    def test_consequences_of_another(self) -> None:
        chain = dataclasses.replace(HANG, id="d5", cause="net.socket", explained_by="d3", first_time=None)
        assert "net.socket of hang.straggler: 63 ranks (0-6, 8-63): ALLREDUCE" in show(of(OOM, HANG, chain))

    def test_no_duration_across_clocks(self) -> None:
        zoned = dataclasses.replace(HANG, first_time=Stamp(601.0, "2025-03-01T10:10:01Z"))
        assert "later" not in show(of(OOM, zoned))
        assert "later" not in show(of(OOM, dataclasses.replace(HANG, first_time=Stamp(1.2, "2025-03-01T10:00:01.200"))))

    def test_others_are_shorter(self) -> None:
        text = show(FULL)
        assert "warning: NCCL takes sockets [net.fallback]" in text
        assert "unset NCCL_IB_DISABLE" in text
        assert text.count("The output layer makes") == 1
        assert show(FULL, verbose=1).count("The output layer makes") == 2

    def test_many_others(self) -> None:
        many = [dataclasses.replace(SLOW, id=f"d{number}") for number in range(2, 22)]
        assert show(of(OOM, *many)).count("[net.fallback]") == 8
        assert "  and 12 more (-v shows them)" in show(of(OOM, *many))
        assert show(of(OOM, *many), verbose=1).count("[net.fallback]") == 20

    def test_many_consequences_and_skips(self) -> None:
        many = [dataclasses.replace(HANG, id=f"d{number}") for number in range(2, 22)]
        text = show(of(OOM, *many, skips=tuple(Skip(f"f{number}", "gone") for number in range(20))))
        assert text.count("hang.straggler:") == 10
        assert text.count(": gone") == 8
        assert text.count("more (-v shows them)") == 2

    @pytest.mark.parametrize(
        ("notes", "line"),
        [
            ((NOTE,), "1 error that the run got over (-v shows it)."),
            ((dataclasses.replace(NOTE, recovered=False),) * 2, "2 notes (-v shows them)."),
            ((NOTE, dataclasses.replace(NOTE, recovered=False)), "1 note and 1 error that the run got over (-v shows them)."),
        ],
    )
    def test_notes_are_counted(self, notes: tuple[Diagnosis, ...], line: str) -> None:
        assert line in show(of(OOM, *notes)).splitlines()
        assert "An early OOM" not in show(of(OOM, *notes))
        assert "An early OOM" in show(of(OOM, *notes), verbose=1)

    def test_not_checked_only_when_asked(self) -> None:
        assert "env/driver_old" not in show(FULL)
        assert "  env/driver_old: no nvidia-smi was read" in show(FULL, verbose=1).splitlines()

    def test_skips(self) -> None:
        assert "Not looked at\n  dmesg.txt: permission denied\n" in show(FULL)

    def test_incidents_only_when_several(self) -> None:
        assert "Attempts that failed" not in show(FULL)
        run = dataclasses.replace(RUN, attempts=3)
        text = show(
            of(
                OOM,
                SLOW,
                run=run,
                incidents=(Incident(1, "net.fallback", ("d2",)), Incident(2, None, ()), Incident(3, "oom.logits", ("d1",))),
            )
        )
        expected = [
            "Attempts that failed",
            "  attempt 1: NCCL takes sockets [net.fallback]",
            "  attempt 2: nothing says why",
            "  attempt 3: The logits do not fit [oom.logits]",
        ]
        assert "\n".join(expected) in text
        assert "rank 7 on node-02, attempt 1, iteration 1,201" in text

    def test_a_long_message_is_cut(self) -> None:
        long = dataclasses.replace(OOM, message="word " * 400)
        assert show(of(long)).count("word") == 100
        assert show(of(long), verbose=1).count("word") == 400


class TestNothingFound:
    @pytest.mark.parametrize(
        ("ended", "first"),
        [
            ("completed", "Nothing wrong found. The run completed."),
            ("failed", "Nothing found that says why. The run failed."),
            ("killed", "Nothing found that says why. The run was ended from outside."),
            ("cut", "Nothing found. The log is cut off: how the run ended is not known."),
            ("unknown", "Nothing found. How the run ended is not known: the log does not say."),
            ("running", "Nothing found so far. The run was still going on at the last line."),
        ],
    )
    def test_says_how_the_run_ended(self, ended: Any, first: str) -> None:
        report = Report("logs", READ, dataclasses.replace(RUN, ended=ended, frameworks=("nccl",)), None, None, None)
        assert show(report, width=200).splitlines() == [
            first,
            "Read 1 file (5 MiB, 90,010 lines); nccl 2.21; 64 of 64 ranks seen; iterations 1 to 1,201.",
        ]

    def test_an_empty_log_is_not_healthy(self) -> None:
        report = Report("logs", (InputFile("train.log", 0, 0),), Run(), None, None, None)
        assert show(report).splitlines() == ["Nothing to judge: the log is empty.", "Read 1 file (0 bytes, 0 lines)."]
        assert show(dataclasses.replace(report, inputs=())).splitlines()[0] == "Nothing to judge: no log was read."

    def test_notes_do_not_spoil_it(self) -> None:
        report = Report("logs", READ, dataclasses.replace(RUN, ended="completed", attempts=2), None, None, None, diagnoses=(NOTE,))
        text = show(report, width=200)
        assert text.startswith("Nothing wrong found. The run completed.\n")
        assert text.endswith("; 2 attempts.\n1 error that the run got over (-v shows it).\n")


class TestHostile:
    EVIL = "\x1b[2J\x1b]0;title\x07 [bold red]x[/] [link=http://e]y[/link] :smile: \u202egnp\u200b\x9b31m\r\n\x00\ud800\udce9 end"

    def everywhere(self, text: str) -> Report:
        evil = dataclasses.replace(
            OOM, message=text, why=text, not_this=text, title=text, hosts=(text,), evidence=(Evidence(text, 1, None, None, text),),
            fixes=(Fix("f", text, text, text, saves=text),),
        )  # fmt: skip
        return Report(
            "logs", (InputFile(text, 1, 1),), Run((text,), {text: text}, ended="failed"), "oom.logits", "likely", "fix-config", (text,), (text,),
            (Incident(1, "oom.logits", ("d1",)), Incident(2, text, ("d2",))),
            (evil, dataclasses.replace(evil, id="d2"), dataclasses.replace(evil, id="d3", explained_by="d1"), dataclasses.replace(evil, id="d4", severity="note")),
            ((text, text),), (Skip(text, text),),
        )  # fmt: skip

    @pytest.mark.parametrize("verbose", [0, 1])
    def test_no_control_character_and_no_markup(self, verbose: int) -> None:
        text = show(self.everywhere(self.EVIL), verbose=verbose)
        assert all(sign == "\n" or sign.isprintable() for sign in text)
        assert "\\x1b[2J\\x1b]0;title\\x07 [bold red]x[/] [link=http://e]y[/link]" in text
        assert ":smile:" in text
        assert "\\u202egnp\\u200b\\x9b31m" in text

    @pytest.mark.parametrize("verbose", [0, 1])
    def test_colour_is_ours_alone(self, verbose: int) -> None:
        text = show(self.everywhere(self.EVIL), verbose=verbose, color=True)
        assert re.sub(r"\x1b\[[0-9;]*m", "", text) == show(self.everywhere(self.EVIL), verbose=verbose)

    @settings(max_examples=100, deadline=None)
    @given(st.text(st.characters(codec=None), max_size=60), st.sampled_from(["utf-8", "ascii", "latin-1", "cp1252", "no-such", None]))
    def test_any_text(self, text: str, encoding: str | None) -> None:
        shown = show(self.everywhere(text), encoding=encoding, width=60, verbose=1)
        shown.encode(encoding if encoding not in ("no-such", None) else "utf-8")
        assert all(sign == "\n" or sign.isprintable() for sign in shown)


class TestSigns:
    def test_colour(self) -> None:
        assert "\x1b[1;31mROOT CAUSE" in show(FULL, color=True)
        assert "\x1b" not in show(FULL)

    def test_a_terminal_without_unicode(self) -> None:
        text = show(FULL, encoding="ascii")
        assert text.isascii()
        assert "  train.log:88123 [rank 7] torch.OutOfMemoryError: CUDA out of memory. Tried..." in text
        assert all(len(line) <= 80 or line.strip() == COMMAND for line in text.splitlines())

    def test_deterministic(self) -> None:
        assert show(FULL, verbose=1) == show(FULL, verbose=1)

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("plain ≥ 日本語 é 😀", "plain ≥ 日本語 é 😀"),
            ("a\tb\rc\nd", "a b c d"),
            ("\x1b[31m\x07\x7f\x85\x9b", "\\x1b[31m\\x07\\x7f\\x85\\x9b"),
            ("\u202e\u2066\u200d\ufeff\u2028\xad", "\\u202e\\u2066\\u200d\\ufeff\\u2028\\xad"),
            ("\U000e0041\ufe0f\u3164\u115f", "\\U000e0041\\ufe0f\\u3164\\u115f"),
            ("caf\udce9 \ud83d", "caf\\xe9 \\ud83d"),
            ("a\xa0b\u3000c", "a b c"),
        ],
    )
    def test_visible(self, text: str, shown: str) -> None:
        assert visible(text) == shown

    def test_visible_lines_keep_their_indentation(self) -> None:
        assert visible_lines("\na:\n\tb  \n  \x1bc\n") == ["a:", "    b", "  \\x1bc"]

    def test_valid(self) -> None:
        assert valid("a\ud83d\ude00b\udcffc\ud800") == "a😀b\\xffc\ufffd"


WHOLE = """\
ROOT CAUSE: The logits do not fit [oom.logits]
likely, rank 7 on node-02, iteration 1,201, 2025-03-01 10:00:01

GPU 3 has no room for the logits: 2 GiB asked, 1.2 GiB free of 79.15 GiB
  train.log:88123 [rank 7] torch.OutOfMemoryError: CUDA out of memory. Tried to…
  train.log:88120 [rank 7] loss = cross_entropy(logits, labels)

The output layer makes one number per token and vocabulary entry, in fp32. At
this micro-batch that is the largest tensor of the step.

What to do: change the configuration
  1. Halve the micro-batch and double the accumulation; the global batch stays.
     (safe; saves half of the activations)
     --micro-batch-size 1 --global-batch-size 512 --recompute-granularity selective --recompute-modules core_attn mlp
  2. The same in DeepSpeed. (changes results)
     {
       "train_micro_batch_size_per_gpu": 1,
       "gradient_accumulation_steps": 16
     }

Not this: If it fails in the first step with a small tensor, the states do not
          fit.

Also found
  warning: NCCL takes sockets [net.fallback]
    likely, iteration 1,201, 2025-03-01 10:00:01
    NET/Socket on eth0
    train.log:12 [rank 0] NCCL INFO Using network Socket
    Fix: Let NCCL see the cards.
         unset NCCL_IB_DISABLE

Consequences
  hang.straggler: 63 ranks (0-6, 8-63), 10 min later: ALLREDUCE did not end wit…

The run failed. Read 1 file (5 MiB, 90,010 lines); megatron-lm, nccl 2.21; 64 of
64 ranks seen; iterations 1 to 1,201.
1 error that the run got over (-v shows it).

Not looked at
  dmesg.txt: permission denied
"""

"""Several processes that print their tracebacks into one stream, line by line and without prefixes."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from memdoctor.sources.logs.lines import Line
from memdoctor.sources.logs.tracebacks import RawException, TracebackReader, starts

HEAD = "Traceback (most recent call last):"
ONE = [
    HEAD,
    '  File "/job/train.py", line 90, in <module>',
    "    main()",
    '  File "/job/train.py", line 70, in main',
    "    loss.backward()",
    '  File "/venv/lib/python3.10/site-packages/torch/_tensor.py", line 525, in backward',
    "    torch.autograd.backward(",
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1.",
]
OTHER = [
    HEAD,
    '  File "/job/train.py", line 90, in <module>',
    "    main()",
    '  File "/job/train.py", line 64, in main',
    "    batch = next(loader)",
    '  File "/job/data.py", line 12, in __next__',
    "    raise OSError(path)",
    "OSError: /data/7.bin",
]


def read(lines: list[str]) -> list[RawException]:
    """Every exception in ``lines``, with as many readers as they need."""
    found: list[RawException] = []
    reader: TracebackReader | None = None
    for number, text in enumerate(lines, 1):
        line = Line(text=text)
        if reader is not None and not reader.feed(line, number):
            found += reader.finish()
            reader = None
        if reader is None and starts(text):
            reader = TracebackReader()
            assert reader.feed(line, number)
    return found + (reader.finish() if reader is not None else [])


def mix(tracebacks: list[list[str]], order: random.Random) -> list[str]:
    """The tracebacks' lines, each traceback in its own order."""
    rest = [list(reversed(lines)) for lines in tracebacks]
    mixed = []
    while any(rest):
        mixed.append(order.choice([lines for lines in rest if lines]).pop())
    return mixed


def test_in_step():
    (raised,) = read([line for line in ONE for _ in range(4)])
    assert (raised.repeats, raised.complete, len(raised.frames)) == (4, True, 3)
    assert raised.message == "CUDA error: an illegal memory access was encountered\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1."
    assert (raised.first_line, raised.line) == (1, 29)


def test_one_line_ahead():
    lines = [line for pair in zip([*ONE, ""], ["", *ONE], strict=True) for line in pair if line]
    (raised,) = read(lines)
    assert (raised.repeats, raised.complete, len(raised.frames)) == (2, True, 3)
    assert raised.frames[-1].source == "torch.autograd.backward("


@given(st.integers(1, 8), st.randoms(use_true_random=False))
def test_alike_in_any_order(processes: int, order: random.Random):
    found = read(mix([ONE] * processes, order))
    assert sum(raised.repeats for raised in found) == processes
    for raised in found:  # a process that begins when the others are through is read for itself
        assert raised.complete
        assert [frame.lineno for frame in raised.frames] == [90, 70, 525]


def test_same_frames_and_different_words():
    lines = [
        [*ONE[:-2], f"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU {rank} has"] for rank in range(3)
    ]
    found = read([text for texts in zip(*lines, strict=True) for text in texts])
    assert [raised.message[-9:] for raised in found] == ["GPU 0 has", "GPU 1 has", "GPU 2 has"]
    assert all(raised.complete and len(raised.frames) == 3 and raised.root and not raised.chained for raised in found)


def test_chains_in_step():
    chain = [*ONE[:-1], "", "During handling of the above exception, another exception occurred:", "", *OTHER]
    found = read([line for line in chain for _ in range(2)])
    assert [(raised.type, raised.repeats, raised.complete, raised.root, raised.chained) for raised in found] == [
        ("RuntimeError", 2, True, True, True),
        ("OSError", 2, True, False, True),
    ]


def test_different_tracebacks_are_given_up():
    lines = [text for texts in zip(ONE[:-1], OTHER, strict=True) for text in texts]
    found = read(lines)
    assert {(raised.type, raised.message) for raised in found} == {
        ("RuntimeError", "CUDA error: an illegal memory access was encountered"),
        ("OSError", "/data/7.bin"),
    }
    assert all(not raised.complete and raised.frames == () for raised in found)


@given(st.integers(1, 3), st.integers(1, 3), st.randoms(use_true_random=False))
def test_different_tracebacks_never_lend_each_other_frames(ones: int, others: int, order: random.Random):
    found = read(mix([ONE[:-1]] * ones + [OTHER] * others, order))
    counts = {"RuntimeError": 0, "OSError": 0}
    for raised in found:
        counts[raised.type] += raised.repeats
        if raised.complete and raised.frames:
            right = ONE if raised.type == "RuntimeError" else OTHER
            assert all(any(f"line {frame.lineno}, in {frame.function}" in text for text in right) for frame in raised.frames)
    assert counts == {"RuntimeError": ones, "OSError": others}


def test_the_log_goes_on_after_a_mixture():
    lines = [text for texts in zip(ONE[:-1], OTHER, strict=True) for text in texts]
    reader = TracebackReader()
    for number, text in enumerate(lines, 1):
        assert reader.feed(Line(text=text), number)
    assert not reader.feed(Line(text="iteration 12/100 | lm loss 3.1"), len(lines) + 1)


def test_a_process_killed_while_it_prints():
    lines = [ONE[0], ONE[0], ONE[1], ONE[1], ONE[2], *ONE[3:]]
    (raised,) = read(lines)
    assert (raised.complete, len(raised.frames), raised.repeats) == (True, 3, 1)


def test_strangers_are_told_apart():
    reader = TracebackReader()
    took = []
    for number, (text, level) in enumerate(
        [
            (ONE[0], None),
            (ONE[1], None),
            ("step 3 took 4 s", "INFO"),
            (ONE[2], None),
            ("hello", None),
            *((text, None) for text in ONE[3:8]),
        ],
        1,
    ):
        assert reader.feed(Line(text=text, level=level), number)
        took.append(reader.took)
    assert took == [True, True, False, True, False, True, True, True, True, True]
    (raised,) = reader.finish()
    assert (raised.line, len(raised.frames)) == (10, 3)

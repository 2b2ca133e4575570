"""Step lines read in bulk yield the tables that they yield line by line."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from memdoctor.sources.logs.scan import _epoch_of_minute
from memdoctor.sources.logs.step_batches import LAYOUTS, StepReader
from memdoctor.sources.logs.steps import COLUMNS, Series, read_step


def megatron(
    number: int, loss: str | None = "2.5E+00", norm: str | None = "1.25", scale: str = "1.0", skipped: str = "0", stamp: str = ""
) -> str:
    fields = [f"consumed samples: {number * 8:12d}", f"elapsed time per iteration (ms): {100 + number}.5", "learning rate: 1.5E-04"]
    fields += [] if loss is None else [f"lm loss: {loss}"]
    fields += [f"loss scale: {scale}"] + ([] if norm is None else [f"grad norm: {norm}"])
    fields += [f"number of skipped iterations: {skipped:>3}", "number of nan iterations:   0", ""]
    return f"{stamp} iteration {number:8d}/     500 | " + " | ".join(fields)


def deepspeed(number: int, skipped: int = 0) -> str:
    return (
        f"[2026-03-01 10:{number % 60:02d}:07,{number % 1000:03d}] [INFO] [logging.py:96:log_dist] [Rank 0] "
        f"step={number}, skipped={skipped}, lr=[1e-05, 1e-05], mom=[(0.9, 0.95)]"
    )


def in_bulk(lines: Sequence[str], chunk: int = 7) -> Series:
    series = Series("train.log")
    reader = StepReader(series, 5 << 44)
    for first in range(0, len(lines), chunk):
        texts = [line.encode() for line in lines[first : first + chunk]]
        data, start = b"\n".join(texts), 0
        for number, text in enumerate(texts, first + 1):
            if not reader.take(data, start, start + len(text), number):
                found = read_step(text)
                if found is not None:
                    reader.flush()
                    series.add(*found, (5 << 44) | (number << 8), number, text, _epoch_of_minute)
                    reader.learn(found[0], text)
            start += len(text) + 1
        reader.flush()
    return series


def one_by_one(lines: Sequence[str]) -> Series:
    series = Series("train.log")
    for number, text in enumerate(lines, 1):
        found = read_step(text.encode())
        if found is not None:
            series.add(*found, (5 << 44) | (number << 8), number, text.encode(), _epoch_of_minute)
    return series


def rows(series: Series) -> dict[str, list[tuple[object, ...]]]:
    for table in series.tables.values():
        table.pack()
    return {
        shape: [
            (
                table.line[row],
                *(repr(float(table.column(name)[row])) + str(table.is_absent(row, name)) for name in COLUMNS),
                repr(table.epoch[row]),
            )
            for row in range(len(table))
        ]
        for shape, table in series.tables.items()
    }


def same(lines: Sequence[str]) -> Series:
    bulk, single = in_bulk(lines), one_by_one(lines)
    assert rows(bulk) == rows(single)
    assert bulk.kept == single.kept
    assert [bulk.text(number) for number in range(len(lines) + 1)] == [single.text(number) for number in range(len(lines) + 1)]
    assert bulk.main == single.main
    assert bulk.seq(3) == single.seq(3)
    return bulk


_LINES = st.lists(
    st.builds(
        megatron,
        st.integers(1, 10**7),
        st.sampled_from(["2.5E+00", "nan", "inf", "broken", None]),
        st.sampled_from(["1.25", "nan", None]),
        st.sampled_from(["1.0", "65536.0", "32768.0"]),
        st.sampled_from(["0", "1"]),
        st.sampled_from(["", " [2026-03-01 10:00:07.125]", " [2026-03-01 10:00:07]", "[rank7]: [2026-99-01 10:00:07]"]),
    )
    | st.builds(deepspeed, st.integers(0, 10**7), st.integers(0, 4))
    | st.sampled_from(["nothing of a step", "iter 5 loss 2.5 grad_norm 1.0", "step=3, skipped=", ""]),
    max_size=40,
)


@given(_LINES)
def test_agrees_line_by_line(lines: list[str]) -> None:
    same(lines)


def test_a_healthy_run() -> None:
    series = same(
        [megatron(number, f"{5 - number / 100:.6E}", stamp=f" [2026-03-01 10:{number % 60:02d}:07.5]") for number in range(1, 200)]
    )
    table = series.tables["megatron"]
    assert len(table) == 199
    assert table.column("scale").data is None  # never changes, so takes no memory
    assert table.column("loss")[99] == 4.0
    assert sorted(series.kept) == [1, 2, 3, 4]
    assert table.epoch[59] - table.epoch[58] == -59 * 60


def test_bad_steps_are_shown() -> None:
    series = same([megatron(number, "nan" if number > 90 else "2.5E+00", skipped="1" if number == 50 else "0") for number in range(1, 120)])
    assert sorted(series.kept) == [1, 2, 3, 4, 50, 91, 92, 93]


def test_skipped_steps_of_deepspeed_count_from_line_to_line() -> None:
    series = same([deepspeed(number, number // 10) for number in range(60)])
    assert sum(series.column("skipped").slice(0, 60)) == 5


def test_a_log_without_two_lines_alike_is_read_all_the_same() -> None:
    lines = [megatron(number).replace("consumed", "consumed " + "x" * number) for number in range(1, 5 * LAYOUTS)]
    assert len(same(lines)) == len(lines)


def test_a_number_that_cannot_be_an_iteration() -> None:
    series = in_bulk([megatron(1), megatron(2), megatron(2).replace("       2/", "9" * 400 + "/")])
    assert [math.isfinite(value) for value in series.column("iteration").slice(0, 3)] == [True] * 3


def test_a_line_with_a_stamp_is_not_read_like_one_without() -> None:
    """Whatever stands before the numbers counts by its length alone."""
    undated = [deepspeed(number).replace("2026-03-01 10", "worker of nod") for number in (1, 2)]
    lines = [*undated, deepspeed(3), deepspeed(4), *undated]
    assert rows(in_bulk(lines)) == rows(one_by_one(lines))
    epochs = in_bulk(lines).tables["deepspeed"].epoch.slice(0, 6)
    assert [math.isnan(epoch) for epoch in epochs] == [True, True, False, False, True, True]


def test_a_damaged_field_teaches_nothing_of_the_whole_ones() -> None:
    whole = [megatron(number) for number in range(1, 6)]
    damaged = whole[0].replace("loss scale:", "loss scale\x1a")
    assert damaged != whole[0]
    lines = [damaged, *whole[1:], damaged, *whole]
    assert rows(in_bulk(lines)) == rows(one_by_one(lines))


def test_a_stamp_with_a_zone_and_one_far_behind_other_prefixes() -> None:
    zoned = [megatron(number, stamp=f"2026-03-14T03:48:{number:02d}.447+01:00 stderr F") for number in range(1, 9)]
    far = [megatron(number, stamp=f"{'x' * 60} [2026-03-14 02:48:{number:02d}.447]") for number in range(1, 9)]
    named = [megatron(number, stamp=f"03/14/2026 02:48:{number:02d} AM") for number in range(1, 9)]
    for lines in (zoned, far):
        assert rows(in_bulk(lines)) == rows(one_by_one(lines))
    epochs = [in_bulk(lines).tables["megatron"].epoch[0] for lines in (zoned, far)] + [one_by_one(named).tables["megatron"].epoch[0]]
    assert [round(epoch, 3) for epoch in epochs] == [1_773_456_481.447, 1_773_456_481.447, 1_773_456_481.0]

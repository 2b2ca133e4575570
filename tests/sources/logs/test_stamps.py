from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdoctor.sources.logs.stamps import find_stamp, find_with_year, parse_stamp

OCT_23 = 1_792_713_600.0  # 2026-10-23T00:00:00Z
MAY_1 = 1_714_557_600.0  # 2024-05-01T10:00:00Z


@pytest.mark.parametrize(
    ("text", "iso", "epoch"),
    [
        ("2024-05-01 10:00:00", "2024-05-01T10:00:00", MAY_1),
        ("2024-05-01T10:00:00", "2024-05-01T10:00:00", MAY_1),
        ("2024-05-01 10:00:00,123", "2024-05-01T10:00:00.123", MAY_1 + 0.123),
        ("2024-05-01 10:00:00.123456", "2024-05-01T10:00:00.123456", MAY_1 + 0.123456),
        ("2024-05-01T10:00:00.123456789Z", "2024-05-01T10:00:00.123456789Z", MAY_1 + 0.123456789),
        ("2024-05-01T10:00:00Z", "2024-05-01T10:00:00Z", MAY_1),
        ("2024-05-01 10:00:00 UTC", "2024-05-01T10:00:00Z", MAY_1),
        ("2024-05-01T10:00:00+02:00", "2024-05-01T10:00:00+02:00", MAY_1 - 7200),
        ("2024-05-01T10:00:00-0530", "2024-05-01T10:00:00-05:30", MAY_1 + 19_800),
        ("2024-05-01 10:00:00 +0000", "2024-05-01T10:00:00+00:00", MAY_1),
        ("2024/05/01 10:00:00", "2024-05-01T10:00:00", MAY_1),
        ("2024-05-01_10:00:00", "2024-05-01T10:00:00", MAY_1),
        ("2024-12-31T23:59:60Z", "2024-12-31T23:59:60Z", 1_735_689_600.0),
        ("E1023 02:44:30.941975491", "2026-10-23T02:44:30.941975491", OCT_23 + 9870.941975491),
        ("W1023 02:44:30.941000", "2026-10-23T02:44:30.941000", OCT_23 + 9870.941),
        ("E321 02:07:08.408271123", "2026-03-21T02:07:08.408271123", 1_774_058_828.408271123),
        ("E0321 02:07:08.408271", "2026-03-21T02:07:08.408271", 1_774_058_828.408271),
        ("Oct 23 02:44:30", "2026-10-23T02:44:30", OCT_23 + 9870),
        ("Oct  3 02:44:30", "2026-10-03T02:44:30", OCT_23 - 20 * 86_400 + 9870),
        ("Oct 23 02:44:30.500", "2026-10-23T02:44:30.500", OCT_23 + 9870.5),
        ("Wed May  1 10:00:00 2024", "2024-05-01T10:00:00", MAY_1),
        ("Wed May  1 10:00:00 UTC 2024", "2024-05-01T10:00:00+00:00", MAY_1),
        ("Wed May  1 10:00:00 CEST 2024", "2024-05-01T10:00:00", MAY_1),
        ("05/01/2024 10:00:00", "2024-05-01T10:00:00", MAY_1),
        ("31/01/2024 10:00:00", "2024-01-31T10:00:00", 1_706_695_200.0),
        ("05/01 10:00:00", "2026-05-01T10:00:00", 1_777_629_600.0),
        ("05-01 10:00:00", "2026-05-01T10:00:00", 1_777_629_600.0),
        ("05/01/2024 10:00:00 AM", "2024-05-01T10:00:00", MAY_1),
        ("05/01/2024 10:00:00 PM", "2024-05-01T22:00:00", MAY_1 + 43_200),
        ("05/01/2024 12:00:00 AM", "2024-05-01T00:00:00", MAY_1 - 36_000),
        ("5/1/2024 10:00:00", "2024-05-01T10:00:00", MAY_1),
        ("05/01/24 10:00:00", "2024-05-01T10:00:00", MAY_1),
        ("24/05/01 10:00:00", "2024-05-01T10:00:00", MAY_1),
        ("05-01-2024 10:00:00", "2024-05-01T10:00:00", MAY_1),
        ("01.05.2024 10:00:00", "2024-05-01T10:00:00", MAY_1),
        ("2024.05.01 10:00:00", "2024-05-01T10:00:00", MAY_1),
        ("2024-05-01-10:00:00.5", "2024-05-01T10:00:00.5", MAY_1 + 0.5),
        ("2024-05-01_10-00-00", "2024-05-01T10:00:00", MAY_1),
        ("2024-05-01, 10:00:00 UTC", "2024-05-01T10:00:00Z", MAY_1),
        ("20240501 10:00:00", "2024-05-01T10:00:00", MAY_1),
        ("20240501T100000Z", "2024-05-01T10:00:00Z", MAY_1),
        ("01/May/2024:10:00:00 +0200", "2024-05-01T10:00:00+02:00", MAY_1 - 7200),
        ("Wed, 01 May 2024 10:00:00 +0000", "2024-05-01T10:00:00+00:00", MAY_1),
        ("01 May 2024 10:00:00", "2024-05-01T10:00:00", MAY_1),
        ("Wed  1 May 10:00:00 UTC 2024".replace("  ", " "), "2024-05-01T10:00:00Z", MAY_1),
        ("Wed May  1 10:00:00 AM UTC 2024", "2024-05-01T10:00:00Z", MAY_1),
        ("May 1, 2024, 10:00:00 PM", "2024-05-01T22:00:00", MAY_1 + 43_200),
        ("2024年5月1日 10:00:00", "2024-05-01T10:00:00", MAY_1),
        ("1714557600", "2024-05-01T10:00:00Z", MAY_1),
        ("1714557600.25", "2024-05-01T10:00:00.25Z", MAY_1 + 0.25),
        ("1714557600123", "2024-05-01T10:00:00.123Z", MAY_1 + 0.123),
        ("1714557600123456", "2024-05-01T10:00:00.123456Z", MAY_1 + 0.123456),
        ("1714557600123456789", "2024-05-01T10:00:00.123456789Z", MAY_1 + 0.123456789),
    ],
)
def test_parse(text: str, iso: str, epoch: float) -> None:
    stamp = parse_stamp(text, year=2026)
    assert stamp is not None
    assert stamp.iso == iso
    assert stamp.epoch == pytest.approx(epoch, abs=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "10:00:00", "2024-05-01", "2024-13-01 10:00:00", "2024-02-30 10:00:00", "2024-05-01 24:00:00", "2024-05-01 10:60:00",
        "2024-05-01 10:00:61", "2024-05-01T10:00:00+15:00", "2024-05-01T10:00:00+02:60", "0000-05-01 10:00:00", "1969-05-01 10:00:00", "2024-00-01 10:00:00",
        "13/13/2024 10:00:00", "E1323 02:44:30.941975491", "E0021 02:44:30.941975491", "Oct 32 10:00:00", "Foo 12 10:00:00", "Feb 30 10:00:00",
        "99999999999", "171455760", "12345.678901", "9999999999", "2024-05-01 10:00:00 x", "٢٠٢٤-05-01 10:00:00",
    ],
)  # fmt: skip
def test_nonsense_is_none(text: str) -> None:
    assert parse_stamp(text, year=2026) is None


def test_year_that_nobody_names_is_the_last_one_that_has_been(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: MAY_1)
    for text, iso in (
        ("Apr 30 10:00:00", "2024-04-30"),
        ("May 01 23:00:00", "2024-05-01"),
        ("Dec 31 10:00:00", "2023-12-31"),
        ("Feb 29 10:00:00", "2024-02-29"),
    ):
        stamp = parse_stamp(text, year=None)
        assert stamp is not None
        assert stamp.iso.startswith(iso)
    monkeypatch.setattr(time, "time", lambda: MAY_1 - 365 * 86_400)
    stamp = parse_stamp("Feb 29 10:00:00", year=None)
    assert stamp is not None
    assert stamp.iso == "2020-02-29T10:00:00"


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("[default0]:[2024-05-01 10:00:00,123] [INFO] x", "2024-05-01T10:00:00.123"),
        ("  time      : 2026-11-29_13:09:27", "2026-11-29T13:09:27"),
        ("slurmstepd: error: *** STEP 1.0 ON node01 CANCELLED AT 2025-01-01T10:00:00 DUE", "2025-01-01T10:00:00"),
        ("[after dataloaders are built] datetime: 2026-11-29 13:24:52.508928 ", "2026-11-29T13:24:52.508928"),
        ("[rank0]:[E1129 13:11:03.673891180 a.cpp:1] x", "2026-11-29T13:11:03.673891180"),
        ("W1129 13:09:23.793000 7378 torch/distributed/run.py:874] x", "2026-11-29T13:09:23.793000"),
        ("Oct 01 13:00:00 node01 kernel: x", "2026-10-01T13:00:00"),
        ("it is Wed May  1 10:00:00 2024 now", "2024-05-01T10:00:00"),
        ("2024-13-01 10:00:00 then 2024-05-01 10:00:00", "2024-05-01T10:00:00"),
        ("x" * 60 + " 2024-05-01 10:00:00.123", "2024-05-01T10:00:00.123"),
    ],
)
def test_find(text: str, iso: str) -> None:
    stamp = find_stamp(text, 2026)
    assert stamp is not None
    assert stamp.iso == iso


@pytest.mark.parametrize(
    "text",
    [
        "", "no time", "10:00:00 alone", "1:2:3", "[12345.678901] NVRM: Xid", "10/10 [00:10<00:00,  1.0it/s]", "node01:4711:4800 [0] NCCL INFO x",
        "x" * 85 + " 2024-05-01 10:00:00", "1714557600 seconds", "v2024-05-01 10:00:00", "[::ffff:127.0.0.1]:29616 on SocketImpl(fd=13)",
    ],
)  # fmt: skip
def test_find_nothing(text: str) -> None:
    assert find_stamp(text, 2026) is None


def test_find_with_year_passes_over_stamps_without() -> None:
    stamp = find_with_year("Oct 01 13:00:00 node01 app: 2024-05-01 10:00:00 x")
    assert stamp is not None
    assert stamp.iso == "2024-05-01T10:00:00"
    assert find_with_year("W1129 13:09:23.793000 2024 torch/distributed/run.py:874] x") is None


@given(st.text(alphabet="0123456789-/:., TZEWOctMayTue+_[]", max_size=40), st.sampled_from([None, 2024, 2026]))
def test_never_raises(text: str, year: int | None) -> None:
    for stamp in (parse_stamp(text, year=year), find_stamp(text, year), find_with_year(text)):
        if stamp is not None:
            assert 0 <= stamp.epoch < 8e9
            assert stamp.iso[10] == "T"


@given(st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2199, 1, 1)))
def test_agrees_with_datetime(moment: datetime) -> None:
    stamp = parse_stamp(moment.strftime("%Y-%m-%d %H:%M:%S.%f"), year=None)
    assert stamp is not None
    assert stamp.epoch == pytest.approx(moment.replace(tzinfo=UTC).timestamp(), abs=1e-4)
    assert datetime.fromisoformat(stamp.iso) == moment
    assert time.gmtime(stamp.epoch).tm_year == moment.year

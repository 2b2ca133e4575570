from __future__ import annotations

from memdoctor.sources.logs.clock import Clock
from memdoctor.sources.logs.stamps import parse_stamp


def read(clock: Clock, *texts: str) -> list[str | None]:
    stamps = [clock.read(text) for text in texts]
    return [None if stamp is None else stamp.iso for stamp in stamps]


def test_hint_gives_the_year() -> None:
    assert read(Clock(2024), "Oct 01 13:00:00", "E1002 02:44:30.941975491") == ["2024-10-01T13:00:00", "2024-10-02T02:44:30.941975491"]


def test_new_year_is_passed_once() -> None:
    clock = Clock(2024)
    got = read(
        clock,
        "Dec 31 23:59:59",
        "Jan 01 00:00:01",
        "Dec 31 23:59:59",
        "Jan 01 00:00:02",
        "Mar 01 00:00:00",
        "Jul 01 00:00:00",
        "Dec 31 00:00:00",
        "Jan 01 00:00:00",
    )
    assert [iso and iso[:10] for iso in got] == [
        "2024-12-31", "2025-01-01", "2024-12-31", "2025-01-01", "2025-03-01", "2025-07-01", "2025-12-31", "2026-01-01",
    ]  # fmt: skip
    assert clock.year == 2026


def test_a_dated_stamp_sets_the_year() -> None:
    assert read(Clock(2020), "2025-12-31 23:59:00", "E101 00:10:00.000000000") == ["2025-12-31T23:59:00", "2026-01-01T00:10:00.000000000"]


def test_time_alone_takes_the_nearest_day() -> None:
    clock = Clock()
    assert read(clock, "10:00:00") == [None]
    assert read(clock, "2024-05-01 23:59:00", "23:59:30", "00:00:10,5", "23:59:59", "00:00:20") == [
        "2024-05-01T23:59:00", "2024-05-01T23:59:30", "2024-05-02T00:00:10.5", "2024-05-01T23:59:59", "2024-05-02T00:00:20",
    ]  # fmt: skip


def test_times_since_the_start_are_of_no_day() -> None:
    clock = Clock()
    assert read(clock, "2026-03-14 02:48:05", "00:00:00", "00:00:06", "02:50:00") == ["2026-03-14T02:48:05", None, None, None]
    assert read(clock, "2026-03-14 02:51:05") == ["2026-03-14T02:51:05"]


def test_times_of_day_just_after_midnight_and_in_another_zone_are() -> None:
    assert read(Clock(), "2026-03-14 00:01:05", "00:01:06")[1] == "2026-03-14T00:01:06"
    assert read(Clock(), "2026-03-14 12:48:05", "04:48:06", "00:00:30")[1:] == ["2026-03-14T04:48:06", "2026-03-14T00:00:30"]


def test_not_after_chooses_the_last_year_that_fits() -> None:
    january = parse_stamp("2025-01-02 03:00:00", year=None)
    assert january is not None
    assert read(Clock(None, january.epoch), "Dec 31 23:00:00", "Jan 01 00:00:00") == ["2024-12-31T23:00:00", "2025-01-01T00:00:00"]
    assert read(Clock(None, january.epoch), "Jan 01 00:00:00") == ["2025-01-01T00:00:00"]
    assert read(Clock(None, january.epoch), "Feb 29 00:00:00") == ["2024-02-29T00:00:00"]


def test_leap_day_in_another_year_and_nonsense() -> None:
    clock = Clock(2025)
    assert read(clock, "Feb 29 00:00:00", "Foo", "", "Oct 99 00:00:00", "25:00:00") == [None] * 5
    assert read(clock, "2024-12-31 00:00:00", "Feb 29 00:00:00") == ["2024-12-31T00:00:00", "2024-02-29T00:00:00"]


def test_hint_is_the_year_until_a_stamp_was_seen() -> None:
    assert Clock().year is None
    assert Clock(2024).year == 2024

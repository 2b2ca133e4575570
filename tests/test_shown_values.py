"""Values of facts as a person reads them in a message."""

from __future__ import annotations

import pytest

from memdoctor.catalog import show


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.01969, "2 %"), (0.0041, "0.41 %"), (0.0996, "10 %"), (0.123, "12 %"), (0.876, "88 %"), (1.0, "100 %"), (0.0, "0 %")],
)
def test_a_share_is_a_percentage(value: float, text: str) -> None:
    assert show("series.periodic", "share", value) == text


def test_other_fractions_stay_numbers() -> None:
    assert show("series.periodic", "times", 12) == "12"
    assert show("series.growth", "growth", 1.25) == "1.25"

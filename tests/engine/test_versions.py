from __future__ import annotations

import pytest

from memdoctor.engine.versions import compare, fits, parse_range


@pytest.mark.parametrize(
    ("version", "range_", "expected"),
    [
        ("2.13.0+cpu", ">=2.13", True),
        ("2.13.0+cpu", ">=2.2, <2.13", False),
        ("2.2", ">=2.13", False),  # numbers, not text
        ("1.13.0a0", ">=1.13", True),  # a vendor's pre-release has the code of its release
        ("1.13.0a0+d0d6b1f", "<1.13", False),
        ("0.20.0+d98e8a", "==0.20", True),
        ("0.20.1", "==0.20", False),
        ("0.20.1", "!=0.20", True),
        ("v2.19.3", ">2.19.2", True),
        ("2.19.3", "<=2.19.3", True),
        ("2.0.0.dev20230101", ">=2.0,<2.1", True),
        ("anything", "*", None),
        ("1.0", "*", True),
        ("", ">=1.0", None),
        ("unknown", ">=1.0", None),
    ],
)
def test_fits(version: str, range_: str, expected: bool | None) -> None:
    assert fits(version, range_) is expected


@pytest.mark.parametrize("text", ["", "1.4", "=>1.4", ">=", ">=1.4 or later", ">=1.4,", "==1.4.*", "~=1.4"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no version range"):
        parse_range(text)


def test_compare() -> None:
    assert compare("2.10", "2.9") == 1
    assert compare("2.9.0", "2.9") == 0
    assert compare("1.13.0a0", "2") == -1
    assert compare("none", "2") is None

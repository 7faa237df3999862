import math

import pytest

from crosswind.dashboards import wording
from crosswind.dashboards.wording import MINUS, NONE


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.000412, "412 \u00b5s"),
        (0.412, "412 ms"),
        (41.24, "41.2 s"),
        (0.9999, "1.00 s"),
        (192, "3 min 12 s"),
        (11_520, "3 h 12 min"),
        (3599.7, "1 h 0 min"),
        (-0.25, f"{MINUS}250 ms"),
        (0.0, "0 s"),
        (None, NONE),
        (math.nan, NONE),
    ],
)
def test_seconds_come_in_the_unit_that_suits_them(value: float | None, text: str) -> None:
    assert wording.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.4249, "1.42"),
        (0.9996, "1.00"),
        (12_345.6, "12\u202f346"),
        (2, "2"),
        (1200, "1\u202f200"),
        (-0.5, f"{MINUS}0.500"),
        (1e-12, f"1.00e{MINUS}12"),
        (math.inf, NONE),
    ],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert wording.number(value) == text


def test_an_interval_is_in_one_unit_with_its_estimate() -> None:
    assert wording.estimate(18.2, 16.0, 20.1) == "+18.2 s [16.0 to 20.1]"
    assert wording.estimate(-0.012, -0.0777, 1e-15) == f"{MINUS}12.0 ms [{MINUS}77.7 to 0]"
    assert wording.estimate(7200.0, 3600.0, 10800.0) == "+2.00 h [1.00 to 3.00]"
    assert wording.estimate(None, 1.0, 2.0) == NONE


def test_a_share_in_percent_keeps_small_ones_visible() -> None:
    assert [wording.percent(share) for share in (0.923, 0.0431, 0.0012, 0.0, 1.0, None)] == [
        "92 %",
        "4.3 %",
        "0.12 %",
        "0 %",
        "100 %",
        NONE,
    ]


def test_what_differs_stands_first_in_a_short_configuration() -> None:
    configuration = {"batch": 8, "fused": True, "rate": 3e-4, "threads": 2}
    assert (
        wording.short_configuration(configuration, frozenset({"threads", "rate", "gone"})) == "rate=0.0003 threads=2 +2"
    )
    assert wording.short_configuration(configuration, frozenset()) == "batch=8 +3"
    assert wording.short_configuration({"fused": True}, frozenset()) == "fused=true"
    assert wording.short_configuration({}, frozenset()) == NONE


def test_times_beyond_the_calendar_do_not_fail() -> None:
    assert wording.utc(1_760_000_000_123_000_000) == "2025-10-09 08:53:20 UTC"
    assert wording.iso(1_760_000_000_123_000_000) == "2025-10-09T08:53:20.123000Z"
    assert wording.utc(2**63 - 1).startswith("2262-04-11")
    assert wording.utc(-5) == "1970-01-01 00:00:00 UTC"
    assert (wording.utc(None), wording.iso(None)) == (NONE, "")


def test_one_run_and_many_runs() -> None:
    assert [wording.count(amount, "run") for amount in (0, 1, 2, 1200)] == [
        "0 runs",
        "1 run",
        "2 runs",
        "1\u202f200 runs",
    ]


def test_a_size_is_in_the_largest_unit_that_it_fills() -> None:
    amounts = (0, 1023, 1024, 461256, 3 * 1024**3 // 2, 1024**5)
    expected = ["0 B", "1023 B", "1 KiB", "450.4 KiB", "1.5 GiB", "1024 TiB"]
    assert [wording.size(amount) for amount in amounts] == expected

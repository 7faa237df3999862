"""Moments as people write them."""

import time

import pytest

from crosswind.cli.moment import moment_of
from crosswind.data.schema.errors import InvalidInputError

NOW = 1_790_000_000


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        *[("90s", 90), ("5m", 300), ("1h", 3600), ("2d", 172_800), ("1w", 604_800)],
        *[("now-90seconds", 90), ("now-5minutes", 300), ("now-1hours", 3600), ("now-2days", 172_800)],
        *[("now-1weeks", 604_800), ("999999999d", NOW), ("0s", 0)],
    ],
)
def test_a_number_and_a_unit_are_so_long_ago(text: str, ago: int) -> None:
    assert moment_of(text, NOW + 0.5) == NOW - ago


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-01-01", 1_767_204_900),  # 5 h 45 min before UTC's
        ("2026-01-01T06:00:30", 1_767_226_530),
        ("2026-01-01T00:00:00Z", 1_767_225_600),
    ],
)
def test_dates_and_times_are_local_ones(text: str, seconds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    try:
        assert moment_of(text, NOW) == seconds
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "text", ["", "1", "h", "-1h", "1.5h", "1 h", "1y", "٣h", "9999999999d", "yesterday", "now-2fortnights", "now-1h"]
)
def test_what_is_no_time_is_refused_by_the_options_name(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"--until .*: expected a time such as 90s, 1h"):
        moment_of(text, NOW, option="--until")


@pytest.mark.parametrize("text", ["2999-01-01", "1999-12-31"])
def test_a_date_to_come_or_of_the_last_century_is_a_slip(text: str) -> None:
    with pytest.raises(InvalidInputError, match=f"--since '{text}': expected a time between 2001 and now"):
        moment_of(text, NOW)

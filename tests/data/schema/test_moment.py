import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.moment import duration_seconds, moment_ns

NOW = 1_800_000_000_123_456_789


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("now", NOW),
        ("-1h", NOW - 3_600_000_000_000),
        ("now-7d", NOW - 7 * 86_400_000_000_000),
        ("2026-01-02", 1_767_312_000_000_000_000),
        ("2026-01-02T03:04:05Z", 1_767_323_045_000_000_000),
        ("2026-01-02T03:04:05.000000006Z", 1_767_323_045_000_000_006),
        ("2026-01-02T04:04:05.5+01:00", 1_767_323_045_500_000_000),
        ("2026-01-02T03:04:05.123", 1_767_323_045_123_000_000),
        ("-999999999w", 0),
    ],
)
def test_a_moment_is_exact(text: str, ns: int) -> None:
    assert moment_ns(text, NOW, field="from") == ns


@pytest.mark.parametrize(
    "text", ["", "1x", "yesterday", "1767323045", "2026-13-01", "1969-12-31", "2026-01-02T03:04:05.1234567891Z"]
)
def test_others_are_refused_with_the_field(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^from '"):
        moment_ns(text, NOW, field="from")


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("0.25", 0.25), ("5m", 300), ("2h", 7200), ("1d", 86_400)])
def test_a_duration_is_in_seconds(text: str, seconds: float) -> None:
    assert duration_seconds(text, field="step") == seconds


@pytest.mark.parametrize("text", ["", "0", "0s", "-1", "1y", "nan", "1e9"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"step .*: expected a duration above 0"):
        duration_seconds(text, field="step")

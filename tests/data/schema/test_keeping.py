"""Policies of what is kept: what they say, and what is no policy."""

import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.keeping import KeepPolicy, Kept, rollup_name, rollups_of_set

DAY = 86_400


def test_a_policy_says_how_long_rows_are_kept_of_all_sets_and_of_some() -> None:
    policy = KeepPolicy.of("raw:30d, 1h:forever, 1m:1y; gpu = raw:2w,10s:forever")
    assert policy.kept("cpu") == Kept(30 * DAY, {60: 365 * DAY, 3600: None})
    assert list(policy.kept("cpu").rollups) == [60, 3600]
    assert policy.kept("gpu") == Kept(14 * DAY, {10: None})


def test_without_a_policy_everything_is_kept() -> None:
    assert KeepPolicy.of("") == KeepPolicy()
    assert KeepPolicy.of(" ").kept("cpu") == Kept(None, {})
    assert KeepPolicy.of("gpu=raw:1d,1h:1d2y".replace("1d2y", "2y")).kept("cpu") == Kept()


def test_roll_ups_may_be_kept_beside_raw_rows() -> None:
    assert KeepPolicy.of("raw:forever,1h:forever").kept("cpu") == Kept(None, {3600: None})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("30d", r"'30d', expected a resolution, a colon and a time, such as raw:30d,1m:1y,1h:forever"),
        ("1h:forever", r"expected raw once"),
        ("raw:1d,raw:2d,1h:forever", r"expected raw once"),
        ("raw:30d", r"expected a roll-up that is kept longer than raw"),
        ("raw:30d,1h:30d", r"expected a roll-up that is kept longer than raw"),
        ("raw:12h,1h:1y", r"expected raw to be kept for a day or longer"),
        ("raw:30 days,1h:1y", r"'30 days', expected a time such as 30d or 1y, or forever"),
        ("raw:0d,1h:1y", r"'0d', expected a time"),
        ("raw:30d,1h:1y,1h:2y", r"expected each resolution once"),
        ("raw:30d,60s:1y,1m:2y", r"expected each resolution once"),
        ("raw:30d,7s:1y", r"'7s', expected a resolution that divides a day"),
        ("raw:30d,fine:1y", r"'fine', expected raw, or a resolution such as 10s, 1m or 1h"),
        ("raw:30d,1m:2y,1h:1y", r"expected coarser rows to be kept at least as long as finer ones"),
        ("raw:30d,1h:1y;raw:1d,1h:1y", r"expected one rule without the name of a set"),
        ("GPU=raw:30d,1h:1y", r"expected the name of a metric set, once, before ="),
        ("gpu=raw:30d,1h:1y;gpu=raw:30d,1h:1y", r"expected the name of a metric set, once, before ="),
    ],
)
def test_what_is_wrong_in_a_policy_is_named(text: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match=f"CROSSWIND_KEEP: .*{said}"):
        KeepPolicy.of(text)


def test_sets_of_roll_ups_have_names_of_their_own() -> None:
    stored = [rollup_name("cpu", 3600), rollup_name("cpu", 60), rollup_name("cpu_extra", 60), "cpu"]
    assert rollups_of_set(stored, "cpu") == [60, 3600]

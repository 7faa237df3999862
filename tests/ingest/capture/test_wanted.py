"""Texts that `--trace` and its budget take."""

import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.ingest.capture.wanted import Budget, Wanted, bytes_of


def test_off_auto_and_ranks_by_hand() -> None:
    budget = Budget(steps=4)
    assert Wanted.parse("off", budget) is None
    assert Wanted.parse("auto", budget) == Wanted(budget)
    assert Wanted.parse("0,3", budget) == Wanted(budget, (0, 3), 10, 13)
    assert Wanted.parse("0-2,7:100", budget) == Wanted(budget, (0, 1, 2, 7), 100, 103)
    assert Wanted.parse("5:100-100", budget) == Wanted(budget, (5,), 100, 100)


@pytest.mark.parametrize(
    "text", ["", "on", "1:", ":5", "3-1", "0-64", "1:5-4", "1:0-1000", "-1", "1,,2", "99999999999", "٣"]
)
def test_anything_else_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(InvalidInputError, match="--trace"):
        Wanted.parse(text, Budget())


def test_sizes() -> None:
    assert [bytes_of(text) for text in ("1000", "500k", "1.5MB", "2G")] == [1000, 500_000, 1_500_000, 2_000_000_000]
    for text in ("", "M", "-1", "1T", "1e6", "nan"):
        with pytest.raises(InvalidInputError, match="--trace-bytes"):
            bytes_of(text)


@pytest.mark.parametrize("name", ["size_bytes", "steps", "ranks", "captures", "pause_seconds"])
def test_a_budget_of_less_than_nothing_is_refused_by_its_option(name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"--trace-{name.removeprefix('size_').removesuffix('_seconds')} -1"):
        Budget(**{name: -1})

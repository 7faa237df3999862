"""Identifiers as people read them."""

import pytest

from crosswind.data.schema.words import opening, words


@pytest.mark.parametrize(
    ("name", "within", "first"),
    [
        ("cpu_contention", "CPU contention", "CPU contention"),
        ("slow_input", "slow input", "Slow input"),
        ("other", "other", "Other"),
        ("", "", ""),
    ],
)
def test_identifiers_read_as_words(name: str, within: str, first: str) -> None:
    assert (words(name), opening(name)) == (within, first)

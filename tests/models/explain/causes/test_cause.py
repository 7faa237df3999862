"""Times in the words of explanations."""

import pytest

from crosswind.models.explain.causes.cause import milliseconds


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.000123, "0.123 ms"),
        (0.201, "201 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1 s"),
        (1.628, "1.63 s"),
        (-1.41, "-1.41 s"),
        (1234.5, "1234 s"),
    ],
)
def test_a_time_has_no_exponent(seconds: float, words: str) -> None:
    assert milliseconds(seconds) == words

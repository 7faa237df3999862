"""Numbers read eight digits at once are what `int` makes of them, and nothing else is taken for a number."""

import random

import numpy as np
import pytest

from crosswind.ingest.readers.slurm.cells import Column
from crosswind.ingest.readers.slurm.digits import DIGITS, numbers_of

PADDING = "0" * DIGITS  # nothing is read before the data: the first cells are left to others


def column_of(texts: list[str]) -> Column:
    cells = [text.encode() for text in texts]
    ends = len(PADDING) + np.cumsum([len(cell) + 1 for cell in cells], dtype=np.int32) - np.int32(1)
    begins = ends - np.array([len(cell) for cell in cells], np.int32)
    return Column((PADDING + "|".join(texts) + "|").encode(), begins, ends)


@pytest.mark.parametrize("length", range(1, DIGITS + 1))
def test_numbers_of_every_length_are_read(length: int) -> None:
    chance = random.Random(length)
    texts = ["0" * length, "9" * length, *("".join(chance.choices("0123456789", k=length)) for _ in range(200))]
    numbers, is_number = numbers_of(column_of(texts))
    assert is_number.all()
    assert numbers.tolist() == [int(text) for text in texts]


@pytest.mark.parametrize("place", range(12))
def test_one_letter_that_is_no_digit_is_found_wherever_it_stands(place: int) -> None:
    letters = [chr(code) for code in range(1, 128) if not chr(code).isdigit()]
    texts = ["7" * place + letter + "7" * (11 - place) for letter in [*letters, "é", "☃", "٣"]]
    _, is_number = numbers_of(column_of(texts))
    assert not is_number.any()


def test_empty_cells_and_too_many_digits_are_no_numbers() -> None:
    _, is_number = numbers_of(column_of(["", "1" * 17, "5", "1" * 16]))
    assert is_number.tolist() == [False, False, True, True]
    _, is_number = numbers_of(column_of(["1" * 12, "1" * 13]), digits=12)
    assert is_number.tolist() == [True, False]


def test_cells_too_near_to_the_beginning_are_left_to_others() -> None:
    ends = np.array([1, 3, DIGITS], np.int32)
    _, is_number = numbers_of(Column(b"1|2|567890123456|", ends - np.int32(1), ends))
    assert is_number.tolist() == [False, False, True]

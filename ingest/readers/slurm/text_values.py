"""Columns of texts turned into values: digits all at once, every other distinct text by one call of a function."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.readers.slurm.cells import Column, Flags
from crosswind.ingest.readers.slurm.digits import DIGITS, numbers_of

Value: TypeAlias = int | float | str | bool | None
LARGEST = 1 << 62  # larger numbers do not go through 64 bits


@dataclass(frozen=True)
class Values:
    """One value for each text; null if it is unknown or doubtful."""

    values: pa.Array
    doubtful: Flags


class Words:
    """Texts of which many are equal: each distinct one is parsed once."""

    def __init__(self, texts: pa.Array) -> None:
        encoded = texts.dictionary_encode()
        self.words = encoded.dictionary
        self._places = encoded.indices

    def mapped(self, meaning: Callable[[str], Value], kind: pa.DataType) -> Values:
        """Return a function's values of all texts; doubtful if it raises MalformedError."""
        return self.expanded(values_of(self.words, meaning, kind))

    def expanded(self, of_words: Values) -> Values:
        """Return the values of the texts, from those of the distinct words."""
        return Values(of_words.values.take(self._places), of_words.doubtful[self._places.to_numpy()])


def values_of(words: pa.Array, meaning: Callable[[str], Value], kind: pa.DataType) -> Values:
    """Return a function's values of these texts; doubtful if it raises MalformedError."""
    pairs = [_value_of(meaning, word) for word in words.to_pylist()]
    doubtful = np.array([is_doubtful for _, is_doubtful in pairs], np.bool_)
    return Values(pa.array([value for value, _ in pairs], kind), doubtful)


def _value_of(meaning: Callable[[str], Value], word: str) -> tuple[Value, bool]:
    try:
        value = meaning(word)
    except MalformedError:
        return None, True
    return (None, True) if isinstance(value, int) and value > LARGEST else (value, False)


def whole_numbers(column: Column, meaning: Callable[[str], Value], *, digits: int = DIGITS) -> Values:
    """Return the numbers in cells: of up to so many digits as such, all others by the function."""
    numbers, is_number = numbers_of(column, digits=digits)
    doubtful = np.zeros(len(numbers), np.bool_)
    if is_number.all():
        return Values(pa.array(numbers), doubtful)
    odd = np.flatnonzero(~is_number)
    rest = Words(column.some(odd).texts()).mapped(meaning, pa.int64())
    is_null = np.zeros(len(numbers), np.bool_)
    numbers[odd], is_null[odd], doubtful[odd] = rest.values.fill_null(0), np.array(rest.values.is_null()), rest.doubtful
    return Values(pa.array(numbers, mask=is_null), doubtful)

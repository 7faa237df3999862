"""Columns of texts turned into values: digits all at once, every other text that occurs by a function, once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.readers.slurm.cells import Column, Flags
from crosswind.ingest.readers.slurm.digits import DIGITS, numbers_of

Value: TypeAlias = int | float | str | bool | None
LARGEST = 1 << 62  # whatever is larger goes another way than through 64 bits


@dataclass(frozen=True)
class Values:
    """One value for each text; null where nobody knows it, and where it is doubtful."""

    values: pa.Array
    doubtful: Flags


class Words:
    """Texts of which many are alike: each is looked at once."""

    def __init__(self, texts: pa.Array) -> None:
        encoded = texts.dictionary_encode()
        self.words = encoded.dictionary
        self._places = encoded.indices

    def mapped(self, meaning: Callable[[str], Value], kind: pa.DataType) -> Values:
        """Return what a function makes of each; doubtful where it raises MalformedError."""
        return self.expanded(told_by(self.words, meaning, kind))

    def expanded(self, of_words: Values) -> Values:
        """The values of the texts, from those of the different words."""
        return Values(of_words.values.take(self._places), of_words.doubtful[self._places.to_numpy()])


def told_by(words: pa.Array, meaning: Callable[[str], Value], kind: pa.DataType) -> Values:
    """Return what a function makes of each text; doubtful where it raises MalformedError."""
    pairs = [_told(meaning, word) for word in words.to_pylist()]
    doubtful = np.array([is_doubtful for _, is_doubtful in pairs], np.bool_)
    return Values(pa.array([value for value, _ in pairs], kind), doubtful)


def _told(meaning: Callable[[str], Value], word: str) -> tuple[Value, bool]:
    try:
        value = meaning(word)
    except MalformedError:
        return None, True
    return (None, True) if isinstance(value, int) and value > LARGEST else (value, False)


def whole_numbers(column: Column, meaning: Callable[[str], Value], *, digits: int = DIGITS) -> Values:
    """Numbers of cells: what has so many digits at most is itself, all else what the function says."""
    numbers, is_number = numbers_of(column, digits=digits)
    doubtful = np.zeros(len(numbers), np.bool_)
    if is_number.all():
        return Values(pa.array(numbers), doubtful)
    odd = np.flatnonzero(~is_number)
    rest = Words(column.some(odd).texts()).mapped(meaning, pa.int64())
    is_null = np.zeros(len(numbers), np.bool_)
    numbers[odd], is_null[odd], doubtful[odd] = rest.values.fill_null(0), np.array(rest.values.is_null()), rest.doubtful
    return Values(pa.array(numbers, mask=is_null), doubtful)

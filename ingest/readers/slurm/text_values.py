"""Columns of texts turned into values: digits all at once, every other text that occurs by a function, once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crosswind.data.errors import MalformedError
from crosswind.ingest.readers.slurm.cells import Flags

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

    def told(self, meaning: Callable[[str], Value], kind: pa.DataType) -> Values:
        """What a function makes of each; doubtful where it raises MalformedError."""
        return self.each(told_by(self.words, meaning, kind))

    def each(self, of_words: Values) -> Values:
        """The values of the texts, from those of the different words."""
        return Values(of_words.values.take(self._places), of_words.doubtful[self._places.to_numpy()])


def told_by(words: pa.Array, meaning: Callable[[str], Value], kind: pa.DataType) -> Values:
    """What a function makes of each text; doubtful where it raises MalformedError."""
    told = [_told(meaning, word) for word in words.to_pylist()]
    doubtful = np.array([is_doubtful for _, is_doubtful in told], np.bool_)
    return Values(pa.array([value for value, _ in told], kind), doubtful)


def _told(meaning: Callable[[str], Value], word: str) -> tuple[Value, bool]:
    try:
        value = meaning(word)
    except MalformedError:
        return None, True
    return (None, True) if isinstance(value, int) and value > LARGEST else (value, False)


def whole_numbers(texts: pa.Array, meaning: Callable[[str], Value], *, digits: int = 18) -> Values:
    """Numbers of texts: what has so many digits at most is itself, all else what the function says."""
    is_plain = pc.and_(pc.ascii_is_decimal(texts), pc.less_equal(pc.binary_length(texts), digits))
    if pc.all(is_plain).as_py():
        return Values(texts.cast(pa.int64()), np.zeros(len(texts), np.bool_))
    is_odd = pc.invert(is_plain)
    odd = Words(texts.filter(is_odd)).told(meaning, pa.int64())
    plain = pc.if_else(is_plain, texts, "0").cast(pa.int64())
    doubtful = np.zeros(len(texts), np.bool_)
    doubtful[is_odd.to_numpy(zero_copy_only=False)] = odd.doubtful
    return Values(pc.replace_with_mask(plain, is_odd, odd.values), doubtful)

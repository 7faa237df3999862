"""Whole numbers in cells, eight digits at once, without making texts of them: most cells are short numbers."""

import numpy as np
import numpy.typing as npt

from crosswind.ingest.readers.slurm.cells import Column, Flags

Words = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]
WORD = 8  # letters
DIGITS = 2 * WORD  # of a number at most
ZEROS = np.uint64(0x3030303030303030)
TO_NINE = np.uint64(0x7676767676767676)  # added to a digit, it does not reach the highest bit of a byte
HIGHEST_BITS = np.uint64(0x8080808080808080)
LAST_LETTERS = np.array(
    [0, *((1 << 64) - (1 << (64 - 8 * kept)) for kept in range(1, 9))], np.uint64
)  # masks, by count
PAIRS, QUADS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)


def numbers_of(column: Column, *, digits: int = DIGITS) -> tuple[Numbers, Flags]:
    """Return the numbers, and a mask of the cells that are numbers of up to so many digits, at most DIGITS."""
    lengths = column.lengths
    ends = column.ends.astype(np.int64)
    is_number = (lengths > 0) & (lengths <= min(digits, DIGITS)) & (ends >= DIGITS)
    if not is_number.any():
        return np.zeros(len(ends), np.int64), is_number
    ends = np.maximum(ends, DIGITS)
    letters = np.ndarray((len(column.data) - WORD + 1,), "<u8", column.data, strides=(1,))  # a word from every place on
    last, is_wrong = _digits(letters[ends - WORD], np.clip(lengths, 0, WORD))
    numbers = _number(last)
    if int(lengths.max()) > WORD:
        first, is_also_wrong = _digits(letters[ends - DIGITS], np.clip(lengths - WORD, 0, WORD))
        numbers += _number(first) * np.uint64(10**WORD)
        is_wrong |= is_also_wrong
    return numbers.view(np.int64), is_number & (is_wrong == 0)


def _digits(letters: Words, kept: npt.NDArray[np.int32]) -> tuple[Words, Words]:
    """Return the digits' values, a byte each, of the last so many letters of each word; and not 0 if one is none."""
    digits = letters ^ ZEROS
    digits &= LAST_LETTERS[kept]
    is_wrong = digits + TO_NINE
    is_wrong |= digits
    is_wrong &= HIGHEST_BITS
    return digits, is_wrong


def _number(digits: Words) -> Words:
    """Return the numbers of eight digits: neighbours are joined to pairs, those to fours, those to all."""
    numbers = digits * np.uint64(10 * (1 << 8) + 1) >> np.uint64(8)
    numbers &= PAIRS
    numbers *= np.uint64(100 * (1 << 16) + 1)
    numbers >>= np.uint64(16)
    numbers &= QUADS
    numbers *= np.uint64(10_000 * (1 << 32) + 1)
    numbers >>= np.uint64(32)
    return numbers

"""The cells of many lines at once: where each begins and ends among the bytes, found without looking at each line."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints: TypeAlias = npt.NDArray[np.int32]
Flags: TypeAlias = npt.NDArray[np.bool_]
NEWLINE, RETURN, SPACE, ZERO, NINE = b"\n\r 09"


@dataclass(frozen=True)
class Cells:
    """Where the cells are of all lines that have as many as expected; the others are known by their places alone."""

    data: bytes
    line_begins: Ints
    line_ends: Ints
    lines: Ints  # which lines have their cells below, in order
    first_begins: Ints  # of the first cell of each
    ends: Ints  # (columns, len(lines))

    def line(self, number: int) -> str:
        """A line without its end."""
        return self.data[self.line_begins[number] : self.line_ends[number]].decode().rstrip("\r")

    def texts(self, column: int, rows: Ints | slice) -> pa.Array:
        """The texts of a column in some of `lines`."""
        begins, ends = self.begins(column)[rows], self.ends[column, rows]
        if (begins == ends).all():
            return pa.repeat(pa.scalar("", pa.string()), len(begins))
        return sliced(self.data, begins, ends)

    def begins(self, column: int) -> Ints:
        """Where the cells of a column begin."""
        return self.ends[column - 1] + np.int32(1) if column else self.first_begins

    def first_letters(self) -> Flags:
        """Which lines begin with anything but a digit, as one does that names columns."""
        first = np.frombuffer(self.data, np.uint8)[self.line_begins]
        flags: Flags = (first < ZERO) | (first > NINE)
        return flags

    def with_control_characters(self) -> Ints:
        """Which lines hold a character below the space, apart from what ends them."""
        letters = np.frombuffer(self.data, np.uint8)
        is_control = letters < SPACE
        is_control[self.line_ends] = False
        is_control[self.line_ends[letters[self.line_ends - 1] == RETURN] - 1] = False
        return np.unique(np.searchsorted(self.line_ends, np.flatnonzero(is_control)).astype(np.int32))


def cells_of(data: bytes, columns: int, separator: bytes = b"|") -> Cells:
    """The cells of whole lines, at most 2 GiB, each with its end, that have so many columns (at least two)."""
    letters = np.frombuffer(data, np.uint8)
    is_end = letters == NEWLINE
    line_ends = np.flatnonzero(is_end).astype(np.int32)
    marks = np.flatnonzero(np.logical_or(is_end, letters == separator[0], out=is_end)).astype(np.int32)
    is_windows = letters[line_ends - 1] == RETURN
    is_whole = ~(is_windows & (letters[np.maximum(line_ends - 2, 0)] == RETURN))
    if len(marks) == columns * len(line_ends) and (marks[columns - 1 :: columns] == line_ends).all() and is_whole.all():
        lines, rows = np.arange(len(line_ends), dtype=np.int32), marks.reshape(-1, columns)
    else:
        last_marks = np.searchsorted(marks, line_ends)  # of each line
        is_whole &= np.diff(last_marks, prepend=-1) == columns
        lines = np.flatnonzero(is_whole).astype(np.int32)
        rows = marks[last_marks[lines, None] + np.arange(1 - columns, 1)]
    ends = np.ascontiguousarray(rows.T)
    ends[-1] -= is_windows[lines]
    line_begins = np.concatenate([np.zeros(1, np.int32), line_ends[:-1] + np.int32(1)])
    return Cells(data, line_begins, line_ends, lines, line_begins[lines], ends)


def sliced(data: bytes | pa.Buffer, begins: Ints, ends: Ints) -> pa.Array:
    """The texts between these places, which are in order: every second one of an array that has the rest, too."""
    if not len(begins):
        return pa.array([], pa.string())
    offsets = np.empty(2 * len(begins), np.int32)
    offsets[0::2], offsets[1::2] = begins, ends
    all_texts = pa.Array.from_buffers(pa.string(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return all_texts.take(pa.array(np.arange(0, len(offsets), 2, dtype=np.int32)))

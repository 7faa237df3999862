"""Cells of many lines at once: their places among the bytes, computed without a loop over lines."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints: TypeAlias = npt.NDArray[np.int32]
Flags: TypeAlias = npt.NDArray[np.bool_]
WINDOW_BYTES = 1 << 17  # bytes at once: the size of a processor's cache
NEWLINE, RETURN, SPACE, ZERO, NINE = b"\n\r 09"


@dataclass(frozen=True)
class Column:
    """The cells of one column in some lines, in their order."""

    data: bytes
    begins: Ints
    ends: Ints

    @property
    def lengths(self) -> Ints:
        """Return the number of bytes in each cell."""
        return self.ends - self.begins

    @property
    def is_empty(self) -> bool:
        """Return whether all cells are empty."""
        return bool((self.begins == self.ends).all())

    def texts(self) -> pa.Array:
        """Return the texts of the cells."""
        if self.is_empty:
            return pa.repeat(pa.scalar("", pa.string()), len(self.begins))
        return sliced(self.data, self.begins, self.ends)

    def some(self, places: "np.ndarray[tuple[int], np.dtype[np.signedinteger]]") -> "Column":
        """Return some of the cells."""
        return Column(self.data, self.begins[places], self.ends[places])


@dataclass(frozen=True)
class Cells:
    """The places of the cells of all lines that have as many as expected; of the others only the lines' own."""

    data: bytes
    line_begins: Ints
    line_ends: Ints
    lines: Ints  # which lines have their cells below, in order
    first_begins: Ints  # of the first cell of each
    ends: Ints  # (columns, len(lines))

    def line(self, number: int) -> str:
        """Return a line without its end."""
        return self.data[self.line_begins[number] : self.line_ends[number]].decode().rstrip("\r")

    def column(self, column: int, rows: Ints | slice) -> Column:
        """Return a column in some of `lines`."""
        return Column(self.data, self.begins(column)[rows], self.ends[column, rows])

    def begins(self, column: int) -> Ints:
        """Return the begins of the cells of a column."""
        return self.ends[column - 1] + np.int32(1) if column else self.first_begins

    def first_letters(self) -> Flags:
        """Return a mask of the lines that begin with anything but a digit, as a header does."""
        first = np.frombuffer(self.data, np.uint8)[self.line_begins]
        flags: Flags = (first < ZERO) | (first > NINE)
        return flags

    def with_control_characters(self) -> Ints:
        """Return which lines contain a control character, apart from their ends."""
        letters = np.frombuffer(self.data, np.uint8)
        is_control = letters < SPACE
        is_control[self.line_ends] = False
        is_control[self.line_ends[letters[self.line_ends - 1] == RETURN] - 1] = False
        return np.unique(np.searchsorted(self.line_ends, np.flatnonzero(is_control)).astype(np.int32))


def cells_of(data: bytes, columns: int, separator: bytes = b"|") -> Cells:
    """Return the cells of whole lines, at most 2 GiB, each with its end, of so many columns (at least two)."""
    letters = np.frombuffer(data, np.uint8)
    marks, is_end = _marks(letters, separator[0])
    line_ends = marks[is_end]
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


def _marks(letters: npt.NDArray[np.uint8], separator: int) -> tuple[Ints, Flags]:
    """Return the ends of cells, and a mask of those that are ends of lines."""
    places = [np.zeros(0, np.int64)]
    for start in range(0, len(letters), WINDOW_BYTES):
        window = letters[start : start + WINDOW_BYTES]
        ends = np.flatnonzero((window == NEWLINE) | (window == separator))
        ends += start
        places.append(ends)
    marks = np.concatenate(places).astype(np.int32)
    return marks, letters[marks] == NEWLINE


def sliced(data: bytes | pa.Buffer, begins: Ints, ends: Ints) -> pa.Array:
    """Return the texts between these places, which are in order: every second one of an array of all parts."""
    if not len(begins):
        return pa.array([], pa.string())
    offsets = np.empty(2 * len(begins), np.int32)
    offsets[0::2], offsets[1::2] = begins, ends
    all_texts = pa.Array.from_buffers(pa.string(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return all_texts.take(pa.array(np.arange(0, len(offsets), 2, dtype=np.int32)))

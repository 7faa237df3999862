"""Lines of the text format as columns: series, values and times of all lines of a block are located at once."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crosswind.ingest.reader.lines import Block

Places = NDArray[np.int64]
Bools = NDArray[np.bool_]
LINE_END, SPACE, SHARP, CLOSED = b"\n"[0], b" "[0], b"#"[0], b"}"[0]
WORTH_READING = b"TUE"  # TYPE, UNIT, EOF
NONE = -1


@dataclass(frozen=True)
class Comments:
    """Lines such as `# TYPE`, but not `# HELP`: their numbers and texts."""

    numbers: Places
    texts: list[str]


@dataclass(frozen=True)
class Columns:
    """The lines of samples, one entry each; `is_plain` marks those that could be split.

    The texts are those of plain lines alone; a missing time is an empty text.
    """

    data: bytes
    numbers: Places
    starts: Places
    ends: Places
    is_plain: Bools
    series: pa.StringArray
    values: pa.StringArray
    times: pa.StringArray

    def line(self, place: int) -> str:
        """Return one line unchanged."""
        return self.data[self.starts[place] : self.ends[place]].decode()


def split(block: Block) -> tuple[Comments, Columns]:
    """Split a block into comments and samples, without blank lines."""
    data = block.data.replace(b"\r\n", b"\n") if b"\r" in block.data else block.data
    octets = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(octets == LINE_END)
    starts = np.concatenate([[0], ends[:-1] + 1])
    is_comment = octets[starts] == SHARP
    numbers = np.arange(block.number, block.number + len(starts))
    third = octets[np.minimum(starts + 2, ends)]
    chosen = np.flatnonzero(is_comment & np.isin(third, np.frombuffer(WORTH_READING, np.uint8)))
    comments = Comments(numbers[chosen], _texts(data, starts[chosen], ends[chosen]).to_pylist())
    chosen = np.flatnonzero(~is_comment & (ends > starts))
    numbers, starts, ends = numbers[chosen], starts[chosen], ends[chosen]
    return comments, Columns(data, numbers, starts, ends, *_columns(data, octets, starts, ends))


def _columns(
    data: bytes, octets: NDArray[np.uint8], starts: Places, ends: Places
) -> tuple[Bools, pa.StringArray, pa.StringArray, pa.StringArray]:
    """Return a mask of the plain lines, and the texts of their series, values and times.

    Plain is a series without spaces outside its braces, one space, a value, and perhaps one space and a time.
    The series ends at its brace or, without labels, at its first space.
    """
    spaces = np.concatenate([[NONE, NONE, NONE], np.flatnonzero(octets == SPACE)])
    last = np.searchsorted(spaces, ends) - 1
    first, second, third = (np.where(spaces[last - back] >= starts, spaces[last - back], NONE) for back in (0, 1, 2))
    is_alone = (first > starts) & ((second == NONE) | (octets[first - 1] == CLOSED))
    is_timed = ~is_alone & (second > starts) & ((third == NONE) | (octets[second - 1] == CLOSED))
    cut = np.where(is_alone, first, second)
    value_end = np.where(is_alone, ends, first)
    is_plain = (is_alone | is_timed) & (value_end > cut + 1) & (ends > first + 1)
    starts, cut, value_end, ends = (places[is_plain] for places in (starts, cut, value_end, ends))
    is_timed = value_end < ends
    times = _texts(data, np.minimum(value_end + 1, ends), ends) if is_timed.any() else _empty_texts(len(ends))
    return is_plain, _texts(data, starts, cut), _texts(data, cut + 1, value_end), times


def _empty_texts(length: int) -> pa.StringArray:
    offsets = np.zeros(length + 1, np.int32)
    return pa.StringArray.from_buffers(length, pa.py_buffer(offsets), pa.py_buffer(b""))


def _texts(data: bytes, starts: Places, ends: Places) -> pa.StringArray:
    """Return the texts between these places, which are in order."""
    offsets = np.empty(2 * len(starts) + 1, np.int32)
    offsets[0:-1:2], offsets[1::2] = starts, ends
    offsets[-1] = ends[-1] if len(ends) else 0
    pieces = pa.StringArray.from_buffers(2 * len(starts), pa.py_buffer(offsets), pa.py_buffer(data))
    return pieces.take(pa.array(np.arange(0, 2 * len(starts), 2)))

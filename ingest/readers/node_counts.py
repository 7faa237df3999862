"""How many nodes Slurm's lists name: single names and single ranges all at once, which most are."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from crosswind.data import hostlist
from crosswind.ingest.readers.cells import Flags, sliced
from crosswind.ingest.readers.text_values import Values, Words, told_by

Numbers = npt.NDArray[np.int64]
DIGITS = 9  # of a number in a range; longer ones go the other way
SHORT = 200  # characters of such a list
CLOSING = ord("]")


def node_counts(texts: pa.Array) -> Values:
    """The number of nodes of each list, 0 for none; doubtful where `hostlist.count` refuses it."""
    is_name = pc.and_(pc.ascii_is_alnum(texts), pc.less_equal(pc.binary_length(texts), hostlist.NAME_LIMIT))
    is_list = pc.invert(is_name)
    lists = Words(texts.filter(is_list))
    counted = lists.each(_counts(lists.words))
    doubtful = np.zeros(len(texts), np.bool_)
    doubtful[np.array(is_list)] = counted.doubtful
    ones = pa.repeat(pa.scalar(1, pa.int64()), len(texts))
    return Values(pc.replace_with_mask(ones, is_list, counted.values), doubtful)


def _counts(lists: pa.Array) -> Values:
    counts, is_range = _single_ranges(lists)
    others = np.flatnonzero(~is_range)
    told = told_by(lists.take(pa.array(others)), hostlist.count, pa.int64())
    counts[others] = told.values.fill_null(0).to_numpy()
    doubtful = np.zeros(len(lists), np.bool_)
    doubtful[others] = told.doubtful
    return Values(pa.array(counts), doubtful)


def _single_ranges(lists: pa.Array) -> tuple[Numbers, Flags]:
    """The lists of the form `node[07-12]`: how many each names, and which they are."""
    counts, is_range = np.zeros(len(lists), np.int64), np.zeros(len(lists), np.bool_)
    _, offsets, letters = lists.buffers()
    if not letters:
        return counts, is_range
    places = np.frombuffer(offsets, np.int32)[: len(lists) + 1]
    begins, ends = places[:-1], places[1:]
    opening, dash = (begins + pc.find_substring(lists, mark).to_numpy() for mark in ("[", "-"))
    is_likely = (opening > begins) & (dash > opening + 1) & (dash < ends - 2) & (ends - begins < SHORT)
    is_likely &= np.frombuffer(letters, np.uint8)[ends - 1] == CLOSING
    likely = np.flatnonzero(is_likely)
    names = sliced(letters, begins[likely], opening[likely])
    firsts = sliced(letters, opening[likely] + np.int32(1), dash[likely])
    lasts = sliced(letters, dash[likely] + np.int32(1), ends[likely] - np.int32(1))
    are_sure = np.array(pc.and_(pc.ascii_is_alnum(names), pc.and_(_are_numbers(firsts), _are_numbers(lasts))))
    sure = likely[are_sure]
    firsts, lasts = (texts.filter(pa.array(are_sure)).cast(pa.int64()).to_numpy() for texts in (firsts, lasts))
    counts[sure] = lasts - firsts + 1
    is_range[sure] = (counts[sure] > 0) & (counts[sure] <= hostlist.NODES_LIMIT)
    return counts, is_range


def _are_numbers(texts: pa.Array) -> pa.Array:
    return pc.and_(pc.ascii_is_decimal(texts), pc.less_equal(pc.binary_length(texts), DIGITS))

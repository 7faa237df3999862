"""Numbers of nodes in Slurm's lists: usual ones, names and ranges of one name, all at once."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from crosswind.data.schema import hostlist
from crosswind.ingest.readers.slurm.cells import sliced
from crosswind.ingest.readers.slurm.text_values import Values, Words, values_of

Numbers = npt.NDArray[np.int64]
RANGE = "^(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?$"  # longer numbers go to `hostlist.count`, and so do
SHORT = 200  # characters of a list
CLOSING = ord("]")


def node_counts(texts: pa.Array) -> Values:
    """Return the number of nodes of each list, 0 for none; doubtful if `hostlist.count` refuses it."""
    is_name = pc.and_(pc.ascii_is_alnum(texts), pc.less_equal(pc.binary_length(texts), hostlist.NAME_LIMIT))
    is_list = pc.invert(is_name)
    lists = Words(texts.filter(is_list))
    counted = lists.expanded(_counts(lists.words))
    doubtful = np.zeros(len(texts), np.bool_)
    doubtful[np.array(is_list)] = counted.doubtful
    ones = pa.repeat(pa.scalar(1, pa.int64()), len(texts))
    return Values(pc.replace_with_mask(ones, is_list, counted.values), doubtful)


def _counts(lists: pa.Array) -> Values:
    counts = _counts_of_ranges(lists)
    others = np.flatnonzero(counts == 0)
    values = values_of(lists.take(pa.array(others)), hostlist.count, pa.int64())
    counts[others] = values.values.fill_null(0).to_numpy()
    doubtful = np.zeros(len(lists), np.bool_)
    doubtful[others] = values.doubtful
    return Values(pa.array(counts), doubtful)


def _counts_of_ranges(lists: pa.Array) -> Numbers:
    """Return how many nodes are in lists such as `node[07-12,31]`; 0 for other forms, and for wrong ones."""
    counts = np.zeros(len(lists), np.int64)
    _, offsets, letters = lists.buffers()
    if not letters:
        return counts
    places = np.frombuffer(offsets, np.int32)[: len(lists) + 1]
    begins, ends = places[:-1], places[1:]
    opening = begins + pc.find_substring(lists, "[").to_numpy()
    is_likely = (opening > begins) & (opening < ends - 2) & (ends - begins < SHORT)
    is_likely &= np.frombuffer(letters, np.uint8)[ends - 1] == CLOSING
    likely = np.flatnonzero(is_likely)
    names = sliced(letters, begins[likely], opening[likely])
    ranges = pc.split_pattern(sliced(letters, opening[likely] + np.int32(1), ends[likely] - np.int32(1)), ",")
    sums = np.where(np.array(pc.ascii_is_alnum(names)), _sums(ranges), 0)
    counts[likely] = np.where(sums <= hostlist.NODES_LIMIT, sums, 0)
    return counts


def _sums(ranges: pa.Array) -> Numbers:
    """Return the sizes of ranges such as 07-12, summed for each list of them; 0 if one is no range."""
    pieces, owners = ranges.flatten(), pc.list_parent_indices(ranges).to_numpy()
    halves = pc.extract_regex(pieces, RANGE)
    firsts, lasts = (pc.struct_field(halves, name).fill_null("0") for name in ("first", "last"))
    lasts = pc.if_else(pc.equal(lasts, ""), firsts, lasts)
    counts = pc.subtract(lasts.cast(pa.int64()), firsts.cast(pa.int64())).to_numpy() + 1
    is_wrong = np.array(halves.is_null()) | (counts < 1)
    sums = np.bincount(owners, counts, minlength=len(ranges)).astype(np.int64)
    sums[owners[is_wrong]] = 0
    return sums

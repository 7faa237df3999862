"""The last rows of a time, by which the growth of the rows after it can be known as if the others were still there."""

import numpy as np
import pyarrow as pa

from crosswind.data.lake.delta import Flag, differences
from crosswind.data.lake.series import Bools, Ints, Series, in_order
from crosswind.data.schema.metric import NUMERIC, Kind, OnFull

NO_VALUE = Flag.MISSING | Flag.REPEATED


def last_rows(rows: pa.Table) -> pa.Table:
    """Return the last row of each series, and where another holds the last value of a counter, that one too.

    Of a counter that was corrected downwards, those since it was highest: its growth begins again from there.
    Raises: InvalidInputError for rows without a set, or a row without a time.
    """
    if not len(rows):
        return rows
    ordered = in_order(rows)
    is_kept = _is_last(ordered, np.ones(len(rows), np.bool_))
    for column in ordered.metric_set.columns:
        if column.kind is Kind.COUNTER and column.dtype in NUMERIC:
            flags = differences(ordered, column.name)["flag"].to_numpy()[ordered.order]
            is_kept |= _needed(ordered, flags, is_clamped=column.on_full is OnFull.CLAMP)
    return rows.take(pa.array(np.sort(ordered.order[is_kept])))


def _needed(ordered: Series, flags: Ints, *, is_clamped: bool) -> Bools:
    has_value = (flags & NO_VALUE) == 0
    if not is_clamped:
        return _is_last(ordered, has_value)
    highest = _last(ordered, has_value & ((flags & Flag.CORRECTED) == 0))
    return np.asarray(has_value & (highest >= 0) & (np.arange(len(flags)) >= highest))


def _is_last(ordered: Series, among: Bools) -> Bools:
    """Return which rows are the last ones of their series among some."""
    return np.asarray(among & (np.arange(len(among)) == _last(ordered, among)))


def _last(ordered: Series, among: Bools) -> Ints:
    """Return for each row the place of the last one of its series among some; -1 where none is."""
    series = ordered.series
    starts = np.flatnonzero(np.append(True, series[1:] != series[:-1]))
    of_each = np.maximum.reduceat(np.where(among, np.arange(len(series)), -1), starts)
    return np.repeat(of_each, np.diff(np.append(starts, len(series))))

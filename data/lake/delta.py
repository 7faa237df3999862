"""Growth of counters from row to row: the one place where resets and wraps are distinguished.

A difference belongs to the row at its end. It is missing, never guessed, wherever more than one could be true; sums of
what is there are then too small and never too large.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntFlag

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.lake.series import Bools, Ints, Numbers, Series, numbers
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.metric import NUMERIC, Column, Kind, OnFull
from crosswind.data.schema.prediction import Floats

NANOSECONDS = 1e9
HALF = np.uint64(2**63)
Flags = NDArray[np.int16]


class Flag(IntFlag):
    """Remarks on a difference; a row with one of those in UNKNOWN has none."""

    FIRST = 1  # of its series: no value before it
    MISSING = 2  # the row has no value
    REPEATED = 4  # it has the time of a row before, and that one counts
    EPOCH = 8  # the counter was reset in between
    SATURATED = 16  # it stands at its end, or was set back from there
    AMBIGUOUS = 32  # it fell, or may have wrapped, and nothing says by how much it grew
    GAP = 64  # rows in between have no value: the difference spans them
    RESET = 128  # it was reset: the difference is what it shows, so at least that much
    CORRECTED = 256  # it was corrected downwards, which counts as nothing until it is where it had been


UNKNOWN = Flag.FIRST | Flag.MISSING | Flag.REPEATED | Flag.EPOCH | Flag.SATURATED | Flag.AMBIGUOUS


@dataclass(frozen=True)
class Pairs:
    """Consecutive values of a counter within one epoch; the arrays have one entry a pair.

    `ends` is how many values it can show: 0 stands for 2 ** 64 or, of a fraction, for no end. `follows` says that a
    pair begins where the one before it ended.
    """

    column: Column
    before: Numbers
    after: Numbers
    seconds: Floats
    ends: Numbers
    follows: Bools


def differences(series: Series, name: str) -> pd.DataFrame:
    """Return a counter's growth, one row for each row of `series.rows`, in their order; missing is NA, nothing below 0.

    Columns: `delta` in the raw unit, exact; `growth` and `rate` in base units and base units a second; `seconds` that
    the difference spans: from the value before it, over rows that have none; `flag`, a sum of `Flag`s.
    Raises: InvalidInputError for a column that is no counter.
    """
    return _frame(series.metric_set[name], *_differences(series, name))


def grown(series: Series, name: str) -> tuple[Floats, Floats]:
    """Return `growth` and `seconds` alone, as `differences`: NaN and 0 where growth is missing.

    Of many short columns a frame of each takes longer than the rest.
    """
    delta, seconds, flag = _differences(series, name)
    with np.errstate(over="ignore"):
        growth = delta * series.metric_set[name].scale
    is_missing = ((flag & UNKNOWN) != 0) | ~np.isfinite(growth)
    return np.where(is_missing, np.nan, growth), np.where(is_missing, 0.0, seconds)


def _differences(series: Series, name: str) -> tuple[Numbers, Floats, Flags]:
    column = series.metric_set[name]
    if column.kind is not Kind.COUNTER or column.dtype not in NUMERIC:
        raise InvalidInputError(f"{series.metric_set.name}.{name}: a {column.kind} of {column.dtype}, no counter")
    values, is_valid = (array[series.order] for array in numbers(series.rows, name))
    flag = np.where(is_valid, 0, Flag.MISSING).astype(np.int16)
    kept = _kept(series, is_valid, flag)
    before, after = kept[:-1], kept[1:]
    is_same = series.series[before] == series.series[after]
    flag[kept[:1]] = flag[after[~is_same]] = Flag.FIRST
    flag[after[is_same & (series.epoch[before] != series.epoch[after])]] = Flag.EPOCH
    missing = np.cumsum(~is_valid)
    flag[after[is_same & (missing[before] != missing[after])]] |= Flag.GAP
    delta, seconds = np.zeros_like(values), np.zeros(len(values))
    chosen = series.epoch[before] == series.epoch[after]
    before, after = before[chosen], after[chosen]
    seconds[after] = _spans(series.time_ns[before], series.time_ns[after])
    follows = np.append(False, after[:-1] == before[1:])[: len(after)]
    ends = _ends(series, column, after).astype(values.dtype)
    pairs = Pairs(column, values[before], values[after], seconds[after], ends, follows)
    delta[after], rule_flags = RULES[column.on_full](pairs)
    flag[after] |= rule_flags
    back = np.empty_like(series.order)
    back[series.order] = np.arange(len(back))
    return delta[back], seconds[back], flag[back]


def _kept(series: Series, is_valid: Bools, flag: Flags) -> Ints:
    """The places of the values that count: of several with one time the first."""
    places = np.flatnonzero(is_valid)
    first, second = places[:-1], places[1:]
    is_repeat = (series.boot[first] == series.boot[second]) & (series.time_ns[first] == series.time_ns[second])
    flag[second[is_repeat]] = Flag.REPEATED
    return np.asarray(places[np.append(True, ~is_repeat)[: len(places)]])


def _spans(begin_ns: Ints, end_ns: Ints) -> Floats:
    """Seconds from one to the other, which is later; unsigned, as the two ends of the clock are further apart."""
    return (end_ns.view(np.uint64) - begin_ns.view(np.uint64)) / NANOSECONDS


def _ends(series: Series, column: Column, places: Ints) -> Numbers:
    size = np.uint64(2**column.width_bits % 2**64)
    if column.range_from not in series.rows.column_names:
        return np.full(len(places), size)
    ranges = numbers(series.rows, column.range_from)[0][series.order[places]]
    return np.where(ranges > 0, ranges, size)


def _wrapped(pairs: Pairs) -> tuple[Numbers, Flags]:
    """The way round the end, where it is so short that nothing else is likely to have happened.

    That is what the counter can have grown by meanwhile or, where nobody knows, half of its range: of a counter that
    fell by less, none can say in which direction it went.
    """
    fell, ends = pairs.after < pairs.before, pairs.ends
    grown = np.where(fell, ends - (pairs.before - pairs.after), pairs.after - pairs.before)
    has_end = (ends > 0) | (ends.dtype != np.uint64)
    is_unsure = fell & has_end & (pairs.before - pairs.after > ends)
    if pairs.column.max_rate > 0:
        most = _most(pairs)
        endless = 2.0**64 if ends.dtype == np.uint64 else np.inf
        is_unsure |= (fell & (grown > most)) | (most > np.where(ends > 0, ends, endless))
    else:
        is_unsure |= fell & (grown > np.where(ends > 0, ends // 2, HALF))
    return grown, _flagged(is_unsure, Flag.AMBIGUOUS)


def _saturated(pairs: Pairs) -> tuple[Numbers, Flags]:
    """Nothing once it stands at its end; it falls only when somebody clears it, at a moment nobody knows."""
    ends = pairs.ends if pairs.ends.dtype == np.uint64 else np.where(pairs.ends > 0, pairs.ends, np.inf)
    is_unknown = (pairs.after >= ends - 1) | (pairs.after < pairs.before)
    return pairs.after - pairs.before, _flagged(is_unknown, Flag.SATURATED)


def _reset(pairs: Pairs) -> tuple[Numbers, Flags]:
    """Return what it shows, where it was reset, unless it cannot have grown so fast."""
    fell = pairs.after < pairs.before
    is_unsure = fell & (pairs.after > _most(pairs))
    grown = np.where(fell, pairs.after, pairs.after - pairs.before)
    return grown, _flagged(is_unsure, Flag.AMBIGUOUS) | _flagged(fell & ~is_unsure, Flag.RESET)


def _most(pairs: Pairs) -> Floats:
    """Return what it can have grown by, in the raw unit."""
    rate = pairs.column.max_rate / pairs.column.scale
    return rate * pairs.seconds if rate > 0 else np.full(len(pairs.seconds), np.inf)


def _flagged(rows: Bools, flag: Flag) -> Flags:
    return np.where(rows, flag, 0).astype(np.int16)


def _clamped(pairs: Pairs) -> tuple[Numbers, Flags]:
    """Growth beyond the highest value so far.

    A fall to less than half is no correction: the core was away, say, and its time is counted from there on.
    """
    begins_anew = pairs.after < pairs.before // 2
    begins = ~pairs.follows | begins_anew
    floor = np.where(begins_anew, pairs.after, pairs.before)
    highest = np.where(begins, np.maximum(floor, pairs.after), pairs.after)
    highest = pd.Series(highest).groupby(np.cumsum(begins)).cummax().to_numpy()
    floor[~begins] = highest[:-1][~begins[1:]]
    is_below = (pairs.after < floor) | begins_anew
    return highest - floor, _flagged(is_below, Flag.CORRECTED)


RULES: Mapping[OnFull, Callable[[Pairs], tuple[Numbers, Flags]]] = {
    OnFull.WRAP: _wrapped,
    OnFull.SATURATE: _saturated,
    OnFull.RESET: _reset,
    OnFull.CLAMP: _clamped,
}


def _frame(column: Column, delta: Numbers, seconds: Floats, flag: Flags) -> pd.DataFrame:
    is_unknown = (flag & UNKNOWN) != 0
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        growth = delta * column.scale
        rate = growth / seconds
    array = pd.arrays.IntegerArray if delta.dtype == np.uint64 else pd.arrays.FloatingArray
    return pd.DataFrame(
        {
            "delta": array(np.where(is_unknown, 0, delta).astype(delta.dtype), is_unknown),
            "growth": _floats(growth, is_unknown),
            "seconds": _floats(seconds, is_unknown),
            "rate": _floats(rate, is_unknown),
            "flag": flag,
        }
    )


def _floats(values: Floats, is_unknown: Bools) -> pd.arrays.FloatingArray:
    is_missing = is_unknown | ~np.isfinite(values)
    return pd.arrays.FloatingArray(np.where(is_missing, 0.0, values), is_missing)

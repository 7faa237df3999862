"""Growth of counters, and what gauges showed, while runs made their steps."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from crosswind.data.lake.delta import differences
from crosswind.data.lake.lake import Lake
from crosswind.data.lake.series import Series, in_order
from crosswind.data.schema.prediction import Floats
from crosswind.models.conditions.moment import LOOK_BACK_SECONDS
from crosswind.models.conditions.places import WITHIN, rows_within
from crosswind.models.conditions.reading import Over
from crosswind.models.explain.cells import Cells, Ints
from crosswind.models.explain.rates import Rate

KEYS = {"node", "device"}
LONGEST_SECONDS = LOOK_BACK_SECONDS  # between two samples, beyond which nothing tells when it grew
# What of several numbers counts where some are missing; sums and means are not asked of nodes.
_COMBINED = {Over.MAX: np.fmax, Over.MIN: np.fmin}


def rates_during(lake: Lake, places: pd.DataFrame, count: int, rates: Sequence[Rate]) -> dict[str, Floats]:
    """Of each of `count` moments the rates by column, shape (count,): a second, or the mean of a gauge; else NaN.

    places: one row a moment and node, as `places_of`: `moment`, `at_node`, `from_ns`, `until_ns`. A query of the lake
    for each set that is stored. Raises: MalformedError.
    """
    by_column = {rate.column: np.full(count, np.nan) for rate in rates}
    stored = set(lake.sets()) if len(places) else set[str]()
    for (name, only), alike in _together(rates).items():
        columns = set(lake.columns(name)) if name in stored else set[str]()
        readable = [rate for rate in alike if KEYS | rate.needs <= columns]
        if not readable:
            continue
        devices = " or ".join(sorted({f"device like '{rate.device}'" for rate in readable}))
        needed = sorted(set[str]().union(*(rate.needs for rate in readable)))
        rows = lake.counters(name, needed, where=f"{WITHIN} and ({only}) and ({devices})", **rows_within(places))
        if not len(rows):
            continue
        series, cells = in_order(rows), Cells.of(rows, places.rename(columns={"at_node": "node"}))
        for rate in readable:
            of_place = _of_places(series, cells, rate, len(places))
            values = _over(rate.nodes, of_place, places["moment"].to_numpy(np.int64), count)
            by_column[rate.column] = _COMBINED[rate.nodes](by_column[rate.column], values)
    return by_column


def _together(rates: Sequence[Rate]) -> dict[tuple[str, str], list[Rate]]:
    groups: dict[tuple[str, str], list[Rate]] = {}
    for rate in rates:
        groups.setdefault((rate.metric_set, rate.only), []).append(rate)
    return groups


def _of_places(series: Series, cells: Cells, rate: Rate, count: int) -> Floats:
    """The rate at each place, over its devices; NaN where nothing tells."""
    chosen = cells if rate.device == "%" else cells.only(rate.is_of(cells.device))
    grown, spent = _shown(series, rate) if rate.is_gauge else _grown(series, rate)
    is_known = ~np.isnan(grown) & ~np.isnan(spent)
    skipped = 0 if rate.is_gauge else 1  # what grew before the first sample grew before the run, or between two
    upper, lower = (chosen.sums(np.where(is_known, amount, 0.0), skipped=skipped) for amount in (grown, spent))
    value = np.divide(upper, lower, out=np.full_like(upper, np.nan), where=lower > 0)
    return _over(rate.devices, value, chosen.place, count)


def _over(over: Over, values: Floats, group: Ints, count: int) -> Floats:
    """One number a group; NaN where it has none."""
    is_known = ~np.isnan(values)
    values, group = values[is_known], group[is_known]
    size = np.bincount(group, minlength=count)
    if over in _COMBINED:
        combined = np.full(count, np.nan)
        _COMBINED[over].at(combined, group, values)
        return combined
    summed = np.bincount(group, values, count)
    return np.where(size > 0, summed / (np.maximum(size, 1) if over is Over.MEAN else 1), np.nan)


def _grown(series: Series, rate: Rate) -> tuple[Floats, Floats]:
    """Return the counters' joint growth from the row before, and in how many seconds, or over which other growth."""
    grown, seconds = _growth(series, rate.columns)
    if rate.per:
        gauge = _gauge(series, rate.per)
        grown = grown / np.where(gauge > 0, gauge, np.nan)
    spent = _growth(series, rate.over)[0] if rate.over else seconds
    is_near = (seconds > 0) & (seconds <= LONGEST_SECONDS)
    return grown, np.where(is_near, spent, np.nan)


def _growth(series: Series, columns: Sequence[str]) -> tuple[Floats, Floats]:
    parts = [differences(series, column) for column in columns]
    grown = np.sum([part["growth"].to_numpy(np.float64, na_value=np.nan) for part in parts], axis=0)
    return grown, parts[0]["seconds"].to_numpy(np.float64, na_value=np.nan)


def _shown(series: Series, rate: Rate) -> tuple[Floats, Floats]:
    shown = np.sum([_gauge(series, column) for column in rate.columns], axis=0)
    return shown, np.ones_like(shown)


def _gauge(series: Series, name: str) -> Floats:
    values = series.rows[name].to_pandas().to_numpy(np.float64, na_value=np.nan)
    return np.asarray(values * series.metric_set[name].scale)

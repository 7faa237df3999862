"""Growth of counters, and means of gauges, on the nodes of runs while they made their steps."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.lake.delta import differences
from crosswind.data.lake.lake import Lake
from crosswind.data.lake.series import Series, in_order
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run
from crosswind.models.conditions.moment import LOOK_BACK_SECONDS
from crosswind.models.conditions.places import WITHIN, rows_within
from crosswind.models.conditions.reading import Over
from crosswind.models.explain.evidence.device_windows import DeviceWindows, Ints
from crosswind.models.explain.evidence.indicators import Sampled
from crosswind.models.explain.evidence.rate import Rate

KEYS = {"node", "device"}
LONGEST_SECONDS = LOOK_BACK_SECONDS  # between two samples, beyond which it is unknown when a counter grew
# Joins several numbers of which some may be missing; sums and means are not asked of nodes.
_COMBINED = {Over.MAX: np.fmax, Over.MIN: np.fmin}


def sampled_during(
    lake: Lake, runs: Sequence[Run], spans: pd.DataFrame, evidence: Sequence[Sampled], *, compared: Sequence[Sampled]
) -> dict[str, dict[str, float]]:
    """Return by run id and column seconds or counts a step, or means of gauges; NaN where nobody sampled.

    spans: as `spans_of`; compared: read as well, but no proof that evidence was sampled. Raises: MalformedError.
    """
    spanned = spans.groupby("run_id").agg(
        begin_ns=("begin_ns", "min"), end_ns=("end_ns", "max"), first=("first", "min"), last=("last", "max")
    )
    spanned = spanned[spanned["last"] > spanned["first"]]
    placed = [run for run in runs if run.run_id in spanned.index and run.nodes]
    if not placed:
        return {}
    spanned = spanned.loc[[run.run_id for run in placed]]
    rates = rates_during(lake, _places(placed, spanned), len(placed), (*evidence, *compared))
    seconds = (spanned["end_ns"] - spanned["begin_ns"]) / (spanned["last"] - spanned["first"]) / 1e9
    step_seconds = seconds.to_numpy(np.float64)
    gauges = {sampled.column for sampled in (*evidence, *compared) if sampled.is_gauge}
    table = {name: values if name in gauges else values * step_seconds for name, values in rates.items()}
    table |= _zero_where_sampled(table, evidence)
    return dict(zip(spanned.index, pd.DataFrame(table).to_dict("records"), strict=True))


def _places(runs: Sequence[Run], spans: pd.DataFrame) -> pd.DataFrame:
    rows = [
        (number, node, int(begin), int(end) + 1)
        for number, (run, begin, end) in enumerate(zip(runs, spans["begin_ns"], spans["end_ns"], strict=True))
        for node in dict.fromkeys(run.nodes)
    ]
    return pd.DataFrame(rows, columns=["moment", "at_node", "from_ns", "until_ns"])


def _zero_where_sampled(table: dict[str, Floats], evidence: Sequence[Sampled]) -> dict[str, Floats]:
    """Return the columns that are zero rather than missing in runs of which anything else was sampled."""
    others = [table[sampled.column] for sampled in evidence if not sampled.is_zero_unsampled]
    was_sampled = ~np.isnan(others).all(axis=0)
    columns = [sampled.column for sampled in evidence if sampled.is_zero_unsampled]
    return {name: np.where(np.isnan(table[name]) & was_sampled, 0.0, table[name]) for name in columns}


def rates_during(lake: Lake, places: pd.DataFrame, count: int, evidence: Sequence[Sampled]) -> dict[str, Floats]:
    """Return by column the rates at each of `count` moments, shape (count,): a second, or a gauge's mean; else NaN.

    places: a row for each moment and node: `moment`, `at_node`, `from_ns`, `until_ns`. It makes one query of the lake
    for each set that is stored. Raises: MalformedError.
    """
    by_column = {sampled.column: np.full(count, np.nan) for sampled in evidence}
    stored = set(lake.sets()) if len(places) else set[str]()
    for (name, only), alike in _by_query(evidence).items():
        columns = set(lake.columns(name)) if name in stored else set[str]()
        readable = [(column, rate) for column, rate in alike if KEYS | rate.needs <= columns]
        if not readable:
            continue
        devices = " or ".join(sorted({f"device like '{rate.device}'" for _, rate in readable}))
        needed = sorted(set[str]().union(*(rate.needs for _, rate in readable)))
        rows = lake.counters(name, needed, where=f"{WITHIN} and ({only}) and ({devices})", **rows_within(places))
        if not len(rows):
            continue
        series, windows = in_order(rows), DeviceWindows.of(rows, places.rename(columns={"at_node": "node"}))
        for column, rate in readable:
            at_places = _at_places(series, windows, rate, len(places))
            values = _over(rate.nodes, at_places, places["moment"].to_numpy(np.int64), count)
            by_column[column] = _COMBINED[rate.nodes](by_column[column], values)
    return by_column


def _by_query(evidence: Sequence[Sampled]) -> dict[tuple[str, str], list[tuple[str, Rate]]]:
    """Return columns with their rates by metric set and condition, which one query reads together."""
    groups: dict[tuple[str, str], list[tuple[str, Rate]]] = {}
    for sampled in evidence:
        for rate in sampled.rates:
            groups.setdefault((rate.metric_set, rate.only), []).append((sampled.column, rate))
    return groups


def _at_places(series: Series, windows: DeviceWindows, rate: Rate, count: int) -> Floats:
    """Return the rate at each place, over its devices, shape (count,); NaN where it is unknown."""
    chosen = windows if rate.device == "%" else windows.only(rate.is_of(windows.device))
    grown, spent = _gauge_means(series, rate) if rate.is_gauge else _grown(series, rate)
    is_recorded = ~np.isnan(grown) & ~np.isnan(spent)
    skipped = 0 if rate.is_gauge else 1  # what grew before the first sample grew before the run, or between two
    upper, lower = (chosen.sums(np.where(is_recorded, amount, 0.0), skipped=skipped) for amount in (grown, spent))
    if rate.over and rate.devices is Over.SUM:
        return _ratio(np.bincount(chosen.place, upper, count), np.bincount(chosen.place, lower, count))
    return _over(rate.devices, _ratio(upper, lower), chosen.place, count)


def _ratio(upper: NDArray[np.number], lower: NDArray[np.number]) -> Floats:
    return np.asarray(np.divide(upper, lower, out=np.full(len(upper), np.nan), where=lower > 0))


def _over(over: Over, values: Floats, group: Ints, count: int) -> Floats:
    """Return one number for each group, shape (count,); NaN where it has none."""
    is_recorded = ~np.isnan(values)
    values, group = values[is_recorded], group[is_recorded]
    if over in _COMBINED:
        combined = np.full(count, np.nan)
        _COMBINED[over].at(combined, group, values)
        return combined
    size = np.bincount(group, minlength=count)
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


def _gauge_means(series: Series, rate: Rate) -> tuple[Floats, Floats]:
    total = np.sum([_gauge(series, column) for column in rate.columns], axis=0)
    return total, np.ones_like(total)


def _gauge(series: Series, name: str) -> Floats:
    values = series.rows[name].to_pandas().to_numpy(np.float64, na_value=np.nan)
    return np.asarray(values * series.metric_set[name].scale)

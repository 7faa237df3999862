"""Readings of the nodes' counters and gauges during runs: a column a counter, a row a run.

Missing is missing: a counter that was sampled for less than half of a run is NaN in it.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from crosswind.data.lake.delta import grown
from crosswind.data.lake.lake import Lake, set_of
from crosswind.data.lake.series import in_order
from crosswind.data.schema.answers.effects import CounterColumn
from crosswind.data.schema.metric import NUMERIC, Column, Kind, MetricSet
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run
from crosswind.data.schema.steps import LOOP_SETS
from crosswind.models.conditions.places import WITHIN, rows_within
from crosswind.models.counters.groups import Groups, Ints, Sampled

RUNS_AT_ONCE = 200  # of which samples are held in memory
KEYS = frozenset({"node", "device", "ts_ns"})
# The agent's own metrics, sets that are not sampled, and series of unknown names and units.
LEFT_OUT = frozenset(
    {
        *(loop_set.name for loop_set in LOOP_SETS),
        "operation",
        "agent",
        "collector",
        "job",
        "event",
        "series",
        "placement",
    }
)
BYTES = ("receive_bytes_total", "transmit_bytes_total")  # of sets in which faults may be taken by byte moved
NANOSECONDS = 1e9


def counters_during(
    lake: Lake, runs: Sequence[Run], *, only: Collection[str] | None = None
) -> dict[CounterColumn, "pd.Series[float]"]:
    """Values by counter, a series indexed by the run's place, NaN where missing; `only` these columns.

    The value of a counter is its growth a second, summed over the devices of a group, on the run's worst node; faults
    of a network are also given by byte moved. That of a gauge is its mean over time, devices and nodes. Raises:
    MalformedError for a damaged file.
    """
    whole = {counter: pd.Series(values) for counter, values in _whole(lake, runs, only).items()}
    return whole | _by_byte(whole)


def _whole(lake: Lake, runs: Sequence[Run], only: Collection[str] | None) -> dict[CounterColumn, Floats]:
    by_counter: dict[CounterColumn, Floats] = {}
    for name in lake.sets():
        columns = [
            column
            for column in lake.columns(name).values()
            if _is_numeric(column) and (only is None or column.name in only)
        ]
        if name in LEFT_OUT or not columns or not lake.columns(name).keys() >= KEYS:
            continue
        for start in range(0, len(runs), RUNS_AT_ONCE):
            places = _places(runs[start : start + RUNS_AT_ONCE], start)
            if len(places):
                for counter, of_runs, values in _of_set(lake, name, columns, places):
                    by_counter.setdefault(counter, np.full(len(runs), np.nan))[of_runs] = values
    return by_counter


def _is_numeric(column: Column) -> bool:
    return column.kind in (Kind.COUNTER, Kind.GAUGE) and column.dtype in NUMERIC


def _places(runs: Sequence[Run], first: int) -> pd.DataFrame:
    """One row a run and node, with the time span of the run."""
    rows = [
        (number, node, run.started_ns, run.ended_ns)
        for number, run in enumerate(runs, first)
        for node in dict.fromkeys(run.nodes)
        if run.started_ns is not None and run.ended_ns is not None
    ]
    types = {"run": "int64", "at_node": "object", "from_ns": "int64", "until_ns": "int64"}
    return pd.DataFrame(rows, columns=list(types)).astype(types)


def _of_set(
    lake: Lake, name: str, columns: Sequence[Column], places: pd.DataFrame
) -> Iterator[tuple[CounterColumn, Ints, Floats]]:
    """Yield the counters of a set: of a group of devices, the runs that it was sampled in, and its values in these."""
    rows = lake.counters(name, [column.name for column in columns], where=WITHIN, **rows_within(places))
    if not len(rows):
        return
    sampled, metric_set = Sampled.of(rows, places), set_of(rows.schema)
    counters = [column.name for column in columns if column.kind is Kind.COUNTER]
    gauges = [column.name for column in columns if column.kind is Kind.GAUGE]
    if counters:
        series = in_order(rows)
        growth = {counter: grown(series, counter) for counter in counters}
        longest = np.maximum.reduce([seconds for _, seconds in growth.values()])
        groups = sampled.groups(np.rint(longest * NANOSECONDS).astype(np.int64))
        for counter, (amounts, seconds) in growth.items():
            yield from _valued(metric_set, counter, groups, groups.rates(amounts, seconds))
    groups = sampled.groups()
    for gauge in gauges:
        values = rows[gauge].to_pandas().to_numpy(np.float64, na_value=np.nan) * metric_set[gauge].scale
        yield from _valued(metric_set, gauge, groups, groups.means(values))


def _valued(
    metric_set: MetricSet, name: str, groups: Groups, values: Floats
) -> Iterator[tuple[CounterColumn, Ints, Floats]]:
    column, is_valued = metric_set[name], ~np.isnan(values)
    per = "second" if column.kind is Kind.COUNTER else ""
    for number in np.unique(groups.group[is_valued]):
        chosen = is_valued & (groups.group == number)
        group = groups.names[number]
        counter = CounterColumn(metric_set.name, name, group, per, column.unit, column.description)
        yield counter, groups.run[chosen], values[chosen]


def _by_byte(rates: dict[CounterColumn, "pd.Series[float]"]) -> dict[CounterColumn, "pd.Series[float]"]:
    """Counters, other than of bytes, of the sets that count bytes both ways, over the bytes moved."""
    bytes_of: dict[tuple[str, str], pd.Series[float]] = {}
    for counter, values in rates.items():
        if counter.column in BYTES:
            so_far = bytes_of.get((counter.metric_set, counter.devices), 0.0)
            bytes_of[counter.metric_set, counter.devices] = so_far + values
    return {
        replace(rate, per="byte"): values / moved.where(moved > 0)
        for rate, values in rates.items()
        if rate.per == "second"
        and "bytes" not in rate.column
        and (moved := bytes_of.get((rate.metric_set, rate.devices))) is not None
    }

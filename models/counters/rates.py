"""Readings of the nodes' counters and gauges during runs: a column a counter, a row a run.

Missing is missing: a counter that was sampled for less than half of a run is NaN in it.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa

from crosswind.data.lake.delta import differences
from crosswind.data.lake.lake import Lake, set_of
from crosswind.data.lake.series import in_order
from crosswind.data.schema.answers.effects import CounterColumn
from crosswind.data.schema.metric import NUMERIC, Column, Kind, MetricSet
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run
from crosswind.data.schema.steps import LOOP_SETS
from crosswind.models.conditions.places import WITHIN, MemoryDatabase, rows_within

COVERAGE_MIN = 0.5  # of a run's time, on a node
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
NUMBERS = re.compile(r"\b[0-9a-f]+(?=:)|\d+")  # handles of queues and addresses on a bus are hexadecimal
NANOSECONDS = 1e9
_RATES = """
with of_device as (
    select run, node, group_name, device, any_value(length) as length, {sums}
    from places join samples on node = at_node and begin_ns >= from_ns and ts_ns < until_ns group by all
), of_node as (
    select run, node, group_name, {rates} from of_device group by all
)
select run, group_name, {worst} from of_node group by all
"""
_GAUGES = """
with of_device as (
    select run, node, group_name, device, {means}
    from places join samples on node = at_node and ts_ns >= from_ns and ts_ns < until_ns group by all
)
select run, group_name, {over} from of_device group by all
"""


def counters_during(
    lake: Lake, runs: Sequence[Run], *, only: Collection[str] | None = None
) -> dict[CounterColumn, "pd.Series[float]"]:
    """Values by counter, a series indexed by the run's place, NaN where missing; `only` these columns.

    The value of a counter is its growth a second, summed over the devices of a group, on the run's worst node; faults
    of a network are also given by byte moved. That of a gauge is its mean over time, devices and nodes. Raises:
    MalformedError for a damaged file.
    """
    with MemoryDatabase.opened() as database:
        whole = _whole(lake, runs, database, only)
    return whole | _by_byte(whole)


def _whole(
    lake: Lake, runs: Sequence[Run], database: MemoryDatabase, only: Collection[str] | None
) -> dict[CounterColumn, "pd.Series[float]"]:
    by_counter: dict[CounterColumn, list[pd.Series[float]]] = {}
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
                for counter, values in _of_set(lake, (name, columns), places, database):
                    by_counter.setdefault(counter, []).append(values)
    return {counter: pd.concat(parts).reindex(range(len(runs))) for counter, parts in by_counter.items()}


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
    table = pd.DataFrame(rows, columns=list(types)).astype(types)
    return table.assign(length=(table["until_ns"] - table["from_ns"]) / NANOSECONDS)


def _of_set(
    lake: Lake, wanted: tuple[str, Sequence[Column]], places: pd.DataFrame, database: MemoryDatabase
) -> Iterator[tuple[CounterColumn, "pd.Series[float]"]]:
    name, columns = wanted
    rows = lake.counters(name, [column.name for column in columns], where=WITHIN, **rows_within(places))
    if not len(rows):
        return
    metric_set, keys = set_of(rows.schema), _keys(rows)
    counters = [column.name for column in columns if column.kind is Kind.COUNTER]
    gauges = [column.name for column in columns if column.kind is Kind.GAUGE]
    if counters:
        table = database.answer(_rates_sql(counters), _grown(rows, counters, keys), places)
        yield from _columns(metric_set, table, counters, "second")
    if gauges:
        scaled = {gauge: rows[gauge].to_pandas().astype("Float64") * metric_set[gauge].scale for gauge in gauges}
        table = database.answer(_gauges_sql(gauges), keys.assign(**scaled), places)
        yield from _columns(metric_set, table, gauges, "")


def _keys(rows: pa.Table) -> pd.DataFrame:
    keys: pd.DataFrame = rows.select(sorted(KEYS)).to_pandas()
    names = {device: _group_name(device) for device in keys["device"].dropna().unique()}
    return keys.assign(device=keys["device"].fillna(""), group_name=keys["device"].map(names).fillna(""))


def _group_name(device: str) -> str:
    return NUMBERS.sub("*", device)


def _grown(rows: pa.Table, counters: Sequence[str], keys: pd.DataFrame) -> pd.DataFrame:
    """Return the growth of each counter and its seconds, one row a sample; `begin_ns` is the sample before it."""
    series = in_order(rows)
    parts: dict[str, pd.Series[float] | Floats] = {}
    longest = np.zeros(len(rows))
    for name in counters:
        part = differences(series, name)
        grown = part["growth"].to_numpy(np.float64, na_value=np.nan)
        seconds = np.where(np.isnan(grown), 0.0, part["seconds"].to_numpy(np.float64, na_value=0.0))
        parts |= {f"g_{name}": pd.Series(grown).astype("Float64"), f"s_{name}": seconds}
        longest = np.maximum(longest, seconds)
    begins = keys["ts_ns"] - np.rint(longest * NANOSECONDS).astype(np.int64)
    return keys.assign(begin_ns=begins, **parts)


def _rates_sql(counters: Sequence[str]) -> str:
    sums = ", ".join(f"sum(g_{name}) as g_{name}, sum(s_{name}) as s_{name}" for name in counters)
    covers = f"{COVERAGE_MIN} * any_value(length)"
    rates = ", ".join(
        f"case when max(s_{name}) >= {covers} then sum(g_{name}) / max(s_{name}) end as {name}" for name in counters
    )
    return _RATES.format(sums=sums, rates=rates, worst=", ".join(f"max({name}) as {name}" for name in counters))


def _gauges_sql(gauges: Sequence[str]) -> str:
    means, over = (", ".join(f"avg({name}) as {name}" for name in gauges) for _ in range(2))
    return _GAUGES.format(means=means, over=over)


def _columns(
    metric_set: MetricSet, table: pd.DataFrame, names: Sequence[str], per: str
) -> Iterator[tuple[CounterColumn, "pd.Series[float]"]]:
    for group, rows in table.groupby("group_name"):
        of_group = rows.set_index("run")
        for name in names:
            values = of_group[name].astype("float64").dropna()
            if len(values):
                yield (
                    CounterColumn(
                        metric_set.name, name, str(group), per, metric_set[name].unit, metric_set[name].description
                    ),
                    values,
                )


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

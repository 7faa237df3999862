"""Counters and gauges of a run's nodes in the look-back before it begins."""

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from crosswind.data.lake.delta import differences
from crosswind.data.lake.lake import Lake, set_of
from crosswind.data.lake.series import Series, in_order
from crosswind.data.schema.metric import Column
from crosswind.data.schema.prediction import Floats
from crosswind.models.conditions.moment import LOOK_BACK_SECONDS
from crosswind.models.conditions.places import WITHIN, MemoryDatabase, of_kernels, rows_within, swept_set, with_sweeps
from crosswind.models.conditions.reading import OTHERS, READINGS, Reading

# One number a device, then a node, then a moment. A pair of samples counts where it is no longer than the look-back.
_RATES = """
with of_device as (
    select moment, node, device, sum(growth) / sum(seconds) as recent,
        arg_max(growth / seconds, ts_ns) filter (ts_ns >= fresh_ns) as newest
    from places join samples on node = at_node and ts_ns >= from_ns and ts_ns < until_ns
    where seconds > 0 and seconds <= {longest} group by all
), of_node as (
    select moment, node, {devices}(newest) as newest, {devices}(recent) as recent from of_device group by all
)
select moment, {nodes}(newest) as newest, {nodes}(recent) as recent from of_node group by moment
"""
_GAUGES = """
with of_device as (
    select moment, node, device, arg_max(value, ts_ns) as newest
    from places join samples on node = at_node and ts_ns >= fresh_ns and ts_ns < until_ns
    where value is not null group by all
), of_node as (select moment, node, {devices}(newest) as newest from of_device group by all)
select moment, {nodes}(newest) as newest from of_node group by moment
"""
KEYS = {"node", "device"}
_Numbers = dict[str, "pd.Series[float]"]


NAMES = (*(name for reading in READINGS for name in reading.names), *OTHERS)


def sampled(lake: Lake, places: pd.DataFrame, count: int, *, names: Collection[str] = NAMES) -> pd.DataFrame:
    """Conditions of READINGS and OTHERS, one row for each of `count` moments; NaN where nothing was sampled.

    places: as `places_of`. Each stored set that is needed takes a query or two of the lake.
    """
    needed = {*names, *(source for name in names if name in OTHERS for source in OTHERS[name])}
    readings = [reading for reading in READINGS if needed.intersection(reading.names)]
    columns: _Numbers = {name: pd.Series(np.nan, index=range(count)) for reading in readings for name in reading.names}
    if len(places):
        columns |= _read(lake, places, readings)
    table = pd.DataFrame(columns, index=range(count)).astype("float64")
    others = {name: table[OTHERS[name][0]] - table[OTHERS[name][1]].fillna(0.0) for name in OTHERS if name in names}
    return table.assign(**others)[[name for name in NAMES if name in names]]


def _read(lake: Lake, places: pd.DataFrame, readings: Sequence[Reading]) -> _Numbers:
    stored = set(lake.sets())
    groups = _by_query(lake, stored, readings)
    columns: _Numbers = {}
    if not groups:
        return columns
    swept = swept_set(stored)
    with MemoryDatabase.opened() as database:
        own = with_sweeps(lake, database, places, swept)
        whole = of_kernels(lake, own, swept) if any(group[0].of_kernel for group in groups) else own
        for wanted in groups:
            chosen = whole if wanted[0].of_kernel else own
            rows = _rows(lake, wanted, chosen)
            series = in_order(rows)
            for reading in wanted:
                samples = _grown(reading, series) if reading.is_rate else _gauge_values(reading, rows)
                answer = database.answer(_sql(reading), samples, chosen).set_index("moment")
                columns |= dict(zip(reading.names, (answer[column] for column in answer), strict=True))
    return columns


def _by_query(lake: Lake, stored: set[str], readings: Sequence[Reading]) -> list[list[Reading]]:
    """The readings whose columns are stored, grouped by the query that answers them."""
    groups: dict[tuple[str, str, bool], list[Reading]] = {}
    for reading in readings:
        if reading.metric_set in stored and KEYS | _needed(reading) <= set(lake.columns(reading.metric_set)):
            groups.setdefault((reading.metric_set, reading.only, reading.of_kernel), []).append(reading)
    return list(groups.values())


def _rows(lake: Lake, wanted: Sequence[Reading], places: pd.DataFrame) -> pa.Table:
    columns = sorted({column for reading in wanted for column in _needed(reading)})
    where = f"{WITHIN} and ({wanted[0].only})"
    return lake.counters(wanted[0].metric_set, columns, where=where, **rows_within(places))


def _sql(reading: Reading) -> str:
    sql = _RATES if reading.is_rate else _GAUGES
    return sql.format(devices=reading.devices, nodes=reading.nodes, longest=LOOK_BACK_SECONDS)


def _grown(reading: Reading, series: Series) -> pd.DataFrame:
    """Return the growth of the columns together and its seconds, one row a sample; NaN where one is unknown."""
    parts = [differences(series, column) for column in reading.columns]
    growth = np.sum([part["growth"].to_numpy(np.float64, na_value=np.nan) for part in parts], axis=0)
    seconds = parts[0]["seconds"].to_numpy(np.float64, na_value=np.nan)
    return _keys(series.rows).assign(growth=growth, seconds=np.where(np.isnan(growth), np.nan, seconds))


def _gauge_values(reading: Reading, rows: pa.Table) -> pd.DataFrame:
    """Return the sum of the gauges, one row a sample; missing where one of them is, or where the divisor is 0."""
    columns = {column.name: column for column in set_of(rows.schema).columns}
    value = np.sum([_base(rows, columns[name]) for name in reading.columns], axis=0)
    if reading.divided_by is not None:
        divisor = _base(rows, columns[reading.divided_by])
        value = value / np.where(divisor > 0, divisor, np.nan)
    return _keys(rows).assign(value=pd.Series(value).astype("Float64"))


def _base(rows: pa.Table, column: Column) -> Floats:
    values: Floats = rows[column.name].to_pandas().to_numpy(np.float64, na_value=np.nan) * column.scale
    return values


def _keys(rows: pa.Table) -> pd.DataFrame:
    keys: pd.DataFrame = rows.select(["node", "device", "ts_ns"]).to_pandas()
    return keys


def _needed(reading: Reading) -> set[str]:
    return {*reading.columns, *(() if reading.divided_by is None else (reading.divided_by,))}

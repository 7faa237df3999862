"""Statistics of samples by step and series, in DuckDB: no more is held than the groups."""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from crosswind.data.lake.instance import new_connection
from crosswind.data.lake.retention.rolled_set import TIME
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.series_question import Statistic
from crosswind.data.store.metrics.steps import Steps
from crosswind.data.store.metrics.stored import Metric

OF_SAMPLES: Mapping[Statistic, str] = {
    Statistic.MEAN: "avg(value)",
    Statistic.MIN: "min(value)",
    Statistic.MAX: "max(value)",
    Statistic.P50: "quantile_cont(value, 0.5)",
    Statistic.P95: "quantile_cont(value, 0.95)",
    Statistic.P99: "quantile_cont(value, 0.99)",
}
OF_ROLLED: Mapping[Statistic, str] = {
    **OF_SAMPLES,  # percentiles are of samples, and missing where there are none
    Statistic.MEAN: "sum(total) / sum(n)",
    Statistic.MIN: "min(least)",
    Statistic.MAX: "max(most)",
}
PERCENTILES = frozenset({Statistic.P50, Statistic.P95, Statistic.P99})
OF_GAUGES: Mapping[Statistic, str] = {Statistic.SUM: "sum(mean)"}  # of what each device shows
OF_COUNTERS: Mapping[Statistic, str] = {Statistic.SUM: "sum(growth)", Statistic.RATE: "sum(growth / seconds)"}
# A sample without a value is none; the number of a step is kept small, so that groups are hashed quickly.
_STEPPED = "select *, (({time} - {begin}) // {width})::integer as step from {samples} where {where}"
_PLAIN = "select step, {by}{statistics} from ({stepped}) group by all"
_DEVICES = "select step, {keys}{sums} from ({stepped}) group by all"
_SUMMED = "select step, {by}{statistics} from ({devices}) group by all"
GROWTH = "sum(growth) as growth, sum(seconds) as seconds"
MEAN, MEAN_OF_ROLLED = "avg(value) as mean", "sum(total) / sum(n) as mean"


@dataclass(frozen=True)
class Wanted:
    """Statistics of a metric by step, of groups of one value of `by` each."""

    metric: Metric
    statistics: tuple[Statistic, ...]
    by: tuple[str, ...]
    steps: Steps


OF_PARTS: Mapping[Statistic, Callable[[float, float], float]] = {
    Statistic.SUM: operator.add,
    Statistic.RATE: operator.add,
    Statistic.MIN: min,
    Statistic.MAX: max,
}
Values = Mapping[Statistic, Mapping[int, float]]  # by the number of the step
Groups = dict[tuple[str, ...], Values]


@dataclass(frozen=True)
class Samples:
    """Samples in SQL, and its parameters; with `is_rolled` their number and what they add up to, for several each."""

    sql: str
    parameters: tuple[object, ...] = ()
    is_rolled: bool = False


def default_statistics(metric: Metric, asked: Sequence[Statistic]) -> tuple[Statistic, ...]:
    """Return the statistics of a metric. Raises: InvalidInputError for the rate of a gauge."""
    if Statistic.RATE in asked and not metric.is_counter:
        raise InvalidInputError(f"statistic 'rate': {metric.name} is a {metric.column.kind}: expected {_others()}")
    return tuple(asked) or ((Statistic.RATE,) if metric.is_counter else (Statistic.MEAN,))


def _others() -> str:
    return ", ".join(one for one in Statistic if one is not Statistic.RATE)


def statistics_sql(wanted: Wanted, samples: Samples) -> list[tuple[str, tuple[Statistic, ...]]]:
    """Return queries of samples (in SQL), of the columns step, `by`, and one a statistic, whose names follow."""
    steps, of_samples = wanted.steps, OF_ROLLED if samples.is_rolled else OF_SAMPLES
    where, mean = ("n > 0", MEAN_OF_ROLLED) if samples.is_rolled else ("value is not null", MEAN)
    stepped = _STEPPED.format(time=TIME, begin=steps.begin_ns, width=steps.width_ns, samples=samples.sql, where=where)
    summed = OF_COUNTERS if wanted.metric.is_counter else OF_GAUGES
    by, keys = _listed(wanted.by), _listed(wanted.metric.keys)
    plain = tuple(one for one in wanted.statistics if one not in summed)
    sums = tuple(one for one in wanted.statistics if one in summed)
    queries = []
    if plain:
        sql = _PLAIN.format(by=by, statistics=", ".join(of_samples[one] for one in plain), stepped=stepped)
        queries.append((sql, plain))
    if sums:
        devices = _DEVICES.format(keys=keys, sums=GROWTH if wanted.metric.is_counter else mean, stepped=stepped)
        sql = _SUMMED.format(by=by, statistics=", ".join(summed[one] for one in sums), devices=devices)
        queries.append((sql, sums))
    return queries


def _listed(columns: Iterable[str]) -> str:
    return "".join(f'"{column}", ' for column in columns)


def read_groups(
    connection: duckdb.DuckDBPyConnection, wanted: Wanted, samples: Samples, limit: int
) -> tuple[Groups, int]:
    """Return the values of the first `limit` groups by name, and how many groups there are."""
    groups: dict[tuple[str, ...], dict[Statistic, dict[int, float]]] = {}
    count = 0
    for sql, statistics in statistics_sql(wanted, samples):
        connection.execute(f"create or replace temp table grouped as {sql}", list(samples.parameters))
        for row in _first(connection, wanted.by, limit):
            _add(groups, row, len(wanted.by), statistics)
        count = max(count, len(groups) if len(groups) < limit else _count(connection, wanted.by))
    return dict(groups), count


def _count(connection: duckdb.DuckDBPyConnection, by: Sequence[str]) -> int:
    keys = _listed(by).rstrip(", ") or "1"
    [(count,)] = connection.execute(f"select count(*) from (select distinct {keys} from grouped)").fetchall()  # noqa: S608
    return int(count)


def _first(connection: duckdb.DuckDBPyConnection, by: Sequence[str], limit: int) -> list[tuple[Any, ...]]:
    keys = _listed(by).rstrip(", ")
    first = f"qualify dense_rank() over (order by {keys}) <= {limit}" if keys else ""
    rows: list[tuple[Any, ...]] = connection.execute(f"select * from grouped {first}").fetchall()  # noqa: S608
    return rows


def _add(
    groups: dict[tuple[str, ...], dict[Statistic, dict[int, float]]],
    row: tuple[Any, ...],
    keys: int,
    statistics: Sequence[Statistic],
) -> None:
    group = groups.setdefault(tuple("" if key is None else str(key) for key in row[1 : 1 + keys]), {})
    for statistic, value in zip(statistics, row[1 + keys :], strict=True):
        if value is not None:
            group.setdefault(statistic, {})[row[0]] = value


@dataclass
class Grouped:
    """Groups of one metric, put together of those of some nodes after another; `count`: with those left out."""

    groups: Groups = field(default_factory=dict)
    count: int = 0

    def add(self, wanted: Wanted, table: pa.Table, limit: int) -> None:
        """Add the growth of a counter on some nodes.

        Raises: InvalidInputError where a group is of more nodes than are read at once, and cannot be put together.
        """
        with new_connection() as connection:
            connection.register("samples", table)
            samples = Samples("samples", is_rolled="n" in table.column_names)
            part, count = read_groups(connection, wanted, samples, limit)
        is_apart = self.groups.keys().isdisjoint(part)
        self.count = self.count + count if is_apart else max(self.count, count)
        for key, values in part.items():
            self.groups[key] = values if is_apart else _together(self.groups.get(key, {}), values)


def _together(one: Values, other: Values) -> Values:
    """Return the statistics of two parts of a group."""
    if lacking := [name for name in (*one, *other) if name not in OF_PARTS]:
        possible = ", ".join(OF_PARTS)
        raise InvalidInputError(f"statistic {lacking[0]!r}: of so many nodes together, expected {possible}, or by node")
    return {name: _step_by_step(one.get(name, {}), other.get(name, {}), OF_PARTS[name]) for name in (*one, *other)}


def _step_by_step(
    one: Mapping[int, float], other: Mapping[int, float], put: Callable[[float, float], float]
) -> Mapping[int, float]:
    both = {step: put(one[step], other[step]) for step in one.keys() & other.keys()}
    return {**one, **other, **both}

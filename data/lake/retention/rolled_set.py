"""The sets that roll-ups are stored in: of each sampled column what its samples of a time add up to, in base units."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from crosswind.data.lake.lake import Lake
from crosswind.data.schema.checks import PREFLIGHT
from crosswind.data.schema.keeping import ROLLUP, rollup_name
from crosswind.data.schema.metric import NUMERIC, Column, Kind, MetricSet

TIME, NODE, RUN = "ts_ns", "node", "run_id"
NOT_SAMPLED = frozenset({PREFLIGHT.name, "job"})  # measured now and then, and accounts
# Names of columns are those of the set with one of these; none has an underscore, so that no two are the same.
OF_ALL: Mapping[str, str] = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}  # and how two are one
OF_GROWTH: Mapping[str, str] = {"growth": "sum", "seconds": "sum"}


def is_rolled_up(lake: Lake, name: str) -> bool:
    """Return whether a set has samples of nodes, and numbers among them, so that there can be roll-ups of it."""
    columns = {} if name in NOT_SAMPLED or ROLLUP.fullmatch(name) else lake.columns(name)
    has_keys = {TIME, NODE} <= columns.keys() and RUN not in columns
    return has_keys and any(True for _ in sampled(columns))


def sampled(columns: Mapping[str, Column]) -> Iterator[Column]:
    """Yield the gauges and counters among columns."""
    for column in columns.values():
        if column.kind in (Kind.GAUGE, Kind.COUNTER) and column.dtype in NUMERIC:
            yield column


def keys_of(columns: Mapping[str, Column]) -> list[str]:
    """Return the names of the keys, without the time."""
    return [column.name for column in columns.values() if column.kind is Kind.KEY and column.name != TIME]


def parts_of(column: Column) -> Mapping[str, str]:
    """Return the names of what a column's samples add up to, and by which function those of two times are one.

    Of a counter `sum`, `min` and `max` are of its growth a second from one sample to the next.
    """
    kinds = {**OF_ALL, **OF_GROWTH} if column.kind is Kind.COUNTER else OF_ALL
    return {f"{column.name}_{kind}": function for kind, function in kinds.items()}


def packed(column: Column) -> Mapping[str, str]:
    """Return in SQL what is stored of a column's parts: null for what follows from the others to the last bit.

    A step of one sample, or of equal ones, has one number then instead of three.
    """
    count, total, least, most = (f'"{column.name}_{kind}"' for kind in OF_ALL)
    parts = {part: f'"{part}"' for part in parts_of(column)}
    parts[f"{column.name}_sum"] = f"nullif({total}, {count} * {least})"
    parts[f"{column.name}_max"] = f"nullif({most}, {least})"
    if column.kind is Kind.COUNTER:
        parts[f"{column.name}_min"] = f"nullif({least}, {_rate(column)})"
    return parts


def unpacked(column: Column) -> Mapping[str, str]:
    """Return in SQL the parts of a column of what is stored, also where all parts are."""
    count, total, least, most = (f'"{column.name}_{kind}"' for kind in OF_ALL)
    parts = {part: f'"{part}"' for part in parts_of(column)}
    if column.kind is Kind.COUNTER:
        least = parts[f"{column.name}_min"] = f"coalesce({least}, {_rate(column)})"
    parts[f"{column.name}_sum"] = f"coalesce({total}, {count} * {least})"
    parts[f"{column.name}_max"] = f"coalesce({most}, {least})"
    return parts


def _rate(column: Column) -> str:
    return f'"{column.name}_growth" / "{column.name}_seconds"'


def rolled_set(name: str, columns: Mapping[str, Column], seconds: int) -> MetricSet:
    """Return the set of a set's roll-ups. Raises: InvalidInputError where a name would be too long."""
    keys = [column for column in columns.values() if column.kind is Kind.KEY]
    rolled = [one for column in sampled(columns) for one in _rolled(column)]
    described = f"{name} by {seconds} s: each row is of the samples from ts_ns on"
    return MetricSet(rollup_name(name, seconds), described, (*keys, *rolled))


def _rolled(column: Column) -> Iterator[Column]:
    for name in parts_of(column):
        kind = name.rpartition("_")[2]
        if kind == "count":
            yield Column(name, f"samples of {column.name}")
        else:
            plain = Column(name, f"{kind} of {column.name}", dtype="float64", unit=column.unit)
            yield replace(plain, unit="s") if kind == "seconds" else plain

"""Building the batches of a segment: rows gathered by metric set, every column checked and built only once."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import isfinite
from typing import Any, Literal

import msgspec
import pyarrow as pa

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.errors import MalformedError, ProjectError
from crosswind.data.schema.metric import DTYPES, NODE_KEYS, MetricSet, Scalar
from crosswind.ingest.spool.segment import SAMPLES_FRAME, Frame, RowsFrame, SweepRows, parse_loosely, swept_set

VALUES_AT_ONCE = 500_000  # as Python objects, ten times as large as in a table
SHARED = frozenset(key.name for key in NODE_KEYS)


class _Samples(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: Literal["samples"]
    set: str
    ts_ns: int
    mono_ns: int
    node: str
    boot_id: str | None
    rows: list[list[int | float | str | bool | None]]


SAMPLES = msgspec.json.Decoder(_Samples)


def parse_quickly(payload: bytes, sets: Mapping[str, MetricSet]) -> Frame | SweepRows:
    """Parse as `parse_loosely` does, but three times as fast for agents' usual frames. Raises: MalformedError."""
    if not payload.startswith(SAMPLES_FRAME):
        return parse_loosely(payload, sets)
    try:
        sweep = SAMPLES.decode(payload)
    except (msgspec.MsgspecError, RecursionError):
        return parse_loosely(payload, sets)  # which names the error, or can read it after all
    if not sweep.rows:
        return parse_loosely(payload, sets)
    return SweepRows(swept_set(sweep.set, sets), sweep.ts_ns, sweep.mono_ns, sweep.node, sweep.boot_id, sweep.rows)


@dataclass
class _SetRows:
    metric_set: MetricSet
    sweeps: list[SweepRows] = field(default_factory=list)
    tables: list[pa.Table] = field(default_factory=list)
    value_count: int = 0


class BatchBuilder:
    """Gathers rows by set; `check` refuses sets that contradict others, `refused` has the frames left out, and why."""

    def __init__(self, check: Callable[[MetricSet, Iterable[MetricSet]], None]) -> None:
        self.refused: list[str] = []
        self._check = check
        self._by_set: dict[int, _SetRows] = {}  # by identity: a reader gives all rows of a set the same object

    def add(self, frame: RowsFrame | SweepRows) -> None:
        """Add a frame's rows. Raises: MalformedError when its set contradicts another."""
        rows = self._by_set.get(id(frame.metric_set)) or self._admitted(frame.metric_set)
        if isinstance(frame, RowsFrame):
            rows.tables.append(_checked_table(frame.metric_set, frame.columns))
            return
        rows.sweeps.append(frame)
        rows.value_count += len(frame.rows) * len(frame.metric_set.columns)
        if rows.value_count > VALUES_AT_ONCE:
            self._build(rows)

    def tables(self) -> list[pa.Table]:
        """Return a table for every set."""
        for rows in self._by_set.values():
            self._build(rows)
        by_set: dict[MetricSet, list[pa.Table]] = {}
        for rows in self._by_set.values():
            by_set.setdefault(rows.metric_set, []).extend(rows.tables)
        return [pa.concat_tables(tables) for tables in by_set.values() if tables]

    def _admitted(self, metric_set: MetricSet) -> _SetRows:
        self._check(metric_set, [rows.metric_set for rows in self._by_set.values()])
        return self._by_set.setdefault(id(metric_set), _SetRows(metric_set))

    def _build(self, rows: _SetRows) -> None:
        if not rows.sweeps:
            return
        try:
            rows.tables.append(_sweeps_table(rows.metric_set, rows.sweeps))
        except MalformedError:  # find out which, and keep the others
            for sweep in rows.sweeps:
                try:
                    rows.tables.append(_sweeps_table(rows.metric_set, [sweep]))
                except ProjectError as error:
                    self.refused.append(str(error))
        rows.sweeps, rows.value_count = [], 0


def _sweeps_table(metric_set: MetricSet, sweeps: Sequence[SweepRows]) -> pa.Table:
    names = ["device", *(column.name for column in metric_set.columns if column.name not in SHARED)]
    rows = list(chain.from_iterable(sweep.rows for sweep in sweeps))
    lengths = set(map(len, rows)) - {len(names)}
    if lengths:
        raise MalformedError(f"samples of {metric_set.name}: {lengths.pop()} values in a row, expected {len(names)}")
    columns: dict[str, Sequence[Scalar]] = dict(zip(names, zip(*rows, strict=True), strict=True))
    for name in SHARED - {"device"}:
        columns[name] = list(chain.from_iterable([getattr(sweep, name)] * len(sweep.rows) for sweep in sweeps))
    return _checked_table(metric_set, columns)


def _checked_table(metric_set: MetricSet, columns: Mapping[str, Sequence[Scalar]]) -> pa.Table:
    """Return the table. Raises: MalformedError naming set and column when a value is not of the column's type."""
    dtypes = {column.name: column.dtype for column in metric_set.columns}
    for name, values in columns.items():
        kinds = set(map(type, values))
        foreign = kinds.difference(DTYPES[dtypes[name]], (type(None),)) if name in dtypes else ()
        if foreign:
            names = sorted(kind.__name__ for kind in foreign)
            raise MalformedError(
                f"rows of {metric_set.name}: column {name}: {names} among the values, expected {dtypes[name]}"
            )
        if float in kinds and not _are_finite(values):
            raise MalformedError(f"rows of {metric_set.name}: column {name}: expected finite numbers")
    return to_table(metric_set, columns)


def _are_finite(values: Sequence[Any]) -> bool:
    return all(map(isfinite, filter(None, values)))

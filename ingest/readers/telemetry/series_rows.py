"""Rows of a set, collected one by one into tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.metric import MetricSet, Scalar
from crosswind.ingest.reader.reader import Report

AT_ONCE = 50_000  # rows of a table
ROW_BYTES = 200
BYTES = 1 << 26  # of texts of a table, as a line's texts are in each of its rows


@dataclass
class CollectedRows:
    """Rows of one set in the order in which they come."""

    metric_set: MetricSet
    report: Report
    _columns: dict[str, list[Scalar]] = field(default_factory=dict)
    _bytes: int = 0

    def __post_init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._columns = {column.name: [] for column in self.metric_set.columns}
        self._bytes = 0

    def add(self, row: Mapping[str, Scalar]) -> Iterator[pa.Table]:
        """Take a row, and yield a table when there are enough."""
        return self.extend(row, {"ts_ns": [row["ts_ns"]]})

    def extend(
        self, same: Mapping[str, Scalar], varying: Mapping[str, Sequence[Scalar]], *, row_bytes: int = ROW_BYTES
    ) -> Iterator[pa.Table]:
        """Take rows that share some values and have one of each of the others; yield tables as `add` does.

        The texts of a row have at most `row_bytes`.
        """
        count = len(next(iter(varying.values())))
        if self._bytes + row_bytes * count <= BYTES and count <= AT_ONCE:  # nearly always
            yield from self._taken(same, varying, count, row_bytes)
            return
        at_once = max(1, min(AT_ONCE, BYTES // row_bytes))
        for start in range(0, count, at_once):
            portion = {name: values[start : start + at_once] for name, values in varying.items()}
            length = min(at_once, count - start)
            if self._bytes + row_bytes * length > BYTES:
                yield from self.rest()
            yield from self._taken(same, portion, length, row_bytes)

    def _taken(
        self, same: Mapping[str, Scalar], varying: Mapping[str, Sequence[Scalar]], count: int, row_bytes: int
    ) -> Iterator[pa.Table]:
        for name, values in self._columns.items():
            values.extend(varying[name] if name in varying else [same.get(name)] * count)
        self._bytes += row_bytes * count
        if len(self._columns["ts_ns"]) >= AT_ONCE:
            yield from self.rest()

    def rest(self) -> Iterator[pa.Table]:
        """Yield the rest of the rows."""
        if count := len(self._columns["ts_ns"]):
            table = to_table(self.metric_set, self._columns)
            self._begin()
            self.report.read += count
            yield table

"""Rows of a set, collected one by one and given as tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from crosswind.data.lake import to_table
from crosswind.data.metric import MetricSet, Scalar
from crosswind.ingest.readers.reader import Report

AT_ONCE = 50_000  # rows of a table


@dataclass
class CollectedRows:
    """Rows of one set in the order in which they come."""

    metric_set: MetricSet
    report: Report
    _columns: dict[str, list[Scalar]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._columns = {column.name: [] for column in self.metric_set.columns}

    def add(self, row: Mapping[str, Scalar]) -> Iterator[pa.Table]:
        """Takes in a row; gives a table when there are enough."""
        return self.extend(row, {"ts_ns": [row["ts_ns"]]})

    def extend(self, same: Mapping[str, Scalar], each: Mapping[str, Sequence[Scalar]]) -> Iterator[pa.Table]:
        """Takes in rows that have some values in common, and of the others one each; gives a table as `add` does."""
        count = len(next(iter(each.values())))
        for name, values in self._columns.items():
            values.extend(each[name] if name in each else [same.get(name)] * count)
        if len(self._columns["ts_ns"]) >= AT_ONCE:
            yield from self.rest()

    def rest(self) -> Iterator[pa.Table]:
        """The rows that are left."""
        if count := len(self._columns["ts_ns"]):
            table = to_table(self.metric_set, self._columns)
            self._begin()
            self.report.read += count
            yield table

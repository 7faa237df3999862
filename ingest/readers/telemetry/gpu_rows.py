"""Rows of the sets `gpu` and `series` from NVIDIA's tools: each GPU at one instant."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache

import pyarrow as pa

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.imported import SERIES, labels_text
from crosswind.data.schema.metric import MetricSet, Scalar, with_node_keys
from crosswind.ingest.collectors.nvml import GPU
from crosswind.ingest.reader.reader import Context, Report

GPU_ROWS = with_node_keys(GPU)
AT_ONCE = 20_000  # rows of a table
NUMBER = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,9})?")
MIB = 1 << 20
RANGES = {"int64": (-(2**63), 2**63), "uint64": (0, 2**64)}
RANGE_OF = {column.name: RANGES[column.dtype] for column in GPU.columns if column.dtype in RANGES}
NO_NODE = "no row names its node: --node does"


@dataclass(frozen=True)
class Place:
    """The column of the set `gpu` for a column of a tool: raw value = number in `unit` x factor."""

    column: str
    unit: str = ""
    factor: int = 1


@dataclass(frozen=True)
class OtherValue:
    """One number that is no column of the set `gpu`."""

    name: str
    value: float
    unit: str


@lru_cache(maxsize=10_000)  # clocks, temperatures and shares are few
def raw(place: Place, text: str) -> int:
    """Return the raw value of a number in a tool's unit. Raises: MalformedError if it is none, or too precise."""
    if not NUMBER.fullmatch(text):
        raise MalformedError(f"{text[:40]!r} is no number{place.unit and f' of {place.unit}'}")
    value = Decimal(text) * place.factor
    if value != int(value):
        raise MalformedError(f"{text[:40]!r} is finer than 1/{place.factor} {place.unit}".rstrip())
    least, end = RANGE_OF[place.column]
    if not least <= value < end:
        raise MalformedError(f"{text[:40]!r} is more than {place.column} can be")
    return int(value)


@dataclass
class _Sparse:
    """Rows of one set, as columns that end with their last value."""

    metric_set: MetricSet
    count: int = 0
    columns: dict[str, list[Scalar]] = field(default_factory=dict)

    def add(self, row: Mapping[str, Scalar]) -> None:
        """Take a row."""
        for name, value in row.items():
            values = self.columns.setdefault(name, [])
            if len(values) < self.count:
                values.extend([None] * (self.count - len(values)))
            values.append(value)
        self.count += 1

    def table(self) -> pa.Table:
        """Return the rows, and forget them."""
        full = {name: values + [None] * (self.count - len(values)) for name, values in self.columns.items()}
        self.count, self.columns = 0, {}
        return to_table(self.metric_set, full)


@dataclass
class GpuRows:
    """Collects rows in the order of the file, and yields them as tables."""

    report: Report
    context: Context
    tool: str
    _gpu: _Sparse = field(default_factory=lambda: _Sparse(GPU_ROWS))
    _series: _Sparse = field(default_factory=lambda: _Sparse(SERIES))

    def __post_init__(self) -> None:
        self._labels = labels_text({"tool": self.tool})

    def add(self, ts_ns: int, device: str, cells: Mapping[str, Scalar], others: list[OtherValue]) -> Iterator[pa.Table]:
        """Take one GPU at one instant, and yield tables when there are enough rows."""
        identity: dict[str, Scalar] = {"ts_ns": ts_ns, "node": self.context.node or None, "device": device}
        if cells:
            self._gpu.add({**identity, **cells})
        for metric in others:
            facts: dict[str, Scalar] = {"name": metric.name, "value": metric.value, "unit": metric.unit or None}
            self._series.add({**identity, "labels": self._labels, **facts})
        if max(self._gpu.count, self._series.count) >= AT_ONCE:
            yield from self.rest()

    def rest(self) -> Iterator[pa.Table]:
        """Yield the rest of the rows."""
        for rows in (self._gpu, self._series):
            if rows.count:
                self.report.read += rows.count
                yield rows.table()

    def note(self) -> None:
        """Note what the rows lack."""
        if self.report.read and not self.context.node:
            self.report.notes.append(NO_NODE)

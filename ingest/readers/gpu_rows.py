"""Rows of the sets `gpu` and `series` from what NVIDIA's tools print of each GPU at one instant."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa

from crosswind.data.errors import MalformedError
from crosswind.data.imported import SERIES, labels_text
from crosswind.data.lake import to_table
from crosswind.data.metric import MetricSet, Scalar
from crosswind.ingest.collectors.nvml import GPU
from crosswind.ingest.readers.reader import Context, Report
from crosswind.ingest.sweep import with_node_keys

GPU_ROWS = with_node_keys(GPU)
AT_ONCE = 20_000  # rows of a table
NUMBER = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,9})?")
MIB = 1 << 20
RANGES = {"int64": (-(2**63), 2**63), "uint64": (0, 2**64)}
NO_NODE = "no row names its node: --node does"


@dataclass(frozen=True)
class Place:
    """The column of the set `gpu` that a column of a tool is: raw value = number told in `unit` x factor."""

    column: str
    unit: str = ""
    factor: int = 1


@dataclass(frozen=True)
class Told:
    """One number that no column of the set `gpu` is known to be."""

    name: str
    value: float
    unit: str


def raw(place: Place, text: str) -> int:
    """The raw value of a number as told. Raises: MalformedError when it is none, or finer than the column."""
    if not NUMBER.fullmatch(text):
        raise MalformedError(f"{text[:40]!r} is no number{place.unit and f' of {place.unit}'}")
    value = Decimal(text) * place.factor
    if value != int(value):
        raise MalformedError(f"{text[:40]!r} is finer than 1/{place.factor} {place.unit}".rstrip())
    least, end = RANGES[GPU[place.column].dtype]
    if not least <= value < end:
        raise MalformedError(f"{text[:40]!r} is more than {place.column} can be")
    return int(value)


@dataclass
class GpuRows:
    """Collects rows in the order of the file, and gives them as tables."""

    report: Report
    context: Context
    tool: str
    _gpu: dict[str, list[Scalar]] = field(default_factory=dict)
    _series: dict[str, list[Scalar]] = field(default_factory=dict)

    def add(self, ts_ns: int, device: str, cells: Mapping[str, Scalar], others: list[Told]) -> Iterator[pa.Table]:
        """Takes in one GPU at one instant; gives tables when there are enough rows."""
        node = self.context.node or None
        if cells:
            _append(self._gpu, GPU_ROWS, {"ts_ns": ts_ns, "node": node, "device": device, **cells})
        labels = labels_text({"tool": self.tool})
        for told in others:
            facts: dict[str, Scalar] = {
                "name": told.name,
                "labels": labels,
                "value": told.value,
                "unit": told.unit or None,
            }
            _append(self._series, SERIES, {"ts_ns": ts_ns, "node": node, "device": device, **facts})
        if max(len(each.get("ts_ns", ())) for each in (self._gpu, self._series)) >= AT_ONCE:
            yield from self.rest()

    def rest(self) -> Iterator[pa.Table]:
        """The rows that are left."""
        for metric_set, columns in ((GPU_ROWS, self._gpu), (SERIES, self._series)):
            if columns:
                table = to_table(metric_set, columns)
                self.report.read += len(table)
                columns.clear()
                yield table

    def note(self) -> None:
        """Says what the rows lack."""
        if self.report.read and not self.context.node:
            self.report.notes.append(NO_NODE)


def _append(columns: dict[str, list[Scalar]], metric_set: MetricSet, row: Mapping[str, Scalar]) -> None:
    if not columns:
        columns.update({column.name: [] for column in metric_set.columns})
    for name, values in columns.items():
        values.append(row.get(name))

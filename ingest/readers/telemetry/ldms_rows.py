"""Rows of an LDMS store as tables of the sets that its columns belong to."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crosswind.data.lake.lake import ARROW_TYPES, arrow_schema
from crosswind.data.schema.metric import MetricSet
from crosswind.ingest.readers.telemetry.csv_columns import Rows
from crosswind.ingest.readers.telemetry.ldms_sets import TEXTS, Layout, Share


@dataclass(frozen=True)
class TimedRows:
    """Rows whose time and node are known; `good` are their numbers if they are not all."""

    layout: Layout
    rows: Rows
    times: Any  # ns since 1970
    nodes: pa.Array
    good: pa.Array | None

    def of_ours(self, shares: Sequence[Share]) -> pa.Table:
        """Return the table of a set of ours: line by line, the devices of each line in the order of the shares."""
        metric_set, count = shares[0].metric_set, len(shares)
        turns = np.arange(self._length * count).reshape(count, self._length).T.ravel() if count > 1 else None
        columns: dict[str, pa.Array] = {
            "ts_ns": _in_turn([self._kept(pa.array(self.times))] * count, turns),
            "node": _in_turn([self._kept(self.nodes)] * count, turns),
            "device": _in_turn([self._device(share) for share in shares], turns),
        }
        for name in dict.fromkeys(name for share in shares for name in share.places):
            columns[name] = _in_turn([self._cells(metric_set, name, share) for share in shares], turns)
        table = _table(metric_set, columns, self._length * count)
        conditions = [share.nothing_if_zero for share in shares]
        if not any(conditions):
            return table
        return table.filter(_in_turn([self._is_something(places) for places in conditions], turns))

    def of_its_own(self, metric_set: MetricSet, names: Mapping[str, str]) -> pa.Table:
        """Return the table of a set of the schema's own columns, by their names in the file."""
        places = self.layout.rest
        entry = self.layout.entry
        device = pa.array([""] * self._length) if entry is None else _as_text(self._column(entry))
        columns = {
            "ts_ns": self._kept(pa.array(self.times)),
            "node": self._kept(self.nodes),
            "device": device,
            TEXTS.name: self._texts(),
        }
        columns |= {column: self._column(places[name]) for column, name in names.items() if name in places}
        return _table(metric_set, columns, self._length)

    @property
    def _length(self) -> int:
        return self.rows.length if self.good is None else len(self.good)

    def _kept(self, values: pa.Array) -> pa.Array:
        return values if self.good is None else values.take(self.good)

    def _column(self, place: int) -> pa.Array:
        return self._kept(self.rows.columns[place])

    def _cells(self, metric_set: MetricSet, name: str, share: Share) -> pa.Array:
        if name in share.places:
            return self._column(share.places[name])
        return pa.nulls(self._length, ARROW_TYPES[metric_set[name].dtype])

    def _device(self, share: Share) -> pa.Array:
        if share.device_place is None:
            return pa.repeat(share.device, self._length)
        return pc.utf8_slice_codeunits(pc.utf8_trim_whitespace(self._column(share.device_place)), 0, 200)

    def _is_something(self, places: tuple[int, ...]) -> pa.Array:
        """Return a mask of the lines about this device."""
        if not places:
            return pa.repeat(pa.scalar(True), self._length)
        zero = [
            pc.fill_null(pc.equal(self._column(place), 0), False).to_numpy(zero_copy_only=False) for place in places
        ]
        return pa.array(~np.logical_and.reduce(zero))

    def _texts(self) -> pa.Array:
        """Return the cells of each line that could not be stored unchanged, as JSON."""
        used = {
            *self.layout.rest.values(),
            *(place for share in self.layout.shares for place in share.places.values()),
        }
        odd = {place: self._kept(texts) for place, texts in self.rows.odd.items() if place in used}
        cells: dict[int, dict[str, str]] = {}
        for place, texts in odd.items():
            for line in np.flatnonzero(texts.is_valid()):
                cells.setdefault(int(line), {})[self.layout.header.names[place]] = texts[int(line)].as_py()
        lines = [json.dumps(cells[line], ensure_ascii=False) if line in cells else None for line in range(self._length)]
        return pa.array(lines, pa.string()) if cells else pa.nulls(self._length, pa.string())


def _in_turn(arrays: Sequence[pa.Array], turns: Any) -> pa.Array:
    return arrays[0] if turns is None else pa.concat_arrays(arrays).take(pa.array(turns))


def _as_text(values: pa.Array) -> pa.Array:
    return pc.fill_null(values.cast(pa.int64(), safe=False).cast(pa.string()), "")


def _table(metric_set: MetricSet, columns: Mapping[str, pa.Array], length: int) -> pa.Table:
    schema = arrow_schema(metric_set)
    arrays = [columns[field.name] if field.name in columns else pa.nulls(length, field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)

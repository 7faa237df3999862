"""Landings: of which runs rows are that are stored, or of which nodes and when."""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from crosswind.data.schema.landing import Landing


def landings_of(tables: Iterable[pa.Table]) -> list[Landing]:
    """Return a landing of each table that has rows of runs or nodes."""
    return [landing for table in tables if len(table) and (landing := _landing(table))]


def _landing(table: pa.Table) -> Landing | None:
    ends = pc.min_max(table["ts_ns"]).as_py()
    for column, name in (("run_id", "run_ids"), ("node", "nodes")):
        if column in table.column_names:
            values = frozenset(value for value in pc.unique(table[column]).to_pylist() if value is not None)
            return Landing(ends["min"], ends["max"], **{name: values})
    return None

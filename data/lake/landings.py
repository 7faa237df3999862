"""Landings: of which runs rows are that are stored, or of which nodes and when."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from crosswind.data.schema.landing import Landing


def landings_of(tables: Iterable[pa.Table]) -> list[Landing]:
    """Return a landing of the tables with rows of runs, and one of those with rows of nodes."""
    landings = [landing for table in tables if len(table) and (landing := _landing(table))]
    kinds = [landing for landing in landings if landing.run_ids], [landing for landing in landings if landing.nodes]
    return [_together(kind) for kind in kinds if kind]


def _landing(table: pa.Table) -> Landing | None:
    ends = pc.min_max(table["ts_ns"]).as_py()
    for column, name in (("run_id", "run_ids"), ("node", "nodes")):
        if column in table.column_names:
            values = frozenset(value for value in pc.unique(table[column]).to_pylist() if value is not None)
            return Landing(ends["min"], ends["max"], **{name: values})
    return None


def _together(landings: Sequence[Landing]) -> Landing:
    run_ids: frozenset[str] = frozenset()
    first, last = min(landing.first_ns for landing in landings), max(landing.last_ns for landing in landings)
    nodes = run_ids.union(*(landing.nodes for landing in landings))
    return Landing(first, last, run_ids.union(*(landing.run_ids for landing in landings)), nodes)

"""Landings: of which runs rows are that are stored, or of which nodes and when."""

from collections.abc import Collection, Iterable

import pyarrow as pa
import pyarrow.compute as pc

from crosswind.data.schema.landing import Landing


def landings_of(tables: Iterable[pa.Table]) -> list[Landing]:
    """Return a landing of the tables whose rows are of the same runs, and of those of the same nodes."""
    alike: dict[tuple[frozenset[str], frozenset[str]], list[Landing]] = {}
    for table in tables:
        if len(table) and (landing := _landing(table)):
            alike.setdefault((landing.run_ids, landing.nodes), []).append(landing)
    return [together(landings) for landings in alike.values()]


def together(landings: Collection[Landing]) -> Landing:
    """Return a landing that covers all of these."""
    first, last = min(landing.first_ns for landing in landings), max(landing.last_ns for landing in landings)
    run_ids = frozenset[str]().union(*(landing.run_ids for landing in landings))
    return Landing(first, last, run_ids, frozenset[str]().union(*(landing.nodes for landing in landings)))


def _landing(table: pa.Table) -> Landing | None:
    ends = pc.min_max(table["ts_ns"]).as_py()
    for column, name in (("run_id", "run_ids"), ("node", "nodes")):
        if column in table.column_names:
            values = frozenset(value for value in pc.unique(table[column]).to_pylist() if value is not None)
            return Landing(ends["min"], ends["max"], **{name: values})
    return None

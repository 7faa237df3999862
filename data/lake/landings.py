"""Landings: of which runs rows are that are stored, or of which nodes and when."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

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
    nothing: frozenset[str] = frozenset()
    steps: dict[str, int] = {}
    for run_id, step in (pair for landing in landings for pair in landing.steps.items()):
        steps[run_id] = max(step, steps.get(run_id, step))
    return Landing(
        first_ns=min(landing.first_ns for landing in landings),
        last_ns=max(landing.last_ns for landing in landings),
        run_ids=nothing.union(*(landing.run_ids for landing in landings)),
        nodes=nothing.union(*(landing.nodes for landing in landings)),
        steps=steps,
        checks=nothing.union(*(landing.checks for landing in landings)),
        system=next((landing.system for landing in landings if landing.system), None),
    )


def _landing(table: pa.Table) -> Landing | None:
    ends = pc.min_max(table["ts_ns"]).as_py()
    if "run_id" in table.column_names:
        run_ids = _distinct(table["run_id"])
        return Landing(ends["min"], ends["max"], run_ids=run_ids, steps=_steps(table, run_ids))
    if "node" not in table.column_names:
        return None
    landing = Landing(ends["min"], ends["max"], nodes=_distinct(table["node"]))
    if "check_id" not in table.column_names:
        return landing
    return replace(landing, checks=_distinct(table["check_id"]), system=table["system"][0].as_py())


def _distinct(column: pa.ChunkedArray) -> frozenset[str]:
    return frozenset(value for value in pc.unique(column).to_pylist() if value is not None)


def _steps(table: pa.Table, run_ids: frozenset[str]) -> Mapping[str, int]:
    """Return by run the highest step of rows, where they are of steps."""
    if "step" not in table.column_names:
        return {}
    if len(run_ids) == 1:
        newest = pc.max(table["step"]).as_py()
        return {} if newest is None else dict.fromkeys(run_ids, newest)
    by_run = table.group_by("run_id").aggregate([("step", "max")]).to_pydict()
    pairs = zip(by_run["run_id"], by_run["step_max"], strict=True)
    return {run_id: step for run_id, step in pairs if run_id is not None and step is not None}

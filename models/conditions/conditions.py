"""Conditions of a run, all known strictly before it began."""

import time
from collections.abc import Sequence

import pandas as pd

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.lake.parts import ALWAYS
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.features import EVERY_RUN, all_runs, summaries
from crosswind.data.store.store import Store
from crosswind.models.conditions.moment import Moment, places_of, starts_of
from crosswind.models.conditions.neighbours import COLUMNS as NEIGHBOURS
from crosswind.models.conditions.neighbours import LONGEST_NS, neighbours
from crosswind.models.conditions.node_history import COLUMNS as NODE_HISTORY
from crosswind.models.conditions.node_history import history_before, node_history
from crosswind.models.conditions.sampled import NAMES as SAMPLED
from crosswind.models.conditions.sampled import sampled

PREFIX = "condition."
NAMES = tuple(f"{PREFIX}{name}" for name in (*SAMPLED, *NEIGHBOURS, *NODE_HISTORY))
LIVE_RUNS = 2000  # the newest of a system; older ones say little about now


def conditions_at_start(store: Store, runs: Sequence[Run], *, names: Sequence[str] = NAMES) -> pd.DataFrame:
    """One row a run in the order given: columns `condition.<name>`, numbers known before it began, NaN where unknown.

    Samples count from 30 s before a run to just before it; docs/models/conditions.md names every condition. Only what
    `names` need is read. Raises: InvalidInputError for a run without a start, an unknown name.
    """
    return conditions_before(store, starts_of(runs), names=names)


def conditions_before(store: Store, moments: Sequence[Moment], *, names: Sequence[str] = NAMES) -> pd.DataFrame:
    """Return the same for moments, one row each. Raises: InvalidInputError for an unknown name."""
    return _conditions(store, moments, names, EVERY_RUN)


def conditions_now(
    store: Store, nodes: Sequence[str], *, system: str | None = None, at_ns: int | None = None
) -> pd.DataFrame:
    """The conditions of a run that would begin now, or at `at_ns`, on these nodes: one row as `conditions_at_start`.

    Without a system it is that of the newest run on one of the nodes. Raises: InvalidInputError without nodes.
    """
    if not nodes:
        raise InvalidInputError("nodes is empty, expected the nodes that the run will begin on")
    when = time.time_ns() if at_ns is None else at_ns
    where = _system_of(store, nodes) if system is None else system
    return _conditions(store, [Moment(when, tuple(nodes), where)], NAMES, LIVE_RUNS)


def _conditions(store: Store, moments: Sequence[Moment], names: Sequence[str], limit: int) -> pd.DataFrame:
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise InvalidInputError(f"condition {unknown[0]!r}: expected one of {', '.join(NAMES)}")
    wanted = {name.removeprefix(PREFIX) for name in names}
    parts = [sampled(store.lake, places_of(moments), len(moments), names=wanted & set(SAMPLED))]
    systems = sorted({moment.system for moment in moments}) if wanted - set(SAMPLED) else []
    since_ns = None if wanted & set(NODE_HISTORY) else _since_ns(moments)
    runs = [
        run for system in systems for run in all_runs(store, RunFilter(system=system, since_ns=since_ns), limit=limit)
    ]
    if wanted & set(NEIGHBOURS):
        parts.append(neighbours(runs, moments))
    if wanted & set(NODE_HISTORY):
        parts.append(history_before(node_history(_ended(store, runs)), moments))
    return pd.concat(parts, axis=1).add_prefix(PREFIX)[list(names)]


def _since_ns(moments: Sequence[Moment]) -> int:
    return min((moment.at_ns for moment in moments), default=0) - 2 * LONGEST_NS  # ended a week ago, after a week


def _ended(store: Store, runs: Sequence[Run]) -> pd.DataFrame:
    well = [run for run in runs if run.state is RunState.COMPLETED and (run.seconds or 0.0) > 0]
    table = summaries(store, well)
    nodes = pd.Series([run.nodes for run in well], dtype=object)
    return table.assign(nodes=nodes, ended_ns=pd.Series([run.ended_ns for run in well], dtype="Int64"))


def _system_of(store: Store, nodes: Sequence[str]) -> str:
    with store.catalog.read() as session:
        newest = session.runs.on_nodes(nodes, ALWAYS, looked_at=LIVE_RUNS, limit=1)
    return newest[0].system if newest else ""

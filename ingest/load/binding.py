"""Bounds of what is stored for the holder of a bound token: own runs and rows, never another user's or job's."""

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from crosswind.data.catalog.catalog import Session
from crosswind.data.lake.lake import set_of
from crosswind.data.schema.access import RowRule
from crosswind.data.schema.checks import PREFLIGHT
from crosswind.data.schema.errors import ForbiddenError
from crosswind.data.schema.occupancy import Allocation, Placement
from crosswind.data.schema.run import Run

SHOWN = 3  # nodes that a refusal names


def own_runs(rule: RowRule, runs: Iterable[Run]) -> list[Run]:
    """Return the runs as their sender's. Raises: ForbiddenError for one that says it is another user's or job's."""
    return [_own(rule, run) for run in runs]


def _own(rule: RowRule, run: Run) -> Run:
    if rule.jobs and (run.system, run.job_id) not in rule.jobs:
        jobs = ", ".join(f"{system} {job}" for system, job in sorted(rule.jobs))
        raise ForbiddenError(f"run {run.run_id}: it is of job {run.system} {run.job_id}, and this token is of {jobs}")
    if rule.user is not None and run.user not in (None, rule.user):
        raise ForbiddenError(f"run {run.run_id}: its user is {run.user!r}, and this token is of {rule.user!r}")
    if rule.accounts and run.account not in (None, *rule.accounts):
        raise ForbiddenError(
            f"run {run.run_id}: its account is {run.account!r}, and this token is of {', '.join(sorted(rule.accounts))}"
        )
    return replace(run, user=rule.user or run.user, account=run.account or rule.account)


def check_run_ids(session: Session, run_ids: Iterable[str]) -> None:
    """Check that none of these runs is stored as another's. Raises: ForbiddenError."""
    others = session.runs.of_others(set(run_ids))
    if others:
        raise ForbiddenError(f"run {min(others)}: it is another user's or job's")


def check_nodes(
    session: Session, rule: RowRule, tables: Iterable[pa.Table], places: Iterable[Allocation | Placement]
) -> None:
    """Check that samples are of the token's node, or of nodes of its job as far as they are stored.

    What runs and checks store of themselves is not of a node alone. Raises: ForbiddenError.
    """
    allowed = rule.nodes or {
        name
        for system, job_id in rule.jobs
        for place in session.places.allocations(job_id, system=system)
        for name in (place.node, place.sampled_as)
    }
    named = {node for table in tables if _is_of_nodes(table) for node in pc.unique(table["node"]).to_pylist()}
    if rule.nodes:
        named |= {place.sampled_as for place in places if isinstance(place, Allocation)}
    if allowed and (others := {node for node in named if node is not None} - allowed):
        expected = ", ".join(sorted(allowed)[:SHOWN])
        raise ForbiddenError(f"node {min(others):.80}: this token may store samples of {expected:.200}")


def _is_of_nodes(table: pa.Table) -> bool:
    columns = table.column_names
    return "node" in columns and "run_id" not in columns and set_of(table.schema).name != PREFLIGHT.name


def check_places(rule: RowRule, places: Iterable[Allocation | Placement]) -> None:
    """Check that allocations and placements are of the token's job, if it is of one. Raises: ForbiddenError."""
    for place in places:
        is_of_job = (place.system, place.job_id) in rule.jobs
        if isinstance(place, Allocation) and not is_of_job:
            raise ForbiddenError(f"job {place.job_id}: allocations are what node agents report")
        if rule.jobs and place.job_id is not None and not is_of_job:
            raise ForbiddenError(f"job {place.job_id}: this token is of another job")

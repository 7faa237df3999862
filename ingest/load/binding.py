"""Bounds of what is stored for the holder of a bound token: own runs and rows, never another user's or job's."""

from collections.abc import Iterable
from dataclasses import replace

from crosswind.data.catalog.catalog import Session
from crosswind.data.schema.access import RowRule
from crosswind.data.schema.errors import ForbiddenError
from crosswind.data.schema.occupancy import Allocation, Placement
from crosswind.data.schema.run import Run


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


def check_places(rule: RowRule, places: Iterable[Allocation | Placement]) -> None:
    """Check that allocations and placements are of the token's job, if it is of one. Raises: ForbiddenError."""
    for place in places:
        is_of_job = (place.system, place.job_id) in rule.jobs
        if isinstance(place, Allocation) and not is_of_job:
            raise ForbiddenError(f"job {place.job_id}: allocations are what node agents report")
        if rule.jobs and place.job_id is not None and not is_of_job:
            raise ForbiddenError(f"job {place.job_id}: this token is of another job")

"""Stragglers among peers over many runs and in one run, and changes in the pace of whole workloads."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from crosswind.api.delivery.validators import UNLESS_RUN_IS_UNCHANGED
from crosswind.api.dependencies import ClientOf
from crosswind.api.routes.counters import RunsQuery
from crosswind.api.wire import Id, Name, refuse_unknown_query
from crosswind.data.schema.answers.stragglers import PeerRanking, Regressions, RunReplay, RunStragglers
from crosswind.data.schema.question import RANKED_RUNS, REGRESSION_RUNS
from crosswind.data.store.features import EVERY_RUN

router = APIRouter(prefix="/v1", tags=["stragglers"], dependencies=[Depends(refuse_unknown_query)])
LIMIT = 50


class StragglersQuery(BaseModel):
    """Of which system and workload (null: of all), from how many of the newest runs, and how many rows to return."""

    system: Name | None = None
    workload: Name | None = None
    runs: Annotated[int, Field(ge=1, le=EVERY_RUN)] = RANKED_RUNS
    limit: Annotated[int, Field(ge=1, le=10_000)] = LIMIT


class RegressionsQuery(RunsQuery):
    """Of which system and workload (null: of all), from how many of the newest completed runs since when."""

    runs: Annotated[int, Field(ge=1, le=EVERY_RUN)] = REGRESSION_RUNS


@router.get("/stragglers")
def get_stragglers(query: Annotated[StragglersQuery, Query()], client: ClientOf) -> PeerRanking:
    """Rank places, devices and nodes slower than their peers over all runs; stores nothing."""
    return client.stragglers(query.system, query.workload, runs=query.runs, limit=query.limit)


@router.get("/runs/{run_id}/stragglers", dependencies=[UNLESS_RUN_IS_UNCHANGED])
def get_run_stragglers(run_id: Id, client: ClientOf) -> RunStragglers:
    """Return the ranks that one run waited for, when and in which phase, from its steps so far."""
    return client.run_stragglers(run_id)


@router.get("/runs/{run_id}/replay", dependencies=[UNLESS_RUN_IS_UNCHANGED])
def get_run_replay(run_id: Id, client: ClientOf) -> RunReplay:
    """Return a run's slowdown over itself with equal ranks, and which ranks and pipeline stages make it."""
    return client.replay(run_id)


@router.get("/regressions")
def get_regressions(query: Annotated[RegressionsQuery, Query()], client: ClientOf) -> Regressions:
    """Return when workloads became slower or faster for good, and what changed with that; stores nothing."""
    return client.regressions(query.system, query.workload, runs=query.runs, since_ns=query.since_ns)

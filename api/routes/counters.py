"""Counters that go with slow runs."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel

from crosswind.api.dependencies import ClientOf
from crosswind.api.wire import Name, refuse_unknown_query
from crosswind.data.schema.answers.effects import CounterRanking

router = APIRouter(prefix="/v1/counters", tags=["explain"], dependencies=[Depends(refuse_unknown_query)])


class RunsQuery(BaseModel):
    """Of which workload (null: of all, each run compared with its own cohort) and system (null: that of most runs)."""

    workload: Name | None = None
    system: Name | None = None


@router.get("")
def get_counters(query: Annotated[RunsQuery, Query()], client: ClientOf) -> CounterRanking:
    """The counters of the nodes ranked by how surely they go with the excess of runs; stores nothing."""
    return client.counters(query.workload, query.system)

"""Neighbours that go with slow runs; users by pseudonym."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from crosswind.api.dependencies import ClientOf
from crosswind.api.routes.counters import RunsQuery
from crosswind.api.wire import refuse_unknown_query
from crosswind.data.schema.answers.effects import Interference

router = APIRouter(prefix="/v1/interference", tags=["explain"], dependencies=[Depends(refuse_unknown_query)])


@router.get("")
def get_interference(query: Annotated[RunsQuery, Query()], client: ClientOf) -> Interference:
    """Users, workloads and jobs ranked by how surely runs next to them are slower; stores nothing."""
    return client.interference(query.workload, query.system, since_ns=query.since_ns)

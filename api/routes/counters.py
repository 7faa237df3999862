"""Counters that go with slow runs."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel

from crosswind.api.dependencies import ClientOf
from crosswind.api.tables.times import Moment, moment_ns
from crosswind.api.wire import Name, refuse_unknown_query
from crosswind.data.schema.answers.effects import CounterRanking

router = APIRouter(prefix="/v1/counters", tags=["explain"], dependencies=[Depends(refuse_unknown_query)])


class RunsQuery(BaseModel):
    """Of which workload (null: of all, each run compared with its own cohort) and system (null: that of most runs).

    Of runs that began at `since` or later.
    """

    workload: Name | None = None
    system: Name | None = None
    since: Moment = None

    @property
    def since_ns(self) -> int | None:
        """Return `since` in ns UTC. Raises: InvalidInputError."""
        return moment_ns("since", self.since)


@router.get("")
def get_counters(query: Annotated[RunsQuery, Query()], client: ClientOf) -> CounterRanking:
    """The counters of the nodes ranked by how surely they go with the excess of runs; stores nothing."""
    return client.counters(query.workload, query.system, since_ns=query.since_ns)

"""One node: now, and over a time."""

import time
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from crosswind.api.dependencies import ClientOf
from crosswind.api.wire import Id, Name, refuse_unknown_query
from crosswind.data.schema.answers.nodes import NodeHistory, NodeReport
from crosswind.data.schema.moment import moment_ns
from crosswind.data.schema.node_question import LISTED, LISTED_MAX, HistoryQuestion

router = APIRouter(prefix="/v1/nodes", tags=["nodes"], dependencies=[Depends(refuse_unknown_query)])


class HistoryQuery(BaseModel):
    """The time that is wanted: RFC 3339, a date, now or -7d; without, the last week."""

    model_config = ConfigDict(populate_by_name=True)

    from_: Annotated[Name | None, Field(alias="from")] = None
    to: Name | None = None
    limit: Annotated[int, Field(ge=1, le=LISTED_MAX, description="at most so many jobs, runs and gaps each")] = LISTED


@router.get("/{node}")
def get_node(node: Id, client: ClientOf) -> NodeReport:
    """Return one node as it is now: its agent's state, and the jobs and runs on it."""
    return client.fleet.node(node)


@router.get("/{node}/history")
def get_node_history(node: Id, query: Annotated[HistoryQuery, Query()], client: ClientOf) -> NodeHistory:
    """Return a node's jobs, runs, checks, place among stragglers, gaps in its samples, and its agent's state."""
    now_ns = time.time_ns()
    from_ns = None if query.from_ is None else moment_ns(query.from_, now_ns, field="from")
    to_ns = None if query.to is None else moment_ns(query.to, now_ns, field="to")
    return client.fleet.node_history(node, HistoryQuestion(from_ns, to_ns, query.limit))

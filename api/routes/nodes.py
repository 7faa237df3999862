"""Nodes and the state of their agents."""

import time
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field

from crosswind.api.dependencies import StoreOf
from crosswind.api.paging import ListQuery, Page, cursor_of, next_url, place_of
from crosswind.api.wire import refuse_unknown_query
from crosswind.data.schema.answers.nodes import NodeState

router = APIRouter(prefix="/v1/nodes", tags=["nodes"], dependencies=[Depends(refuse_unknown_query)])
MOST_SECONDS = 2**32  # since before 1970, which is everything


class NodePage(Page):
    """Part of the list of nodes, by name, because the time of the last sweep changes meanwhile."""

    nodes: list[NodeState]


class NodeQuery(ListQuery):
    """The nodes to list."""

    since_seconds: Annotated[int, Field(ge=1, le=MOST_SECONDS, description="how far to look back")] = 3600


@router.get("")
def list_nodes(query: Annotated[NodeQuery, Query()], request: Request, store: StoreOf) -> NodePage:
    """Nodes with samples of the last hour, or of `since_seconds`, by name."""
    from crosswind.data.store.fleet import fleet  # noqa: PLC0415 - heavy

    [after] = place_of(query.cursor, str) or [""]
    states = fleet(store, max(0, time.time_ns() - query.since_seconds * 1_000_000_000), after=after, limit=query.limit)
    cursor = cursor_of(states[-1].node) if len(states) == query.limit else None
    return NodePage(nodes=list(states), next=cursor, next_url=next_url(request, cursor))

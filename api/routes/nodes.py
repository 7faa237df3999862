"""Nodes whose samples arrive."""

import time
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field

from crosswind.api.stored import StoreOf
from crosswind.api.wire import Page, Part, cursor_of, next_url, place_of, refuse_unknown_query
from crosswind.data.schema.answers.nodes import NodeState
from crosswind.data.store.fleet import fleet

router = APIRouter(prefix="/v1/nodes", tags=["nodes"], dependencies=[Depends(refuse_unknown_query)])
WEEK_SECONDS = 7 * 86_400


class NodePage(Page):
    """Part of the list of nodes, by name: the time of the last sweep changes while pages are turned."""

    nodes: list[NodeState]


class NodeQuery(Part):
    """The nodes that are asked for."""

    since_seconds: Annotated[int, Field(ge=1, le=WEEK_SECONDS, description="how far to look back")] = 3600


@router.get("")
def list_nodes(asked: Annotated[NodeQuery, Query()], request: Request, store: StoreOf) -> NodePage:
    """Nodes with samples of the last hour, or as far back as asked, by name."""
    [after] = place_of(asked.cursor, str) or [""]
    states = fleet(store, time.time_ns() - asked.since_seconds * 1_000_000_000, after=after, limit=asked.limit)
    cursor = cursor_of(states[-1].node) if len(states) == asked.limit else None
    return NodePage(nodes=list(states), next=cursor, next_url=next_url(request, cursor))

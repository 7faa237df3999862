"""Nodes and the state of their agents."""

import time
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field

from crosswind.api.dependencies import StoreOf
from crosswind.api.paging import ListQuery, Page
from crosswind.api.tables.listing import Listing
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


NODES = Listing(NodePage, "nodes", ("node",), ("node",))


@router.get("", **NODES.route)
def list_nodes(query: Annotated[NodeQuery, Query()], request: Request, store: StoreOf) -> Response:
    """Nodes with samples of the last hour, or of `since_seconds`, by name."""
    from crosswind.data.store.fleet import fleet  # noqa: PLC0415 - heavy

    asked = NODES.asked(query, request)
    since_ns = max(0, time.time_ns() - query.since_seconds * 1_000_000_000)
    return asked.answer(fleet(store, since_ns, asked.part))

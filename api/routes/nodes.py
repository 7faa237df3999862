"""Nodes whose samples arrive."""

import time
from typing import Annotated, Self

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field

from crosswind.api.stored import StoreOf
from crosswind.api.wire import Page, Part, View, cursor_of, next_url, place_of, refuse_unknown_query, rfc3339
from crosswind.data.store.fleet import NodeState, fleet

router = APIRouter(prefix="/v1/nodes", tags=["nodes"], dependencies=[Depends(refuse_unknown_query)])
WEEK_SECONDS = 7 * 86_400


class DownSourceView(View):
    """A source that could not be read when it was last looked at, and why."""

    name: str
    reason: str | None


class NodeView(View):
    """A node's state, as its agent reported it in the time asked for; `cpu_ratio` is the share of one core."""

    node: str
    last_sweep_at: str | None
    last_sweep_ns: int
    sweeps: int
    sources_up: tuple[str, ...]
    sources_down: tuple[DownSourceView, ...]
    missed_ticks: int | None
    lost_sweeps: int | None
    lateness_p99_seconds: float | None
    cpu_ratio: float | None
    resident_bytes: int | None
    clock_error_seconds: float | None
    clock_synchronized: bool | None

    @classmethod
    def of(cls, state: NodeState) -> Self:
        """The node as it looks on the wire."""
        return cls.model_validate({**vars(state), "last_sweep_at": rfc3339(state.last_sweep_ns)})


class NodePage(Page):
    """Part of the list of nodes, by name: the time of the last sweep changes while pages are turned."""

    nodes: list[NodeView]


class NodeQuery(Part):
    """The nodes that are asked for."""

    since_seconds: Annotated[int, Field(ge=1, le=WEEK_SECONDS, description="how far to look back")] = 3600


@router.get("")
def list_nodes(asked: Annotated[NodeQuery, Query()], request: Request, store: StoreOf) -> NodePage:
    """Nodes with samples of the last hour, or as far back as asked, by name."""
    [after] = place_of(asked.cursor, str) or [""]
    states = fleet(store, time.time_ns() - asked.since_seconds * 1_000_000_000, after=after, limit=asked.limit)
    cursor = cursor_of(states[-1].node) if len(states) == asked.limit else None
    return NodePage(nodes=[NodeView.of(state) for state in states], next=cursor, next_url=next_url(request, cursor))

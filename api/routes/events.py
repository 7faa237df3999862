"""Events: new runs, their progress, ends and verdicts, trials of studies; as a list or as a stream."""

from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from crosswind.api.dependencies import CallerOf, StoreOf
from crosswind.api.live.event_stream import MEDIA_TYPE, EventStream
from crosswind.api.live.feed import Feed, Stream
from crosswind.api.paging import Page, cursor_of, next_url, place_of
from crosswind.api.problems import problem
from crosswind.api.wire import INT64, Name, plain_json, refuse_unknown_query
from crosswind.data.schema.answers.events import Event, EventFilter, EventKind, EventPart
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.store.store import Store

router = APIRouter(prefix="/v1", tags=["events"], dependencies=[Depends(refuse_unknown_query)])
PATH = "/v1/events"
Position = Annotated[int, Field(ge=0, lt=INT64)]
STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}, "description": "events as a list or a stream"},
    204: {"description": "with `quiet`: too many streams are open"},
}


class EventPage(Page):
    """Part of the events, in the order in which they were stored; `position` is the id up to which it looked."""

    events: list[Event]
    position: int


class EventQuery(BaseModel):
    """Conditions on events, and the one after which to begin."""

    limit: Annotated[int, Field(ge=1, le=500, description="how many events to return at most")] = 50
    cursor: Annotated[str | None, Field(max_length=1000, description="`next` of the part before")] = None

    after: Annotated[
        Position | None, Field(description="id of an event; null: the oldest that is kept, of a stream: from now on")
    ] = None
    run_id: Name | None = None
    workload: Annotated[Name | None, Field(description="of runs")] = None
    system: Name | None = None
    study_id: Name | None = None
    kinds: Annotated[str | None, Field(max_length=400, description="separated by commas")] = None
    quiet: Annotated[
        bool, Field(description="of a stream: 204 where it is refused, which a browser takes for its end, not an error")
    ] = False

    @property
    def wanted(self) -> EventFilter:
        """The conditions. Raises: InvalidInputError."""
        kinds = None if self.kinds is None else kinds_of(self.kinds.split(","))
        of = {"run_id": self.run_id, "workload": self.workload, "system": self.system, "study_id": self.study_id}
        return EventFilter(**of, kinds=kinds)


def kinds_of(words: list[str]) -> tuple[EventKind, ...]:
    """Return the kinds that words name. Raises: InvalidInputError."""
    try:
        return tuple(map(EventKind, words))
    except ValueError as error:
        raise InvalidInputError(f"kinds {','.join(words)!r:.80}: expected some of {', '.join(EventKind)}") from error


@router.get("/events", response_model=EventPage, responses=STREAM)
async def list_events(
    query: Annotated[EventQuery, Query()],
    request: Request,
    *,
    store: StoreOf,
    caller: CallerOf,
    last_event_id: Annotated[str | None, Header(description="of a stream: as `after`, which it overrides")] = None,
) -> Response:
    """Return events as a list; with `Accept: text/event-stream`, what comes as well, as it comes."""
    if MEDIA_TYPE not in request.headers.get("accept", ""):
        return plain_json(await run_sync(_page, query, request, store))
    feed: Feed = request.app.state.feed
    if refusal := feed.refusal(caller.principal):
        if query.quiet:
            return Response(status_code=204)
        return problem(*refusal, root_path=request.scope.get("root_path", ""))
    stream = Stream(caller.principal, query.wanted, caller.token_id)
    return EventStream(feed, store.catalog, stream, _position(last_event_id, query.after))


def _page(query: EventQuery, request: Request, store: Store) -> dict[str, object]:
    [after] = place_of(query.cursor, int) or [query.after or 0]
    part = events_after(store, after, query.wanted, query.limit)
    cursor = None if part.is_last else cursor_of(part.position)
    return {"next": cursor, "next_url": next_url(request, cursor), "events": part.events, "position": part.position}


def events_after(store: Store, position: int, wanted: EventFilter, limit: int) -> EventPart:
    """Return the events after a position that may be seen."""
    with store.catalog.read() as session:
        return session.events.after(position, wanted, limit=limit)


def _position(last_event_id: str | None, after: int | None) -> int | None:
    """Return the position that a client names. Raises: InvalidInputError."""
    if not last_event_id:
        return after
    if not (last_event_id.isascii() and last_event_id.isdigit() and int(last_event_id[:20]) < INT64):
        raise InvalidInputError(f"header last-event-id {last_event_id!r:.60}: expected the id of an event")
    return int(last_event_id)

"""Events of a store or a server, as they come: over and over from a catalog, or as a stream that is taken up again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from typing import Any

from crosswind.client.decoding import decode
from crosswind.client.http import Server
from crosswind.data.schema.answers.events import Event, EventFilter
from crosswind.data.schema.errors import UnavailableError
from crosswind.data.store.store import Store

PATH = "/v1/events"
STREAM = {"Accept": "text/event-stream"}
PART = 500
LOOK_SECONDS = 0.5  # between two looks into a store
PAUSES_SECONDS = (0.5, 2.0, 5.0, 10.0, 30.0)  # before a server is asked again; the last one again and again
PATIENCE_SECONDS = 600.0  # without any answer


def events_of_store(
    store: Store,
    wanted: EventFilter,
    after: int | None,
    *,
    follow: bool = True,
    before_looking: Callable[[], object] = lambda: None,
) -> Iterator[Event]:
    """Yield the events after an id, from now on without one; `before_looking` may take in what waits to be stored."""
    with store.catalog.read() as session:
        position = after if after is not None else session.events.newest() if follow else 0
    while True:
        before_looking()
        with store.catalog.read() as session:
            part = session.events.after(position, wanted, limit=PART)
        yield from part.events
        position = part.position
        if part.is_last and not follow:
            return
        if part.is_last:
            time.sleep(LOOK_SECONDS)


def events_of_server(server: Server, wanted: EventFilter, after: int | None, *, follow: bool = True) -> Iterator[Event]:
    """Yield the events after an id, from now on without one; after a break the stream goes on where it ended.

    Raises: as `Server.get`; UnavailableError after ten minutes without an answer.
    """
    query: dict[str, object | None] = {name: value for name, value in vars(wanted).items() if name != "kinds"}
    query["kinds"] = None if wanted.kinds is None else ",".join(wanted.kinds)
    if follow:
        yield from _followed(server, {**query, "after": after})
    else:
        yield from _listed(server, {**query, "after": after, "limit": PART})


def _listed(server: Server, query: Mapping[str, object | None]) -> Iterator[Event]:
    cursor: object = None
    while True:
        part = server.get(PATH, {**query, "cursor": cursor})
        for value in part.get("events", ()):
            yield from _decoded(server, value)
        if (cursor := part.get("next")) is None:
            return


def _followed(server: Server, query: Mapping[str, object | None]) -> Iterator[Event]:
    last_id, breaks, heard = "", 0, time.monotonic()
    while True:
        named = {"Last-Event-ID": last_id} if last_id else {}
        try:
            with server.stream(PATH, query, {**STREAM, **named}) as response:
                for last_id, data in _messages(response):  # noqa: B007 - kept for the next stream
                    breaks, heard = 0, time.monotonic()
                    if data is not None:
                        yield from _decoded(server, data)
        except UnavailableError:
            if not last_id or time.monotonic() - heard > PATIENCE_SECONDS:
                raise
        time.sleep(PAUSES_SECONDS[min(breaks, len(PAUSES_SECONDS) - 1)])
        breaks += 1


def _messages(response: HTTPResponse) -> Iterator[tuple[str, Any]]:
    """Yield the id and the data of messages up to the stream's end or break; data is None where the id alone came."""
    fields: dict[str, str] = {}
    with suppress(OSError, HTTPException):
        while line := response.readline().decode():
            name, _, value = line.rstrip("\r\n").partition(":")
            if line.strip():
                fields[name] = value.removeprefix(" ")
            elif "id" in fields:
                yield fields["id"], json.loads(fields["data"]) if "data" in fields else None
                fields = {}


def _decoded(server: Server, value: Any) -> Iterator[Event]:
    """Yield the event, unless it is of a kind that a newer server has. Raises: MalformedError."""
    try:
        yield decode(Event, value)
    except ValueError as error:
        if "EventKind" not in str(error):
            raise server.malformed(error) from error

"""Clients of streams of events, as a browser or curl is one."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlsplit

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.schema.run import Run, RunState

RUN = Run("r", "w", "lab", RunState.RUNNING, world_size=2, user="ann")


def store_run(catalog: Catalog, run_id: str, **facts: object) -> None:
    with catalog.write() as session:
        session.runs.merge(replace(RUN, run_id=run_id, started_ns=time.time_ns(), **facts))  # type: ignore[arg-type]


@dataclass
class Listener:
    """One connection to `/v1/events`."""

    connection: HTTPConnection
    response: HTTPResponse
    comments: list[str] = field(default_factory=list)
    last_id: str = ""

    def events(self) -> Iterator[Mapping[str, Any]]:
        """Yield the events until the server ends the stream."""
        given: dict[str, str] = {}
        while line := self.response.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if line == "\n":
                self.last_id = given.get("id", self.last_id)
                if "data" in given:
                    assert json.loads(given["data"])["kind"] == given["event"]
                    yield {**json.loads(given["data"]), "id": given["id"]}
                given = {}
            elif name == "":
                self.comments.append(value)
            else:
                given[name] = value

    def some(self, count: int) -> list[Mapping[str, Any]]:
        """Return the next so many events."""
        coming = self.events()
        return [next(coming) for _ in range(count)]

    def rest(self) -> list[Mapping[str, Any]]:
        """Return the events up to the stream's end."""
        return list(self.events())


@contextmanager
def listening(url: str, query: str = "", headers: Mapping[str, str] | None = None) -> Iterator[Listener]:
    """Yield a stream that has begun: what is stored from now on is in it."""
    place = urlsplit(url)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=20)
    try:
        connection.request("GET", f"/v1/events{query}", headers={"Accept": "text/event-stream", **(headers or {})})
        response = connection.getresponse()
        listener = Listener(connection, response)
        if response.status == 200:
            assert response.readline() == b"retry: 2000\n"
            assert response.readline().startswith(b"id: ")
            response.readline()
        yield listener
    finally:
        connection.close()


def until(holds: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Return whether something holds within so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return False

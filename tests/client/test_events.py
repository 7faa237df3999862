"""Events by the client: the same from a store here and from a server, also across a server's end."""

import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from tests.api.live.listening import store_run, until
from tests.api.live.served import Served

from crosswind.client import events as client_events
from crosswind.client.local import Local
from crosswind.client.protocol import Client
from crosswind.client.remote import Remote
from crosswind.data.schema.answers.events import Event, EventFilter, EventKind
from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def served(store: Store) -> Iterator[Served]:
    server = Served(store)
    yield server
    server.stop()


def test_stored_events_are_the_same_from_a_store_and_from_a_server(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_events, "PART", 3)
    for number in range(8):
        store_run(served.store.catalog, f"r{number}", workload="vw"[number % 2])
    here, there = Local(served.store), Remote(served.url)
    for wanted in (None, EventFilter(workload="v"), EventFilter(kinds=(EventKind.RUN_ENDED, EventKind.RUN_STARTED))):
        for after in (None, 4):
            stored = list(here.events(wanted, after=after, follow=False))
            assert stored == list(there.events(wanted, after=after, follow=False))
            assert stored


@pytest.mark.parametrize("where", ["store", "server"])
def test_events_are_followed_as_they_come(served: Served, where: str) -> None:
    client: Client = Local(served.store) if where == "store" else Remote(served.url)
    store_run(served.store.catalog, "before")
    coming = client.events(EventFilter(workload="v"), after=None if where == "server" else 1)
    seen: list[Event] = []
    reader = threading.Thread(target=lambda: seen.extend(islice(coming, 2)), daemon=True)
    reader.start()
    assert where == "store" or until(lambda: served.streams == 1)
    for name, workload in (("one", "v"), ("other", "w"), ("two", "v")):
        store_run(served.store.catalog, name, workload=workload)
    reader.join(timeout=20)
    assert [event.run_id for event in seen] == ["one", "two"]


def test_a_stream_goes_on_at_the_next_server_without_loss_or_repetition(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_events, "PAUSES_SECONDS", (0.1,))
    first = Served(store)
    seen: list[str | None] = []
    client = Remote(first.url)
    reader = threading.Thread(
        target=lambda: seen.extend(event.run_id for event in islice(client.events(after=0), 9)), daemon=True
    )
    reader.start()
    for number in range(3):
        store_run(store.catalog, f"r{number}")
    assert until(lambda: first.streams == 1)
    first.stop()
    for number in range(3, 6):
        store_run(store.catalog, f"r{number}")
    second = Served(store, port=first.port)
    try:
        for number in range(6, 9):
            store_run(store.catalog, f"r{number}")
        reader.join(timeout=20)
    finally:
        second.stop()
    assert seen == [f"r{number}" for number in range(9)]


def test_a_server_that_was_never_there_is_an_error_at_once() -> None:
    with pytest.raises(UnavailableError):
        next(Remote("http://127.0.0.1:9").events())


def test_a_condition_that_the_server_refuses_is_an_error(served: Served) -> None:
    with pytest.raises(InvalidInputError, match="run_id"):
        next(Remote(served.url).events(EventFilter(run_id="")))


def test_a_kind_that_a_newer_server_has_is_passed_over(served: Served) -> None:
    server = Remote(served.url)._server
    message = {"event_id": 1, "kind": "run.started", "at_ns": 5, "details": {"step": 7, "seconds": 0.5, "on": True}}
    [event] = client_events._decoded(server, message)
    assert event.details == {"step": 7, "seconds": 0.5, "on": True}
    assert list(client_events._decoded(server, {**message, "kind": "run.dreamt"})) == []

"""Streams of events: nothing lost, nothing twice, nothing of others, and bounded."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.api.access.issuing import ADMIN, ANNA, bearer, issued, revoked
from tests.api.live.listening import RUN, listening, store_run, until
from tests.api.live.served import Served
from tests.serving import own_client

from crosswind.api.app import create_app
from crosswind.api.edge.limits import Limits
from crosswind.api.live import event_stream, feed
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


def test_what_is_stored_comes_as_it_is_stored(served: Served) -> None:
    with listening(served.url) as listener:
        began = time.monotonic()
        store_run(served.store.catalog, "r1")
        [event] = listener.some(1)
        assert (event["kind"], event["run_id"], event["workload"]) == ("run.started", "r1", "w")
        assert time.monotonic() - began < 5
        assert listener.response.getheader("Content-Type", "").startswith("text/event-stream")
        assert listener.response.getheader("Content-Encoding") is None
    assert until(lambda: served.streams == 0)


def test_a_client_that_comes_back_again_and_again_loses_nothing_and_gets_nothing_twice(served: Served) -> None:
    seen: list[str] = []
    writer = threading.Thread(target=lambda: [store_run(served.store.catalog, f"r{number}") for number in range(200)])
    writer.start()
    after = "0"
    while len(seen) < 200:
        with listening(served.url, headers={"Last-Event-ID": after}) as listener:
            for event in listener.some(min(17, 200 - len(seen))):
                seen.append(event["run_id"])
                after = event["id"]
    writer.join()
    assert seen == [f"r{number}" for number in range(200)]


def test_two_servers_of_one_catalog_give_the_same_ids(served: Served) -> None:
    other = Served(served.store)
    try:
        with listening(served.url) as one, listening(other.url) as another:
            for number in range(5):
                store_run(served.store.catalog, f"r{number}")
            first = one.some(5)
            assert another.some(5) == first
        store_run(served.store.catalog, "later")
        with listening(other.url, f"?after={first[-1]['id']}") as moved:
            assert [event["run_id"] for event in moved.some(1)] == ["later"]
    finally:
        other.stop()


def test_a_user_gets_the_events_of_what_they_may_see(served: Served) -> None:
    token = issued(served.store, ANNA).secret
    with listening(served.url, "?after=0", bearer(token)) as listener:
        store_run(served.store.catalog, "bens", user="ben")
        store_run(served.store.catalog, "annas", user="anna")
        store_run(served.store.catalog, "accounts", user="ben", account="physics")
        store_run(served.store.catalog, "shared", user="ben", shared=True)
        live = [event["run_id"] for event in listener.some(3)]
    assert live == ["annas", "accounts", "shared"]
    with listening(served.url, "?after=0", bearer(token)) as listener:
        assert [event["run_id"] for event in listener.some(3)] == live


def test_a_revoked_token_ends_its_stream_within_two_seconds(served: Served) -> None:
    made, other = issued(served.store, ADMIN), issued(served.store, ADMIN)
    with listening(served.url, "", bearer(made.secret)) as listener, listening(served.url) as owners:
        began = time.monotonic()
        revoked(served.store.catalog, made)
        store_run(served.store.catalog, "secret")
        assert listener.rest() == []
        assert time.monotonic() - began < 2
        assert listener.comments == [feed.TOKEN_OVER]
        assert [event["run_id"] for event in owners.some(1)] == ["secret"]
    assert other.token.refusal(time.time_ns()) is None


def test_what_was_made_with_a_revoked_token_ends_too(served: Served) -> None:
    parent = issued(served.store, ADMIN)
    child = issued(served.store, ADMIN, parent_id=parent.token.token_id)
    with listening(served.url, "", bearer(child.secret)) as listener:
        revoked(served.store.catalog, parent)
        assert listener.rest() == []


def test_a_token_that_expires_ends_its_stream(served: Served) -> None:
    secret = issued(served.store, ADMIN, 2.0).secret
    with listening(served.url, "", bearer(secret)) as listener:
        assert listener.rest() == []
        assert listener.comments[-1] == feed.TOKEN_OVER


def test_filters_apply_to_what_was_and_to_what_comes(served: Served) -> None:
    store_run(served.store.catalog, "before")
    store_run(served.store.catalog, "before-too", workload="v")
    with listening(served.url, "?after=0&workload=v&kinds=run.started") as listener:
        store_run(served.store.catalog, "after")
        store_run(served.store.catalog, "after-too", workload="v")
        assert [event["run_id"] for event in listener.some(2)] == ["before-too", "after-too"]


def test_silence_has_a_heartbeat_that_moves_the_position_on(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "HEARTBEAT_SECONDS", 0.2)
    with listening(served.url, "?kinds=data.gap") as listener:
        store_run(served.store.catalog, "r1")
        lines = [listener.response.readline() for _ in range(24)]
    assert b": alive\n" in lines
    assert lines.count(b"id: 0\n") >= 1
    assert b"id: 1\n" in lines


def test_a_reader_that_is_too_slow_is_cut_off_and_can_go_on(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "QUEUED_MAX", 5)
    monkeypatch.setattr(feed, "LOOK_SECONDS", 0.3)
    with listening(served.url) as listener:
        with served.store.catalog.write() as session:
            for number in range(20):
                session.runs.merge(replace(RUN, run_id=f"r{number}", started_ns=time.time_ns()))
        assert listener.rest() == []
        assert listener.comments == [feed.BEHIND]
    with listening(served.url, "?after=0") as listener:
        assert len(listener.some(20)) == 20


def test_a_client_that_does_not_read_holds_little_and_is_let_go(served: Served) -> None:
    place = urlsplit(served.url)
    with socket.create_connection((place.hostname, place.port)) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall(b"GET /v1/events?after=0 HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
        assert until(lambda: served.streams == 1)
    assert until(lambda: served.streams == 0)


def test_streams_are_limited_by_caller_and_in_all(store: Store) -> None:
    server = Served(store, Limits(streams=3, client_streams=2))
    anna = bearer(issued(store, ANNA).secret)
    try:
        with listening(server.url), listening(server.url), listening(server.url) as third:
            assert third.response.status == 429
            assert json.loads(third.response.read())["type"] == "/problems/too-many-connections"
            assert third.response.getheader("Retry-After")
            with listening(server.url, "?quiet=true") as quiet:
                assert (quiet.response.status, quiet.response.read()) == (204, b"")
            with listening(server.url, "", anna) as hers, listening(server.url, "", anna) as fourth:
                assert (hers.response.status, fourth.response.status) == (200, 503)
        assert until(lambda: server.streams == 0)
        with listening(server.url) as again:
            assert again.response.status == 200
    finally:
        server.stop()


def test_a_server_that_stops_ends_streams_at_once(store: Store) -> None:
    server = Served(store)
    with listening(server.url) as listener:
        began = time.monotonic()
        server.stop()
        assert listener.rest() == []
        assert listener.comments == [feed.STOPPING]
        assert time.monotonic() - began < 4


def test_a_trimmed_past_is_said(served: Served) -> None:
    for number in range(6):
        store_run(served.store.catalog, f"r{number}")
    with served.store.catalog.write() as session:
        session.events.forget(time.time_ns(), kept_rows=2)
    with listening(served.url, headers={"Last-Event-ID": "1"}) as listener:
        assert [event["kind"] for event in listener.some(3)] == ["reset", "run.started", "run.started"]
    with listening(served.url, headers={"Last-Event-ID": "99"}) as listener:
        assert [(event["kind"], event["id"]) for event in listener.some(1)] == [("reset", "6")]


def test_the_list_leads_through_all_events_in_parts(store: Store) -> None:
    client = own_client(create_app(store))
    assert client.get("/v1/events").json() == {"events": [], "position": 0, "next": None, "next_url": None}
    for number in range(7):
        store_run(store.catalog, f"r{number}")
    seen, address = [], "/v1/events?limit=3"
    while address:
        page = client.get(address).json()
        seen += [event["run_id"] for event in page["events"]]
        address = page["next_url"]
    assert seen == [f"r{number}" for number in range(7)]
    assert page["position"] == 7
    assert client.get("/v1/events?after=5").json()["events"][0]["run_id"] == "r5"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("after=-1", "query.after"),
        ("after=9223372036854775808", "query.after"),
        ("kinds=run.started,nonsense", "kinds"),
        ("kinds=token.ended", "kinds"),
        ("nonsense=1", "nonsense"),
        ("run_id=", "query.run_id"),
    ],
)
def test_what_is_no_condition_is_refused(store: Store, query: str, field: str) -> None:
    for accept in ("application/json", "text/event-stream"):
        answer = own_client(create_app(store)).get(f"/v1/events?{query}", headers={"Accept": accept})
        assert answer.status_code == 422
        assert field in answer.text


def test_a_last_event_id_that_is_none_is_refused(store: Store) -> None:
    headers = {"Accept": "text/event-stream", "Last-Event-ID": "12a"}
    answer = own_client(create_app(store)).get("/v1/events", headers=headers)
    assert answer.status_code == 422
    assert "last-event-id" in answer.text

"""Requests to a server that is busy, resets connections, is slow or not there."""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from tests.client.faulty import Does, Faulty, answer, faulty

from crosswind.client.http import Server
from crosswind.client.remote import Remote
from crosswind.client.remote_studies import RemoteStudyService
from crosswind.client.tokens import RemoteTokens
from crosswind.data.schema.access import Principal, PrincipalKind
from crosswind.data.schema.errors import InvalidInputError, NotFoundError, UnavailableError
from crosswind.data.schema.question import Question

BUSY = answer(503, '{"detail": "busy"}', Retry_After="0")
NONE = answer(200)
IN_PROGRESS = answer(409, '{"type": "/problems/in-progress", "detail": "wait"}')
BROKEN_OFF = Does(answer(200).sends[:-5], resets=True)


@contextmanager
def remote_of(server: Faulty, seconds: float = 20.0) -> Iterator[Remote]:
    with Remote(server.url, deadline_seconds=seconds) as client:
        yield client


@pytest.mark.parametrize(
    "first", [BUSY, answer(408), answer(429), BROKEN_OFF, Does(resets=True), Does(closes=True), answer(502)]
)
def test_a_question_is_asked_again(first: Does) -> None:
    with faulty(first, first, NONE) as server, remote_of(server) as client:
        assert client.runs() == ()
    assert len(server.requests) == 3
    assert len(set(server.fields("traceparent"))) == 1


def test_a_prediction_is_a_question_too() -> None:
    with (
        faulty(BROKEN_OFF, answer(422, '{"detail": "no"}')) as server,
        remote_of(server) as client,
        pytest.raises(InvalidInputError, match="no"),
    ):
        client.predict(Question("toy", "lab", {}, 2))
    assert len(server.requests) == 2


def test_a_request_with_a_key_is_sent_again_under_the_same_key() -> None:
    with faulty(BROKEN_OFF, IN_PROGRESS, NONE) as server, closing(Server(server.url)) as way:
        RemoteStudyService(way).delete("s")
    keys = server.fields("idempotency-key")
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert len(keys[0]) == 32


@pytest.mark.parametrize("first", [BUSY, BROKEN_OFF])
def test_what_could_happen_twice_is_sent_once(first: Does) -> None:
    with (
        faulty(first, answer(201)) as server,
        closing(Server(server.url)) as way,
        pytest.raises(UnavailableError, match=r"\(1 try in 0\.\d s"),
    ):
        RemoteTokens(way).create(Principal(PrincipalKind.SERVICE, "x"), 60)
    assert len(server.requests) == 1


def test_a_server_that_is_wrong_is_not_asked_again() -> None:
    with (
        faulty(answer(500, '{"detail": "reference 4711"}')) as server,
        remote_of(server) as client,
        pytest.raises(UnavailableError, match=r"reference 4711 \(1 try in .*, trace [0-9a-f]{32}\)"),
    ):
        client.runs()
    assert len(server.requests) == 1


def test_it_gives_up_after_four_tries_and_says_how_often_and_how_long() -> None:
    with (
        faulty(BUSY) as server,
        remote_of(server) as client,
        pytest.raises(UnavailableError, match=r": busy \(4 tries in \d\.\d s, trace"),
    ):
        client.runs()
    assert len(server.requests) == 4


def test_it_waits_as_long_as_the_server_asks() -> None:
    with faulty(answer(503, Retry_After="1"), NONE) as server, remote_of(server) as client:
        client.runs()
    [(first, second)] = pairwise(server.arrived)
    assert 1.0 <= second - first < 1.5  # and up to 0.2 s more, so that clients do not come back together


def test_it_does_not_wait_beyond_its_deadline() -> None:
    with faulty(answer(503, '{"detail": "busy"}', Retry_After="30")) as server, remote_of(server) as client:
        began = time.monotonic()
        with pytest.raises(UnavailableError, match=r"busy \(1 try in 0\.\d s, asks to wait 30 s, trace"):
            client.runs()
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("slow", [Does(answer(200).sends, seconds_a_byte=0.05), Does(b"H", seconds_a_byte=60)])
def test_a_slow_answer_ends_with_the_deadline_and_is_not_asked_for_again(slow: Does) -> None:
    """Of bytes that come now and then, no single wait is long."""
    with faulty(slow) as server, remote_of(server, 0.5) as client:
        began = time.monotonic()
        with pytest.raises(UnavailableError, match=r"does not answer: .* \(1 try in 0\.\d s\)"):
            client.runs()
        assert 0.4 < time.monotonic() - began < 1.5
    assert len(server.requests) == 1


def test_a_refused_connection_is_tried_again_whatever_was_to_be_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    words = r"does not answer: Connection refused \(4 tries in \d\.\d s\)"
    with closing(Server(f"http://127.0.0.1:{port}")) as way, pytest.raises(UnavailableError, match=words):
        RemoteTokens(way).create(Principal(PrincipalKind.SERVICE, "x"), 60)


def test_one_connection_serves_many_requests_and_a_closed_one_is_replaced() -> None:
    with faulty(NONE, NONE, Does(NONE.sends, closes=True), NONE) as server, remote_of(server) as client:
        for _ in range(3):
            client.runs()
        assert server.connections == 1
        time.sleep(0.05)
        client.runs()
        assert server.connections == 2
    assert len(server.requests) == 4


def test_a_child_has_connections_of_its_own() -> None:
    with faulty(NONE) as server, remote_of(server) as client:
        client.runs()
        if (child := os.fork()) == 0:
            client.runs()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        client.runs()
    assert server.connections == 2


def test_an_export_is_written_as_it_comes_and_tried_again_until_it_begins(tmp_path: Path) -> None:
    script = BUSY, Does(resets=True), answer(200, "PK" * 100_000)
    with faulty(*script) as server, remote_of(server) as client:
        client.own.export_run("r", tmp_path / "r.zip")
    assert (tmp_path / "r.zip").read_bytes() == b"PK" * 100_000
    assert len(server.requests) == 3


def test_an_export_that_breaks_off_leaves_no_file(tmp_path: Path) -> None:
    whole = answer(200, "PK" * 100_000).sends
    broken = pytest.raises(UnavailableError, match="the answer broke off")
    with faulty(Does(whole[:-10], closes=True)) as server, remote_of(server) as client, broken:
        client.own.export_run("r", tmp_path / "r.zip")
    assert list(tmp_path.iterdir()) == []


def test_an_export_that_is_refused_says_why(tmp_path: Path) -> None:
    missing = answer(404, '{"detail": "run r is not stored"}')
    with faulty(missing) as server, remote_of(server) as client, pytest.raises(NotFoundError, match="not stored"):
        client.own.export_run("r", tmp_path / "r.zip")

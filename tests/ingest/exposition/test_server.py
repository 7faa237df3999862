import gzip
import socket
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path

import pytest
from tests.conftest import free_port
from tests.ingest.exposition.shown import made_up, shown

from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.schema.metric import Column
from crosswind.ingest.agent.self_metrics import AGENT
from crosswind.ingest.exposition.freshness import Freshness
from crosswind.ingest.exposition.latest import LatestReading
from crosswind.ingest.exposition.server import MOST_AT_ONCE, serve
from crosswind.ingest.exposition.text import OPEN_METRICS, PLAIN

SECOND = 1_000_000_000


@pytest.fixture
def latest() -> dict[str, LatestReading]:
    return made_up({"a": (3,)}, Column("things", "things now"))


@pytest.fixture
def stop() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def port(latest: dict[str, LatestReading], stop: threading.Event) -> int:
    port = free_port()
    serve(f"127.0.0.1:{port}", lambda: latest, stop)
    return port


def get(port: int, path: str = "/metrics", **headers: str) -> tuple[HTTPResponse, bytes]:
    with closing(HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response, response.read()


def answers(port: int) -> bool:
    try:
        return get(port)[0].status == 200
    except (ConnectionError, HTTPException):  # turned away
        return False


def test_it_serves_what_was_shown_last(port: int, latest: dict[str, LatestReading]) -> None:
    response, body = get(port)
    assert (response.status, response.getheader("Content-Type")) == (200, PLAIN)
    assert b'crosswind_made_up_things{device="a"} 3\n' in body
    latest.update(made_up({"b": (4,)}, Column("things", "things now")))
    _, body = get(port)
    assert b'crosswind_made_up_things{device="b"} 4\n' in body
    assert b'device="a"' not in body


def test_openmetrics_and_gzip_are_given_to_who_asks(port: int) -> None:
    response, body = get(port, Accept="application/openmetrics-text", Accept_Encoding="gzip")
    assert response.getheader("Content-Type") == OPEN_METRICS
    assert response.getheader("Content-Encoding") == "gzip"
    assert gzip.decompress(body).endswith(b"# EOF\n")


def test_there_is_a_place_to_ask_whether_it_lives_and_nothing_else(port: int) -> None:
    assert get(port, "/healthz")[1] == b"ok\n"
    assert get(port, "/")[0].status == 404
    with closing(HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("POST", "/metrics", body=b"x")
        assert connection.getresponse().status == 501


def swept_at(mono_ns: int) -> dict[str, LatestReading]:
    own = shown(AGENT, [("agent", *[None] * len(AGENT.columns))])
    return {"agent": replace(own, rows=replace(own.rows, mono_ns=mono_ns))}


def test_an_agent_that_sweeps_no_more_is_not_healthy(port: int, latest: dict[str, LatestReading]) -> None:
    latest.update(swept_at(time.monotonic_ns() - 12 * SECOND))
    response, body = get(port, "/healthz")
    assert (response.status, body) == (503, b"the last sweep was 12 s ago\n")
    assert get(port)[0].status == 200
    latest.update(swept_at(time.monotonic_ns()))
    assert get(port, "/healthz")[0].status == 200


def test_an_agent_of_a_slow_pace_may_take_three_of_its_intervals() -> None:
    latest: dict[str, LatestReading] = {}
    freshness = Freshness(lambda: latest)
    for second in (1000, 1030):
        latest.update(swept_at(second * SECOND))
        freshness.look()
    assert freshness.problem(1120 * SECOND) is None
    assert freshness.problem(1121 * SECOND) == "the last sweep was 91 s ago"


def test_an_agent_that_never_swept_is_not_healthy_after_a_while() -> None:
    freshness = Freshness(dict)
    assert freshness.problem() is None
    assert freshness.problem(time.monotonic_ns() + 11 * SECOND) == "the last sweep was 11 s ago"


def test_connections_that_drip_are_cut_so_that_others_are_served(
    latest: dict[str, LatestReading], stop: threading.Event
) -> None:
    port = free_port()
    serve(f"127.0.0.1:{port}", lambda: latest, stop, whole_seconds=0.3)
    dripping = [socket.create_connection(("127.0.0.1", port)) for _ in range(MOST_AT_ONCE)]
    until = time.monotonic() + 3  # less than the patience with one that says nothing
    is_served = False
    while not is_served and time.monotonic() < until:
        for connection in dripping:
            with suppress(OSError):  # cut
                connection.send(b"G")
        is_served = answers(port)
    for connection in dripping:
        connection.close()
    assert is_served


def test_what_cannot_be_written_is_a_500_that_reveals_nothing(stop: threading.Event) -> None:
    def broken() -> dict[str, LatestReading]:
        raise RuntimeError("secret")

    port = free_port()
    serve(f"127.0.0.1:{port}", broken, stop)
    response, body = get(port)
    assert response.status == 500
    assert b"secret" not in body


def test_callers_beyond_the_limit_are_turned_away_and_the_next_is_served(port: int) -> None:
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(MOST_AT_ONCE)]
    with socket.create_connection(("127.0.0.1", port), timeout=5) as one_more:
        assert one_more.recv(1) == b""
    for connection in idle:
        connection.close()
    until = time.monotonic() + 10
    while not answers(port):
        assert time.monotonic() < until


def test_the_thread_ends_on_request(latest: dict[str, LatestReading], stop: threading.Event) -> None:
    port = free_port()
    thread = serve(f"127.0.0.1:{port}", lambda: latest, stop)
    stop.set()
    thread.join(5)
    assert not thread.is_alive()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_it_serves_on_a_unix_socket_and_takes_it_away(
    latest: dict[str, LatestReading], stop: threading.Event, tmp_path: Path
) -> None:
    path = tmp_path / "metrics"
    for _ in range(2):  # the second finds what a killed agent left behind
        left = socket.socket(socket.AF_UNIX)
        left.bind(str(path)) if not path.exists() else None
        left.close()
    thread = serve(f"unix:{path}", lambda: latest, stop)
    assert stat.S_ISSOCK(path.stat().st_mode)
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(10)
        caller.connect(str(path))
        caller.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert caller.makefile("rb").read().endswith(b"ok\n")
    with pytest.raises(UnavailableError, match="another process"):
        serve(f"unix:{path}", lambda: latest, stop)
    stop.set()
    thread.join(5)
    assert not path.exists()


def test_a_file_that_is_no_socket_is_left_alone(stop: threading.Event, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("precious")
    with pytest.raises(UnavailableError, match="no socket"):
        serve(f"unix:{tmp_path / 'data'}", dict, stop)
    assert (tmp_path / "data").read_text() == "precious"


@pytest.mark.parametrize(
    "listen",
    [
        *("", "9750", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1", "node-1:9750"),
        *("0.0.0.0:9750", "[::]:9750", "10.0.0.1:9750", "unix:", "unix:relative", "unix:/" + "x" * 200, "tcp:/a"),
    ],
)
def test_an_address_that_makes_no_sense_or_is_open_to_others_is_refused(listen: str, stop: threading.Event) -> None:
    with pytest.raises(InvalidInputError, match=r"metrics\.listen"):
        serve(listen, dict, stop)


def test_an_address_that_is_taken_is_unavailable(port: int, stop: threading.Event) -> None:
    with pytest.raises(UnavailableError, match=f"127.0.0.1:{port}"):
        serve(f"127.0.0.1:{port}", dict, stop)


def test_with_a_token_every_address_is_served_to_those_who_hold_it(
    latest: dict[str, LatestReading], stop: threading.Event
) -> None:
    port = free_port()
    serve(f"0.0.0.0:{port}", lambda: latest, stop, "a" * 32)
    refused, body = get(port)
    assert (refused.status, refused.getheader("WWW-Authenticate")) == (401, 'Bearer realm="crosswind"')
    assert b"crosswind_made_up" not in body
    assert get(port, Authorization="Bearer " + "b" * 32)[0].status == 401
    assert get(port, "/healthz")[0].status == 200
    assert get(port, Authorization="Bearer " + "a" * 32)[0].status == 200

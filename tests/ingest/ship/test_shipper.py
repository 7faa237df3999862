import os
import signal
import socket
import sqlite3
import ssl
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.serving import answering, serving

from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.schema.metric import NODE_KEYS, Column, MetricSet
from crosswind.data.store.store import Store
from crosswind.ingest.ship.address import way_to
from crosswind.ingest.ship.backoff import LONGEST_SECONDS, Backoff
from crosswind.ingest.ship.client import Answer
from crosswind.ingest.ship.pack import pack, packings
from crosswind.ingest.ship.shipper import LOOK_SECONDS, Shipper
from crosswind.ingest.ship.token import ship_token
from crosswind.ingest.ship.verdict import Verdict, verdict_on
from crosswind.ingest.spool.spool import SpoolWriter, sealed_segments

HEAT = MetricSet("heat", "a sensor", (*NODE_KEYS, Column("heat_celsius", "heat", scale=0.1)))
PROBLEM = "application/problem+json"
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "all_proxy", "ALL_PROXY")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)


def fill(spool: Path, node: str, segments: int, rows: int = 2, first: int = 0) -> list[tuple[str, int]]:
    """Seals so many segments; what stands in them: node and time, in order."""
    for number in range(first, first + segments):
        with SpoolWriter(spool, f"agent.{node}") as writer:
            times = list(range(number * rows, (number + 1) * rows))
            columns = {"ts_ns": times, "node": [node] * rows, "device": ["cpu0"] * rows, "heat_celsius": times}
            writer.append_rows(HEAT, columns)
    return [(node, time_) for time_ in range(first * rows, (first + segments) * rows)]


def stored(home: Path, nodes: str) -> list[tuple[str, int]]:
    """Node and time of every row of these nodes that is stored, sorted: what is doubled stands twice."""
    with Store.open(home) as store, store.lake.connect() as connection:
        return connection.execute("select node, ts_ns from heat where node like ? order by all", [nodes]).fetchall()


@contextmanager
def scripted(
    *script: tuple[int, dict[str, str], bytes], closes: bool = False, meanwhile: Callable[[], object] = lambda: None
) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server that gives these answers, one after the other; what it was asked. `BATCH` becomes the batch's id.

    With `closes` it closes the connection after each, without saying so.
    """
    answers, asked = list(script), []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            asked.append(dict(self.headers))
            meanwhile()
            status, headers, body = answers.pop(0)
            body = body.replace(b"BATCH", self.headers["Crosswind-Batch"].encode())
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = closes

        def log_message(self, *_: object) -> None:
            pass

    with threaded(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked


@contextmanager
def threaded(server: ThreadingHTTPServer) -> Iterator[ThreadingHTTPServer]:
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


TAKEN = (201, {"Content-Type": "application/json"}, b'{"batch_id": "BATCH", "status": "stored"}')


def refusal(status: int, **headers: str) -> tuple[int, dict[str, str], bytes]:
    renamed = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, {"Content-Type": PROBLEM, **renamed}, b'{"detail": "no"}'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Yield the address at which one real server answers for all tests of this file, and its store."""
    home = tmp_path_factory.mktemp("served")
    with answering(home, "store.test") as url:
        yield url, home


def test_what_is_spooled_reaches_the_store_and_leaves_the_spool(server: tuple[str, Path], tmp_path: Path) -> None:
    written = fill(tmp_path, "first", 3)
    shipper = Shipper(tmp_path, server[0])
    assert shipper.ship_all() == LOOK_SECONDS
    assert (shipper.shipped.segments, shipper.shipped.retries, shipper.shipped.problem) == (3, 0, None)
    assert shipper.shipped.sent_bytes > 0
    assert sealed_segments(tmp_path) == []
    assert stored(server[1], "first") == written


def test_a_copy_that_is_sent_again_is_deleted_and_not_doubled(server: tuple[str, Path], tmp_path: Path) -> None:
    written = fill(tmp_path, "copied", 1)
    [path] = sealed_segments(tmp_path)
    content = path.read_bytes()
    for _ in range(2):
        path.write_bytes(content)  # as if the server's answer had been lost
        Shipper(tmp_path, server[0]).ship_all()
        assert not path.exists()
    assert stored(server[1], "copied") == written


def test_a_server_that_is_down_or_killed_in_mid_ingest_loses_and_doubles_nothing(tmp_path: Path) -> None:
    home, spool, stop, address = tmp_path / "home", tmp_path / "spool", threading.Event(), tmp_path / "server.sock"
    written = fill(spool, "n1", 30, rows=20)
    shipper = Shipper(spool, f"unix://{address}")
    assert 0 <= shipper.ship_all() <= 1.0
    assert "does not answer" in (shipper.shipped.problem or "")
    shipping = threading.Thread(target=ship_without_rest, args=(shipper, stop))
    shipping.start()
    try:
        with serving(home, "--uds", str(address)) as (url, process):
            assert (url, stat.S_IMODE(address.stat().st_mode)) == (f"unix://{address}", 0o600)
            wait_until(lambda: shipper.shipped.segments >= 3)
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=20)
        assert len(sealed_segments(spool)) > 0, "it was all over before the kill"
        with serving(home, "--uds", str(address)):  # which takes the place of the dead one's socket
            wait_until(lambda: not sealed_segments(spool))
    finally:
        stop.set()
        shipping.join(timeout=30)
    assert (shipper.shipped.segments, address.exists()) == (30, False)
    assert stored(home, "n1") == written
    with sqlite3.connect(home / "catalog.sqlite") as catalog:
        assert catalog.execute("select count(*), sum(rows) from ingest_batches").fetchall() == [(30, 600)]


def ship_without_rest(shipper: Shipper, stop: threading.Event) -> None:
    while not stop.is_set():
        shipper.ship_all(stop)
        stop.wait(0.01)


def wait_until(is_so: "object") -> None:
    end = time.monotonic() + 60
    while not is_so():  # type: ignore[operator]
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.002)


def test_a_hundred_agents_at_once_lose_and_double_nothing(server: tuple[str, Path], tmp_path: Path) -> None:
    agents = [f"crowd{number:03d}" for number in range(100)]
    written = [row for node in agents for row in fill(tmp_path / node, node, 2, rows=5)]
    shippers = [Shipper(tmp_path / node, server[0]) for node in agents]
    threads = [threading.Thread(target=shipper.ship_all) for shipper in shippers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert [shipper.shipped.problem for shipper in shippers] == [None] * 100
    assert sum(shipper.shipped.segments for shipper in shippers) == 200
    assert stored(server[1], "crowd%") == sorted(written)


def test_run_ships_what_comes_until_it_is_stopped(server: tuple[str, Path], tmp_path: Path) -> None:
    stop, shipper = threading.Event(), Shipper(tmp_path, server[0])
    thread = threading.Thread(target=shipper.run, args=(stop,))
    thread.start()
    written = fill(tmp_path, "late", 1)
    wait_until(lambda: shipper.shipped.segments == 1)
    stop.set()
    thread.join(timeout=10)
    assert not thread.is_alive()
    assert stored(server[1], "late") == written


@contextmanager
def proxy(target: int) -> Iterator[tuple[str, list[str]]]:
    """A real proxy, forwarding and tunnelling; every name leads to the port `target` here. What it was asked."""
    asked: list[str] = []

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while block := source.recv(65536):
                sink.sendall(block)
            sink.shutdown(socket.SHUT_WR)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked.append(f"{self.path} {self.headers['Host']} {self.headers['Proxy-Authorization']}")
            path = "/" + self.path.split("/", 3)[3]
            body = self.rfile.read(int(self.headers["Content-Length"]))
            head = [f"POST {path} HTTP/1.1", "Connection: close"]
            head += [f"{name}: {text}" for name, text in self.headers.items() if not name.startswith("Proxy")]
            self.close_connection = True
            with socket.create_connection(("127.0.0.1", target)) as onward:
                onward.sendall("\r\n".join([*head, "", ""]).encode() + body)
                pump(onward, self.connection)

        def do_CONNECT(self) -> None:
            asked.append(f"CONNECT {self.path} {self.headers['Proxy-Authorization']}")
            self.send_response(200)
            self.end_headers()
            self.close_connection = True
            with socket.create_connection(("127.0.0.1", target)) as onward:
                back = threading.Thread(target=pump, args=(onward, self.connection))
                back.start()
                pump(self.connection, onward)
                back.join()

        def log_message(self, *_: object) -> None:
            pass

    with threaded(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        yield f"127.0.0.1:{server.server_address[1]}", asked


def test_a_proxy_of_the_environment_is_used(
    server: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = fill(tmp_path, "proxied", 2)
    with proxy(port_of(server[0])) as (address, asked):
        monkeypatch.setenv("http_proxy", f"http://me:pass%20word@{address}")
        shipper = Shipper(tmp_path, "http://store.test:8321")
        shipper.ship_all()
    assert shipper.shipped.problem is None
    assert asked == ["http://store.test:8321/v1/ingest/batches store.test:8321 Basic bWU6cGFzcyB3b3Jk"] * 2
    assert stored(server[1], "proxied") == written


def port_of(url: str) -> int:
    return int(url.rstrip("/").rpartition(":")[2])


def test_https_goes_through_a_tunnel_that_sees_neither_token_nor_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "spool", "n1", 1)
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    making = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=store.test"]
    making += ["-addext", "subjectAltName=DNS:store.test", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(making, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with (
        scripted(TAKEN, closes=True) as (url, requests),
        tls_before(port_of(url), context) as outer,
        proxy(outer) as (address, asked),
    ):
        monkeypatch.setenv("https_proxy", address)
        distrusting = Shipper(tmp_path / "spool", "https://store.test", "secret-token-0123")
        distrusting.ship_all()
        assert "CERTIFICATE_VERIFY_FAILED" in (distrusting.shipped.problem or "")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        shipper = Shipper(tmp_path / "spool", "https://store.test", "secret-token-0123")
        shipper.ship_all()
    assert (shipper.shipped.segments, shipper.shipped.problem) == (1, None)
    assert asked == ["CONNECT store.test:443 None"] * 2
    assert [request["Authorization"] for request in requests] == ["Bearer secret-token-0123"]


@contextmanager
def tls_before(target: int, context: ssl.SSLContext) -> Iterator[int]:
    """The port of a TLS front before the port `target`, for two connections."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for _ in range(2):
                with suppress(OSError):
                    plain, _ = listening.accept()
                    with context.wrap_socket(plain, server_side=True) as outside:
                        request = b""
                        with socket.create_connection(("127.0.0.1", target)) as inside:
                            while b"\r\n\r\n" not in request or len(request) < length_of(request):
                                request += (block := outside.recv(65536))
                                inside.sendall(block)
                            while block := inside.recv(65536):
                                outside.sendall(block)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(timeout=20)


def length_of(request: bytes) -> int:
    head, _, _ = request.partition(b"\r\n\r\n")
    [header] = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return len(head) + 4 + int(header.partition(b":")[2])


@pytest.mark.parametrize(
    ("url", "proxies", "is_used"),
    [
        ("http://a.test", {"http_proxy": "http://p:1"}, True),
        ("http://a.test", {"https_proxy": "http://p:1"}, False),
        ("http://a.test", {"http_proxy": "http://p:1", "no_proxy": "b.test,.test"}, False),
        ("http://a.test", {"http_proxy": "http://p:1", "no_proxy": "*"}, False),
        ("http://127.0.0.1:8321", {"http_proxy": "http://p:1"}, False),
        ("http://[::1]:8321", {"http_proxy": "http://p:1"}, False),
        ("http://localhost", {"http_proxy": "http://p:1"}, False),
    ],
)
def test_which_way_is_taken(url: str, proxies: dict[str, str], is_used: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in proxies.items():
        monkeypatch.setenv(name, value)
    way = way_to(url)
    assert (way.prefix == url, way.connect().host == "p") == (is_used, is_used)


def test_a_prefix_of_the_server_is_kept() -> None:
    assert way_to("https://portal.example/node/n1/8321/").prefix == "/node/n1/8321"


@pytest.mark.parametrize(
    "url",
    [
        *("store.test:8321", "ftp://store.test", "http://", "http://a:b@store.test", "unix://relative.sock", "unix://"),
        *("http://store.test:99999", "http://store.test/?x=1", "http://[::1", ""),
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInputError, match="expected http://HOST:PORT"):
        way_to(url)


def test_a_proxy_of_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "socks5://p:1080")
    with pytest.raises(InvalidInputError, match="proxy socks5://p: expected http://HOST:PORT"):
        way_to("http://a.test")


def test_a_segment_that_the_server_refuses_is_kept_aside_and_the_next_one_sent(tmp_path: Path) -> None:
    fill(tmp_path / "spool", "n1", 2)
    first, second = sealed_segments(tmp_path / "spool")
    with scripted(refusal(422), TAKEN) as (url, asked):
        shipper = Shipper(tmp_path / "spool", url)
        assert shipper.ship_all() == LOOK_SECONDS
    assert (shipper.shipped.segments, shipper.shipped.rejected, shipper.shipped.problem) == (1, 1, None)
    assert first.with_suffix(".rejected").exists()
    assert [request["Crosswind-Segment"] for request in asked] == [first.name, second.name]


@pytest.mark.parametrize("status", [401, 403, 404, 407])
def test_what_a_person_must_change_is_tried_again_slowly(tmp_path: Path, status: int) -> None:
    fill(tmp_path / "spool", "n1", 2)
    with scripted(refusal(status), TAKEN, TAKEN) as (url, asked):
        shipper = Shipper(tmp_path / "spool", url, "old-token-01234567")
        assert LONGEST_SECONDS / 2 <= shipper.ship_all() <= LONGEST_SECONDS
        assert (len(asked), shipper.shipped.problem) == (1, f"HTTP {status}: no")
        assert len(sealed_segments(tmp_path / "spool")) == 2
        shipper.ship_all()
        assert (shipper.shipped.segments, shipper.shipped.problem) == (2, None)


def test_a_busy_server_says_how_long_to_wait(tmp_path: Path) -> None:
    fill(tmp_path / "spool", "n1", 1)
    soon = formatdate(time.time() + 40, usegmt=True)
    with scripted(refusal(429, Retry_After="30"), refusal(503, Retry_After=soon), refusal(503)) as (url, _):
        shipper = Shipper(tmp_path / "spool", url)
        assert 30 <= shipper.ship_all() <= 31
        assert 35 <= shipper.ship_all() <= 42
        assert shipper.ship_all() <= 4
    assert shipper.shipped.retries == 3


def test_a_segment_too_large_for_the_server_lets_others_pass_and_waits(tmp_path: Path) -> None:
    fill(tmp_path / "spool", "n1", 2)
    with scripted(refusal(413), TAKEN) as (url, _):
        shipper = Shipper(tmp_path / "spool", url)
        assert shipper.ship_all() == LOOK_SECONDS
        assert shipper.ship_all() == LOOK_SECONDS  # and does not ask again at once
    assert len(sealed_segments(tmp_path / "spool")) == 1


def test_a_server_without_zstd_gets_gzip(tmp_path: Path) -> None:
    fill(tmp_path / "spool", "n1", 2)
    with scripted(refusal(415, Accept_Encoding="gzip, identity"), TAKEN, TAKEN) as (url, asked):
        shipper = Shipper(tmp_path / "spool", url)
        assert shipper.ship_all() == 0.0
        shipper.ship_all()
    assert [request["Content-Encoding"] for request in asked] == ["zstd", "gzip", "gzip"]


@pytest.mark.parametrize(
    "answer",
    [
        (200, {"Content-Type": "text/html"}, b"<html>Please log in</html>"),
        (200, {"Content-Type": "application/json"}, b'{"batch_id": "0000"}'),
        (201, {"Content-Type": "application/json"}, b"[1]"),
        (204, {}, b""),
        (302, {"Location": "/login"}, b""),
        (400, {"Content-Type": "text/html"}, b"<html>Bad request</html>"),
    ],
)
def test_an_answer_that_is_not_our_servers_deletes_and_rejects_nothing(
    tmp_path: Path, answer: tuple[int, dict[str, str], bytes]
) -> None:
    fill(tmp_path / "spool", "n1", 1)
    with scripted(answer) as (url, _):
        shipper = Shipper(tmp_path / "spool", url)
        assert shipper.ship_all() >= LONGEST_SECONDS / 2
    assert len(sealed_segments(tmp_path / "spool")) == 1
    assert (shipper.shipped.segments, shipper.shipped.rejected) == (0, 0)


def test_something_that_speaks_no_http_is_waited_for(tmp_path: Path) -> None:
    fill(tmp_path / "spool", "n1", 1)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def greet() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"220 mail.example ESMTP\r\n")

        thread = threading.Thread(target=greet)
        thread.start()
        shipper = Shipper(tmp_path / "spool", f"http://127.0.0.1:{listening.getsockname()[1]}")
        shipper.ship_all()
        thread.join(timeout=10)
    assert "220 mail.example" in (shipper.shipped.problem or "")
    assert len(sealed_segments(tmp_path / "spool")) == 1


def test_files_that_are_no_segments_do_not_hold_up_the_others(tmp_path: Path) -> None:
    fill(tmp_path / "spool", "n1", 1)
    (tmp_path / "spool" / "0-notes.segment").write_bytes(b"x")
    (tmp_path / "spool" / "00000000000000000002-00000000.n1.segment").mkdir()
    with scripted(TAKEN) as (url, _):
        shipper = Shipper(tmp_path / "spool", url)
        shipper.ship_all()
    assert (shipper.shipped.segments, shipper.shipped.rejected) == (1, 1)
    assert (tmp_path / "spool" / "0-notes.rejected").exists()


def test_a_link_or_a_pipe_is_never_sent_and_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "00000000000000000001-00000000.n1.segment").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "spool" / "00000000000000000002-00000000.n1.segment")
    fill(tmp_path / "spool", "n1", 1)
    with scripted(TAKEN) as (url, asked):
        shipper = Shipper(tmp_path / "spool", url)
        shipper.ship_all()
        shipper.ship_all()
    assert len(asked) == shipper.shipped.segments == 1
    assert [record.getMessage().count("expected a plain file") for record in caplog.records] == [1, 1]


def test_a_segment_that_cannot_be_removed_does_not_hold_up_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(tmp_path / "spool", "n1", 2)
    [first, last] = sealed_segments(tmp_path / "spool")

    def replace() -> None:
        if first.is_file():
            first.unlink()
            first.mkdir()  # which even root cannot unlink

    with scripted(TAKEN, TAKEN, meanwhile=replace) as (url, _):
        assert Shipper(tmp_path / "spool", url).ship_all() == LOOK_SECONDS
    assert not last.exists()
    assert "the server has it, but it cannot be removed" in caplog.text


def test_a_connection_that_the_server_closed_meanwhile_is_opened_again(tmp_path: Path) -> None:
    fill(tmp_path, "n1", 2)
    with scripted(TAKEN, TAKEN, closes=True) as (url, asked):
        shipper = Shipper(tmp_path, url)
        shipper.ship_all()
    assert (len(asked), shipper.shipped.segments, shipper.shipped.retries) == (2, 2, 0)


def test_waits_double_up_to_five_minutes_and_are_never_alike() -> None:
    backoff = Backoff(seed=1)
    for ceiling in (1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300):
        assert 0 <= backoff.after_failure() <= ceiling
    assert len({Backoff(seed=number).after_failure() for number in range(50)}) == 50
    backoff.succeeded()
    assert backoff.after_failure(asked_seconds=10) <= 11


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (Answer(201, said={"batch_id": "b"}), Verdict.TAKEN),
        (Answer(200, said={"batch_id": "b"}), Verdict.TAKEN),
        (Answer(201, said={"batch_id": "other"}), Verdict.SLOWLY),
        (Answer(400, PROBLEM), Verdict.REFUSED),
        (Answer(422, PROBLEM), Verdict.REFUSED),
        (Answer(422, "text/html"), Verdict.SLOWLY),
        (Answer(404, PROBLEM), Verdict.SLOWLY),
        (Answer(408, PROBLEM), Verdict.LATER),
        (Answer(415, PROBLEM, codings=("gzip",)), Verdict.OTHER_CODING),
        (Answer(415, PROBLEM), Verdict.REFUSED),
        (Answer(500), Verdict.LATER),
        (Answer(502, "text/html"), Verdict.LATER),
    ],
)
def test_what_an_answer_means(answer: Answer, verdict: Verdict) -> None:
    assert verdict_on(answer, "b") is verdict


def test_a_token_comes_from_the_environment_or_a_file_of_our_own(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("from-the-file\n")
    file.chmod(0o600)
    assert ship_token({}) is None
    assert ship_token({"CROSSWIND_TOKEN_FILE": str(file)}) == "from-the-file"
    assert ship_token({"CROSSWIND_TOKEN": "first", "CROSSWIND_TOKEN_FILE": str(file)}) == "first"
    file.chmod(0o640)
    with pytest.raises(InvalidInputError, match=r"others may read it \(mode 0640\): chmod 600"):
        ship_token({"CROSSWIND_TOKEN_FILE": str(file)})
    with pytest.raises(UnavailableError, match="No such file"):
        ship_token({"CROSSWIND_TOKEN_FILE": str(tmp_path / "none")})
    with pytest.raises(InvalidInputError, match="CROSSWIND_TOKEN: expected visible ASCII"):
        ship_token({"CROSSWIND_TOKEN": "two\r\nlines"})


@pytest.mark.thorough
def test_every_packing_is_smaller_or_as_it_is() -> None:
    content = b'{"kind":"rows"}' * 1000
    assert packings()[0] == "zstd"
    assert {coding: len(pack(content, coding)) < 300 for coding in packings()} == {
        "zstd": True,
        "gzip": True,
        "identity": False,
    }

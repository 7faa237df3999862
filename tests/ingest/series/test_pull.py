"""Pulling from the real Prometheus, which scrapes the real node_exporter; and from servers that do not do as hoped."""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, quote

import pytest
from tests.conftest import free_port
from tests.ingest.exposition.test_in_prometheus import fetched, running, soon
from tests.ingest.trees import recorded_tree
from tests.needs import program

from crosswind.data.lake.lake import Lake
from crosswind.data.lake.publish import Staged
from crosswind.data.lake.storage import Published
from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.store.store import Store
from crosswind.ingest.series.pull import EVERYTHING, LAG_MS, Puller, Wanted
from crosswind.ingest.series.query import Server

CONFIG = """
scrape_configs:
  - job_name: node
    scrape_interval: 1s
    static_configs: [{{targets: ['127.0.0.1:{node}']}}]
"""
NOW_MS = 1_795_300_000_000


@contextmanager
def scraped(folder: Path) -> Iterator[str]:
    """A Prometheus that scraped node_exporter for some seconds."""
    node, own = free_port(), free_port()
    (folder / "prometheus.yml").write_text(CONFIG.format(node=node))
    exporter = (
        program("prometheus-node-exporter", "prometheus-node-exporter"),
        f"--path.procfs={recorded_tree('two_cores')}/proc",
        f"--path.sysfs={recorded_tree('two_cores')}/sys",
        f"--web.listen-address=127.0.0.1:{node}",
    )
    server = (
        program("prometheus", "prometheus"),
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{own}",
    )
    url = f"http://127.0.0.1:{own}"
    with running(*exporter), running(*server):
        soon(f"{url}/api/v1/query?query={quote('count_over_time(node_load1[1m]) > 4')}", '"value"')
        yield url


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def rows(store: Store, sql: str) -> list[tuple[Any, ...]]:
    with store.lake.connect() as connection:
        return connection.execute(sql).fetchall()


def prometheus_samples(url: str, query: str, until_ms: int) -> dict[int, float]:
    answer = json.loads(fetched(f"{url}/api/v1/query?query={quote(query)}&time={until_ms / 1000}"))
    [series] = answer["data"]["result"]
    return {round(at * 1000) * 10**6: float(text) for at, text in series["values"]}


def test_every_sample_is_stored_once_at_the_time_of_its_scrape(tmp_path: Path) -> None:
    with scraped(tmp_path) as url, Store.open(tmp_path / "home") as store:
        since, middle = now_ms() - 60_000, now_ms() - 3_000
        puller = Puller(store, "test", Server(url), Wanted(), lambda: now_ms() + LAG_MS - 1_500)
        first = puller.pull(since, middle)
        second = puller.pull()
        assert (first.windows, second.since_ms) == (1, middle)
        assert first.samples > 500
        until = second.until_ms
        user = prometheus_samples(url, 'node_cpu_seconds_total{cpu="0",mode="user"}[1m]', until)
        assert set(user.values()) == {486.15}
        stored = rows(store, "select ts_ns, user_seconds_total, node from cpu where device = 'cpu0' order by ts_ns")
        assert [(ts_ns, pytest.approx(value)) for ts_ns, value, _ in stored] == sorted(user.items())
        assert {node for *_, node in stored} == {"127.0.0.1"}
        up = prometheus_samples(url, 'up{job="node"}[1m]', until)
        assert dict(rows(store, "select ts_ns, value from series where name = 'up'")) == up
        kinds = dict(rows(store, "select name, kind from series where name like 'go_%' group by all"))
        assert (kinds["go_goroutines"], kinds["go_memstats_mallocs_total"]) == ("gauge", "counter")
        selector = quote(EVERYTHING + "[2m]")
        asked = fetched(f"{url}/api/v1/query?query={selector}&time={until / 1000}")
        everything = [len(series["values"]) for series in json.loads(asked)["data"]["result"]]
        assert first.samples + second.samples == sum(everything)
        again = Puller(store, "test", Server(url), Wanted(), lambda: until + LAG_MS).pull()
        assert (again.samples, again.windows) == (0, 0)


def test_a_selector_and_a_step_ask_for_less(tmp_path: Path) -> None:
    with scraped(tmp_path) as url, Store.open(tmp_path / "home") as store:
        wanted = Wanted(('node_load1{job="node"}', "node_memory_MemTotal_bytes"), 2_000)
        until = now_ms() // 2000 * 2000
        pulled = Puller(store, "test", Server(url), wanted, lambda: now_ms() + LAG_MS).pull(until - 4_000, until)
        assert store.lake.sets() == ["cpu", "memory"]
        times = [ts_ns for (ts_ns,) in rows(store, "select ts_ns from memory order by ts_ns")]
        assert times == [(until - 2_000) * 10**6, until * 10**6]
        assert rows(store, "select distinct total_bytes from memory") == [(25276502016,)]
        assert (pulled.samples, pulled.rows) == (4, 4)
        with pytest.raises(InvalidInputError, match=r"parse error.*; expected selectors such as"):
            Puller(store, "test", Server(url), Wanted(("node load",)), now_ms).pull()


class Answers(BaseHTTPRequestHandler):
    """Says what the test wants."""

    status: int = 200
    body: Any = None
    asked: ClassVar[list[tuple[str, dict[str, list[str]], str | None]]] = []

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())
        self.asked.append((self.path, form, self.headers.get("Authorization")))
        body = self.body(self.path, form) if callable(self.body) else (self.status, self.body)
        content = body[1] if isinstance(body[1], bytes) else json.dumps(body[1]).encode()
        self.send_response(body[0])
        self.send_header("Location", "http://elsewhere.example/")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def answering(status: int, body: Any) -> Iterator[tuple[str, Any]]:
    answers = type("Own", (Answers,), {"status": status, "body": staticmethod(body) if callable(body) else body})
    answers.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), answers) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", answers.asked
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b"Unauthorized", r"Unauthorized \(401\); set CROSSWIND_PROMETHEUS_TOKEN to a token for it"),
        (302, b"", "it moved to http://elsewhere.example/; use that URL"),
        (404, b"not found", r"Not Found \(404\)"),
        (200, b"<html>", "answers, but not as a Prometheus does; is it one?"),
        (200, {"data": {"result": [{"metric": {"__name__": "a"}, "values": [["x", "y"]]}]}}, "not as a Prometheus"),
        (503, {"error": "query timed out"}, r"query timed out \(503\)"),
    ],
)
def test_a_refusal_names_the_server_and_what_to_do(tmp_path: Path, status: int, body: object, said: str) -> None:
    with answering(status, body) as (url, asked), Store.open(tmp_path / "home") as store:
        with pytest.raises(UnavailableError, match=said) as caught:
            Puller(store, "test", Server(url, "secret"), Wanted(), now_ms).pull()
        assert url in str(caught.value)
        assert "secret" not in str(caught.value)
        assert {header for *_, header in asked} == {"Bearer secret"}
        assert store.lake.sets() == []


def test_nobody_listening_and_what_is_no_url_are_reported(tmp_path: Path) -> None:
    with Store.open(tmp_path / "home") as store:
        url = f"http://127.0.0.1:{free_port()}"
        with pytest.raises(UnavailableError, match=rf"{url}: .*refused; is a Prometheus listening there\?"):
            Puller(store, "test", Server(url), Wanted(), now_ms).pull()
    for text in ("localhost:9090", "file:///etc/passwd", "http://", "http://a/?x=1"):
        with pytest.raises(InvalidInputError, match="expected the URL of a Prometheus"):
            Server(text)
    with pytest.raises(InvalidInputError, match="expected no password in the URL"):
        Server("http://user:word@host:9090")


def one_a_second(path: str, form: dict[str, list[str]]) -> tuple[int, object]:
    """A server with one series, a sample a second, that refuses more than ten seconds at once."""
    if path.endswith("metadata"):
        return 200, {"data": {}}
    length = int(form["query"][0].removeprefix(EVERYTHING)[1:-3])
    if length > 10_000:
        return 422, {"error": "query processing would load too many samples into memory in query execution"}
    end = round(float(form["time"][0]) * 1000)
    times = [ms for ms in range((end - length) // 1000 * 1000, end + 1, 1000) if ms >= end - length]
    series = {"metric": {"__name__": "a", "job": "b"}, "values": [[ms / 1000, str(ms % 7)] for ms in times]}
    return 200, {"data": {"result": [series]}}


def test_windows_shrink_until_the_server_answers_and_no_sample_comes_twice(tmp_path: Path) -> None:
    with answering(200, one_a_second) as (url, asked), Store.open(tmp_path / "home") as store:
        pulled = Puller(store, "test", Server(url), Wanted(), lambda: NOW_MS).pull(NOW_MS - 130_000)
        stored = rows(store, "select ts_ns, value from series order by ts_ns")
        first, last = NOW_MS - 129_000, NOW_MS - LAG_MS
        assert stored == [(ms * 10**6, ms % 7) for ms in range(first, last + 1, 1000)]
        assert (pulled.samples, pulled.rows) == (100, 100)
        assert len(asked) > pulled.windows > 9


class DyingLake(Lake):
    """Publishes, and is killed."""

    def publish(self, staged: Sequence[Staged]) -> Published:
        super().publish(staged)
        raise KeyboardInterrupt


def test_a_pull_that_was_killed_is_taken_up_without_doubling(tmp_path: Path) -> None:
    with answering(200, one_a_second) as (url, _), Store.open(tmp_path / "home") as store:
        dying = replace(store)
        dying.__dict__["lake"] = DyingLake(store.lake.root)
        with pytest.raises(KeyboardInterrupt):
            Puller(dying, "test", Server(url), Wanted(), lambda: NOW_MS).pull(NOW_MS - 38_000)
        assert rows(store, "select count(*) from series") == [(8,)]
        later = Puller(store, "test", Server(url), Wanted(), lambda: NOW_MS + 3_000).pull(NOW_MS - 38_000)
        assert later.samples == 11
        assert rows(store, "select count(*), count(distinct ts_ns) from series") == [(11, 11)]


@pytest.mark.parametrize("status", [503, 504])
def test_a_query_that_takes_too_long_is_repeated_for_less(tmp_path: Path, status: int) -> None:
    def slow(path: str, form: dict[str, list[str]]) -> tuple[int, object]:
        code, body = one_a_second(path, form)
        return (status, {"error": "query timed out in expression evaluation"}) if code == 422 else (code, body)

    with answering(200, slow) as (url, asked), Store.open(tmp_path / "home") as store:
        pulled = Puller(store, "test", Server(url), Wanted(), lambda: NOW_MS).pull(NOW_MS - 130_000)
        assert (pulled.samples, pulled.rows) == (100, 100)
        lengths = [int(form["query"][0].removeprefix(EVERYTHING)[1:-3]) for _, form, _ in asked if form]
        assert sum(length > 10_000 for length in lengths) < 5  # it does not try so much again and again


def test_a_server_that_says_nothing_is_queried_for_less(tmp_path: Path) -> None:
    over = threading.Event()

    def silent(path: str, form: dict[str, list[str]]) -> tuple[int, object]:
        code, body = one_a_second(path, form)
        if code == 422:
            over.wait(10)
        return code, body

    with answering(200, silent) as (url, _), Store.open(tmp_path / "home") as store:
        pulled = Puller(store, "test", Server(url, timeout_seconds=0.5), Wanted(), lambda: NOW_MS).pull(NOW_MS - 70_000)
        over.set()
        assert (pulled.samples, pulled.rows) == (40, 40)


def test_native_histograms_are_counted_and_reported(tmp_path: Path) -> None:
    def both(path: str, form: dict[str, list[str]]) -> tuple[int, object]:
        code, body = one_a_second(path, form)
        if path.endswith("metadata"):
            return code, body
        end = float(form["time"][0])
        histogram = {"metric": {"__name__": "h"}, "histograms": [[end, {"count": "5"}], [end - 100, {"count": "5"}]]}
        return 200, {"data": {"result": [histogram]}}

    with answering(200, both) as (url, _), Store.open(tmp_path / "home") as store:
        pulled = Puller(store, "test", Server(url), Wanted(), lambda: NOW_MS).pull(NOW_MS - 50_000)
        assert pulled.notes == ["1 samples are native histograms: left out; expected classic ones"]


def test_an_end_before_the_beginning_is_refused_or_nothing_to_do(tmp_path: Path) -> None:
    with answering(200, one_a_second) as (url, asked), Store.open(tmp_path / "home") as store:
        puller = Puller(store, "test", Server(url), Wanted(), lambda: NOW_MS)
        said = r"until 2026-11-21T22:25:00Z: expected later than 2026-11-21T22:26:40Z \(--since\)"
        with pytest.raises(InvalidInputError, match=said):
            puller.pull(NOW_MS, NOW_MS - 100_000)
        with pytest.raises(InvalidInputError, match="expected later than"):
            puller.pull(until_ms=1_577_836_800_000)
        assert asked == []
        assert puller.pull(NOW_MS - 60_000, NOW_MS - 50_000).samples == 10
        again = puller.pull(until_ms=NOW_MS - 55_000)
        assert (again.samples, again.notes) == (
            0,
            ["nothing to pull: it was pulled up to 2026-11-21T22:25:50Z before"],
        )

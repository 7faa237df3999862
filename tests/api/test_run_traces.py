"""Traces of runs over HTTP: the list, the report, the events of a time, the file for Perfetto; and to whom."""

import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from starlette.testclient import TestClient
from tests.api.two_users import ANN, MARK, client_of
from tests.serving import answering
from tests.traced_run import LATE_NS, store_traces

from crosswind.client import stored_traces
from crosswind.client.local import Local
from crosswind.client.remote import Remote
from crosswind.data.schema.access import OWNER
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.own_runs import erase
from crosswind.data.store.store import Store
from crosswind.data.traces.trace import RankTrace

START_NS = 1_700_000_000_000_000_000
ASKERS = 64


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path) as opened:
        with opened.catalog.write() as session:
            for user in ("ann", MARK):
                times = {"started_ns": START_NS, "ended_ns": START_NS + 10**9}
                session.runs.merge(Run(f"{user}-run", "gpt", "lab", RunState.COMPLETED, 2, user=user, **times))  # type: ignore[arg-type]
        for user in ("ann", MARK):
            store_traces(opened, f"{user}-run", mark=user)
        yield opened


@pytest.fixture
def client(store: Store) -> TestClient:
    return client_of(store, OWNER)


def test_runs_with_traces_are_listed(client: TestClient) -> None:
    rows = client.get("/v1/traces").json()["traces"]
    assert [(row["run_id"], row["traced_ranks"], row["events"]) for row in rows] == [
        ("bob-run", 2, 10),
        ("ann-run", 2, 10),
    ]
    assert client.get("/v1/traces?format=csv").text.splitlines()[1].startswith('"bob-run",2,10,')


def test_the_report_names_the_late_rank(client: TestClient) -> None:
    report = client.get("/v1/runs/ann-run/trace?top=1").json()
    assert report["slowest_rank"] == 1
    assert report["ranks"][0]["waited_for_ns"] == [0, LATE_NS]
    assert len(report["kernels"]) == 1


def test_more_names_than_are_kept_are_refused_and_not_cut_silently(store: Store, client: TestClient) -> None:
    assert client.get("/v1/runs/ann-run/trace?top=1001").status_code == 422
    with pytest.raises(InvalidInputError, match="top 1001: expected at most 1000"):
        Local(store).trace("ann-run", top=1001)


def test_events_of_a_time_come_in_order_and_part_by_part(client: TestClient) -> None:
    address = "/v1/runs/ann-run/trace/events"
    first = client.get(f"{address}?limit=3").json()
    rest = client.get(f"{address}?limit=3&cursor={first['next']}").json()
    begins = [row["begin_ns"] - START_NS for row in (*first["events"], *rest["events"])]
    assert begins == [0, 0, 1000, 1000, 2000, 2000]
    window = client.get(f"{address}?rank=1&from_ns={START_NS + 1500}&to_ns={START_NS + 5001}").json()["events"]
    assert [row["kind"] for row in window] == ["call", "kernel"]
    assert window[1]["duration_seconds"] == pytest.approx((10_000 + LATE_NS) / 1e9)
    table = pa.ipc.open_stream(
        io.BytesIO(client.get(f"{address}?format=arrow&fields=name,begin_ns").content)
    ).read_all()
    assert table.column_names == ["name", "begin_ns"]
    assert len(table) == 10


def test_the_file_for_perfetto_has_a_process_a_rank(client: TestClient) -> None:
    answer = client.get("/v1/runs/ann-run/trace/perfetto")
    assert "attachment" in answer.headers["content-disposition"]
    assert {event["pid"] for event in answer.json()["traceEvents"]} == {0, 1}


@pytest.fixture
def pair(store: Store) -> str:
    """A second run with traces of the same user."""
    times = {"started_ns": START_NS, "ended_ns": START_NS + 10**9}
    with store.catalog.write() as session:
        session.runs.merge(Run("second", "gpt", "lab", RunState.COMPLETED, 2, user="ann", **times))  # type: ignore[arg-type]
    store_traces(store, "second")
    return "second"


def test_the_difference_of_two_runs_is_one_at_all_doors(store: Store, client: TestClient, pair: str) -> None:
    answer = client.get(f"/v1/runs/ann-run/trace/difference?with={pair}").json()
    assert answer["first"]["over"] == answer["second"]["over"] == "device"
    parts = sum(part["seconds"]["value"] for part in answer["parts"]) + answer["unexplained"]["value"]
    assert parts == pytest.approx(answer["seconds"]["value"], abs=1e-9)
    with answering(store.home) as url, Remote(url) as remote:
        sent, own = remote.trace_diff("ann-run", pair), Local(store).trace_diff("ann-run", pair)
    assert (sent.sentence, sent.first, sent.second, sent.notes) == (own.sentence, own.first, own.second, own.notes)
    assert [part.operator for part in sent.parts] == [part.operator for part in own.parts]


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("", 422, "with"),
        ("?with=ann-run", 422, "compared with itself"),
        ("?with=nobody", 404, "nobody"),
        ("?with=bare", 422, "has no steps"),
        (f"?with={MARK}-run", 404, f"{MARK}-run"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(store: Store, query: str, status: int, words: str) -> None:
    with store.catalog.write() as session:
        session.runs.merge(Run("bare", "gpt", "lab", RunState.COMPLETED, user="ann"))
    answer = client_of(store, ANN).get(f"/v1/runs/ann-run/trace/difference{query}")
    assert (answer.status_code, words in answer.text) == (status, True), answer.text


def test_an_answer_is_kept_for_the_api_and_the_page_whatever_else_is_stored(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    read = stored_traces.stream_of_run

    def counted(here: Store, run_id: str) -> Iterator[RankTrace]:
        asked.append(run_id)
        return read(here, run_id)

    monkeypatch.setattr(stored_traces, "stream_of_run", counted)
    client = client_of(store, OWNER)
    first = client.get("/v1/runs/ann-run/trace?top=2").json()
    with store.catalog.write() as session:
        session.runs.merge(Run("other", "gpt", "lab", RunState.COMPLETED))
    assert client.get("/v1/runs/ann-run/trace").json()["kernels"][:2] == first["kernels"]
    assert asked == ["ann-run"]


@pytest.mark.parametrize("part", ["trace", "trace/events", "trace/perfetto"])
def test_traces_of_another_user_are_as_those_of_nobody(store: Store, part: str) -> None:
    asked = client_of(store, ANN)
    assert asked.get(f"/v1/runs/ann-run/{part}").status_code == 200
    assert asked.get(f"/v1/runs/{MARK}-run/{part}").status_code == 404
    assert [row["run_id"] for row in asked.get("/v1/traces").json()["traces"]] == ["ann-run"]


@pytest.mark.parametrize("part", ["trace", "trace/events", "trace/perfetto"])
def test_an_empty_store_has_no_traces(tmp_path: Path, part: str) -> None:
    with Store.open(tmp_path / "empty") as empty:
        with empty.catalog.write() as session:
            session.runs.merge(Run("bare", "gpt", "lab", RunState.COMPLETED))
        asked = client_of(empty, OWNER)
        assert asked.get("/v1/traces").json()["traces"] == []
        answer = asked.get(f"/v1/runs/bare/{part}")
        assert (answer.status_code, "has no traces" in answer.json()["detail"]) == (404, True)


@pytest.mark.parametrize("query", ["rank=-1", "rank=x", "from_ns=1.5", "limit=0", "sort=name", "colour=red"])
def test_impossible_windows_are_refused(client: TestClient, query: str) -> None:
    assert client.get(f"/v1/runs/ann-run/trace/events?{query}").status_code == 422


def test_an_erased_run_leaves_no_trace(store: Store) -> None:
    assert erase(store, "ann-run", who="ann") == 12
    assert [one.run_id for one in Local(store).traced_runs()] == [f"{MARK}-run"]


def test_many_ask_at_once_and_a_client_has_the_same_answer(store: Store) -> None:
    with answering(store.home) as url, Remote(url) as remote:
        expected = Local(store).trace("ann-run")
        assert remote.trace("ann-run") == expected
        assert remote.traced_runs() == Local(store).traced_runs()
        with ThreadPoolExecutor(ASKERS) as pool:
            answers = list(pool.map(lambda _: _asked(url), range(ASKERS)))
    assert all(answer == expected for answer in answers)


def _asked(url: str) -> object:
    with Remote(url) as remote:
        return remote.trace("ann-run")

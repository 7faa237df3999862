"""Lists of runs, jobs and nodes, and reports of one: the same from a store here and from a server."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.cli.conftest import nightly, run_of, steps_of
from tests.serving import answering

from crosswind.client.local import Local
from crosswind.client.protocol import Client
from crosswind.client.remote import Remote
from crosswind.client.run_names import run_named
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.errors import InvalidInputError, MalformedError, NotFoundError
from crosswind.data.schema.run import Rank, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store

RUNS = 5


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Local, Remote]]:
    """Clients of one store of five runs of two workloads and three jobs, one of the store, one of a server over it."""
    home = tmp_path_factory.mktemp("lists") / "home"
    with Store.open(home) as store:
        for number in range(RUNS):
            workload = "toy" if number < 3 else "other"
            with store.catalog.write() as session:
                session.runs.merge(run_of(workload, number, {"batch": 8, "fused": True, "rate": 0.5, "kind": "adam"}))
                session.ranks.merge(Rank(f"{workload}-{number:02}", 0, "n1", 42, 7))
        store.lake.append("steps", to_table(STEP, steps_of("toy-01", 1)))
        store.jobs.put(*[nightly(number) for number in range(3)])
        with answering(home) as url:
            yield Local(store), Remote(url)


def ids(client: Client, **conditions: str) -> list[str]:
    return [run.run_id for run in client.runs(**conditions)]  # type: ignore[arg-type]


def test_both_give_the_same_lists(clients: tuple[Local, Remote]) -> None:
    local, remote = clients
    assert local.runs() == remote.runs()
    assert local.run_outcomes("toy") == remote.run_outcomes("toy")
    assert local.run_report("toy-01") == remote.run_report("toy-01")
    assert local.jobs() == remote.jobs()
    assert local.job("1", "lab") == remote.job("1", "lab")
    assert local.nodes() == remote.nodes() == ()
    assert ids(local) == [f"other-{number:02}" for number in (4, 3)] + [f"toy-{number:02}" for number in (2, 1, 0)]


@pytest.mark.parametrize("place", [0, 1])
def test_runs_are_narrowed(clients: tuple[Local, Remote], place: int) -> None:
    client = clients[place]
    assert ids(client, workload="toy") == ["toy-02", "toy-01", "toy-00"]
    assert ids(client, system="alps") == []
    assert ids(client, id_end="y-01") == ["toy-01"]
    assert ids(client, id_end="%") == []
    assert client.runs(state=RunState.FAILED) == ()
    assert len(client.runs(limit=2)) == 2


@pytest.mark.parametrize("place", [0, 1])
def test_a_run_is_named_by_its_id_the_end_of_it_or_as_the_latest(clients: tuple[Local, Remote], place: int) -> None:
    client = clients[place]
    assert run_named(client, "latest").run_id == "other-04"
    assert run_named(client, "toy-01").run_id == run_named(client, "y-01").run_id == "toy-01"
    with pytest.raises(NotFoundError, match="run '-01' is not stored"):
        run_named(client, "-01")
    with pytest.raises(NotFoundError, match="run 'nosuch' is not stored"):
        run_named(client, "nosuch")


def test_an_end_of_several_ids_names_them(tmp_path: Path) -> None:
    with Local(Store.open(tmp_path)) as client:
        with pytest.raises(NotFoundError, match="no runs are stored yet"):
            run_named(client, "latest")
        with client.store.catalog.write() as session:
            for workload in ("a-train", "b-train"):
                session.runs.merge(run_of(workload, 1, {}))
        with pytest.raises(InvalidInputError, match="run 'train-01' could be b-train-01, a-train-01: give more"):
            run_named(client, "train-01")
        assert run_named(client, "a-train-01").run_id == "a-train-01"


def test_a_server_of_something_else_is_noticed() -> None:
    with serving_nonsense() as url, pytest.raises(MalformedError, match="expected one list"):
        Remote(url).runs()


@contextmanager
def serving_nonsense() -> Iterator[str]:
    """Yield the URL of a server that answers everything with an object without a list."""

    class Nonsense(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "9")
            self.end_headers()
            self.wfile.write(b'{"run":1}')

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Nonsense) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()

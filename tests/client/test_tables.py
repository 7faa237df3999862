"""Lists as tables: the same from a store here and from a server, in JSON or in Arrow's format."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pandas as pd
import pyarrow as pa
import pytest
from tests.cli.conftest import nightly, run_of, steps_of
from tests.client.faulty import Does, faulty
from tests.models.tuner.service.service_contract import STUDY
from tests.serving import answering

import crosswind.client.tables.tables as limits
from crosswind.client.local import Local
from crosswind.client.protocol import Client
from crosswind.client.remote import Remote
from crosswind.client.tables.columns import schema_of, table_of
from crosswind.client.tables.table import Table
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.answers.jobs import ListedJob
from crosswind.data.schema.errors import NotFoundError, UnavailableError
from crosswind.data.schema.run import RunState
from crosswind.data.schema.series_question import SeriesQuestion
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store
from crosswind.models.tuner.service.service import Lease

RUNS = 5
BOTH = pytest.mark.parametrize("place", [0, 1])


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, Client]]:
    """Clients of one store: of the store itself, and of a server over it."""
    home = tmp_path_factory.mktemp("tables") / "home"
    with Store.open(home) as store:
        for number in range(RUNS):
            configuration = {"batch": 8, "fused": True, "rate": 0.5} if number < 4 else {"kind": "adam", "batch": 16}
            with store.catalog.write() as session:
                session.runs.merge(run_of("toy", number, configuration))
        store.lake.append("steps", to_table(STEP, steps_of("toy-01", 1)))
        store.jobs.put(*[nightly(number) for number in range(3)])
        local = Local(store)
        local.studies.create(STUDY)
        [trial] = local.studies.suggest(STUDY.name, 1, Lease("me", 60))
        local.studies.complete(STUDY.name, trial.trial_id, 0.25, owner="me", outcomes={"loss": 1.5})
        with answering(home) as url, Remote(url) as remote:
            yield local, remote


def tables(client: Client) -> dict[str, Table]:
    every = client.tables
    return {
        "runs": every.runs(),
        "steps": every.steps("toy-01"),
        "jobs": every.jobs(),
        "nodes": every.nodes(),
        "trials": every.trials(STUDY.name),
        "series": every.series(SeriesQuestion(("step.duration_seconds",), runs=("toy-01",))),
    }


@pytest.mark.parametrize("name", ["runs", "steps", "jobs", "nodes", "trials", "series"])
def test_both_give_the_same_tables(clients: tuple[Client, Client], name: str) -> None:
    here, there = (tables(client)[name].to_arrow() for client in clients)
    assert here.schema == there.schema
    assert here.to_pylist() == there.to_pylist()
    assert here.num_rows > 0 or name == "nodes"


@BOTH
def test_a_frame_has_proper_types(clients: tuple[Client, Client], place: int) -> None:
    runs = clients[place].tables.runs().to_pandas()
    assert [str(runs[name].dtype) for name in ("workload", "state", "world_size", "shared", "run_seconds")] == [
        "category",
        "category",
        "Int64",
        "boolean",
        "float64",
    ]
    assert isinstance(runs["started_at"].dtype, pd.DatetimeTZDtype)
    assert (runs["started_ns"] == runs["started_at"].astype("int64")).all()
    assert list(runs["configuration.batch"]) == [16, 8, 8, 8, 8]
    assert str(runs["configuration.batch"].dtype) == "Int64"
    assert list(runs["configuration.kind"].isna()) == [False, True, True, True, True]
    assert isinstance(runs["tags"][0], dict)
    assert list(runs.groupby("workload", observed=True).size()) == [RUNS]


@BOTH
def test_steps_are_a_row_a_step_and_rank(clients: tuple[Client, Client], place: int) -> None:
    client = clients[place]
    steps = client.tables.steps("toy-01").to_pandas()
    assert len(steps) == len(steps_of("toy-01", 1)["step"])
    assert steps[["step", "rank"]].apply(tuple, axis=1).is_monotonic_increasing
    assert set(client.tables.steps("toy-01", rank=0).to_pandas()["rank"]) <= {0}
    with pytest.raises(NotFoundError, match="nosuch"):
        client.tables.steps("nosuch").to_arrow()


@BOTH
def test_rows_are_chosen_by_conditions(clients: tuple[Client, Client], place: int) -> None:
    every = clients[place].tables
    assert every.runs("nosuch").to_arrow().num_rows == 0
    assert every.runs("toy", state=RunState.COMPLETED).to_arrow().num_rows == RUNS
    assert every.jobs("nosuch").to_pandas().empty
    assert every.trials(STUDY.name).to_pandas()["outcomes"][0] == {"loss": 1.5}


@BOTH
def test_all_parts_come_one_after_another(
    clients: tuple[Client, Client], place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {name: table.to_arrow() for name, table in tables(clients[place]).items()}
    monkeypatch.setattr(limits, "PART_ROWS", 2)
    monkeypatch.setattr(limits, "STEP_ROWS", 2)
    monkeypatch.setattr("crosswind.client.http.ROWS_MAX", 2)
    for name, table in tables(clients[place]).items():
        batches = list(table.batches())
        assert pa.Table.from_batches(batches, table.to_arrow().schema).to_pylist() == whole[name].to_pylist()
        assert place or max((len(batch) for batch in batches), default=0) <= 2 or name in ("trials", "series")


def test_other_libraries_read_it_as_a_stream(clients: tuple[Client, Client]) -> None:
    table = clients[1].tables.jobs()
    assert pa.table(table).num_rows == 3
    assert "to_pandas()" in repr(table)


def test_a_servers_arrow_is_taken_as_it_comes_part_by_part() -> None:
    schema = pa.schema([("run_id", pa.string()), ("newer", pa.int64())])
    first, second = (pa.table({"run_id": [name], "newer": [1]}, schema) for name in "ab")
    link = '</node/v1/run-outcomes?cursor=abc%3D&workload=toy>; rel="next"'
    with faulty(arrow(first, fields=f"Link: {link}\r\n"), arrow(second)) as server, Remote(server.url) as client:
        assert client.tables.runs("toy").to_arrow().to_pydict() == {"run_id": ["a", "b"], "newer": [1, 1]}
    assert [head.splitlines()[0] for head in server.requests] == [
        "GET /v1/run-outcomes?workload=toy HTTP/1.1",
        "GET /v1/run-outcomes?workload=toy&cursor=abc%3D HTTP/1.1",
    ]
    assert server.fields("Accept")[0].startswith("application/vnd.apache.arrow.stream")


def test_an_arrow_that_breaks_off_is_no_table() -> None:
    whole = arrow(pa.table({"run_id": ["a"] * 10_000})).sends
    for broken in (Does(whole[:-4000], closes=True), Does(whole[:-4000], resets=True)):
        with (
            faulty(broken) as server,
            Remote(server.url) as client,
            pytest.raises(UnavailableError, match="the answer broke off"),
        ):
            client.tables.runs().to_arrow()


def test_a_part_that_is_enough_ends_the_request() -> None:
    with faulty(arrow(pa.table({"run_id": ["a"] * 1000}), 100)) as server, Remote(server.url) as client:
        assert len(next(iter(client.tables.runs().batches()))) <= 100


def arrow(table: pa.Table, rows: int = 1000, fields: str = "") -> Does:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    content = sink.getvalue().to_pybytes()
    kind = "Content-Type: application/vnd.apache.arrow.stream\r\n"
    head = f"HTTP/1.1 200 OK\r\n{kind}Content-Length: {len(content)}\r\n{fields}\r\n"
    return Does(head.encode() + content)


def test_rows_lack_what_an_older_server_does_not_send() -> None:
    schema = schema_of(ListedJob)
    row = table_of([{"job_id": "1", "nodes": ["n1"], "elapsed_seconds": 3}], schema).to_pylist()[0]
    assert (row["job_id"], row["nodes"], row["elapsed_seconds"], row["user"]) == ("1", ["n1"], 3.0, None)


def test_objects_are_json(clients: tuple[Client, Client]) -> None:
    runs = clients[0].tables.runs().to_arrow()
    assert json.loads(runs["configuration"][0].as_py()) == {"kind": "adam", "batch": 16}


def test_without_pyarrow_it_is_said_how_to_get_it() -> None:
    code = """
import sys; sys.modules["pyarrow"] = None
import crosswind
try:
    crosswind.connect("http://127.0.0.1:9").tables
except Exception as error:
    print(type(error).__name__, error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == f"{UnavailableError.__name__} tables need pyarrow: pip install 'crosswind[tables]'"

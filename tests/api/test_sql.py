"""SQL over HTTP: forms of the answer, its errors, and its end with the client."""

import io
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from starlette.testclient import TestClient
from tests.api.access.issuing import issued
from tests.api.two_users import ANN, RUNS, client_of, fill
from tests.serving import answering, own_client

from crosswind.api.app import create_app
from crosswind.client.local import Local
from crosswind.client.remote import Remote
from crosswind.data.schema.access import OWNER
from crosswind.data.store.store import Store

FOREVER = "with recursive t(n) as (select 1 union all select n + 1 from t) select max(n) from t"
COUNT = "select user, count(*) as runs from runs group by all order by user"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("two") / "store") as opened:
        fill(opened)
        yield opened


@pytest.fixture(scope="module")
def client(two: Store) -> TestClient:
    return client_of(two, OWNER)


def test_a_user_counts_their_own_rows_and_the_owner_all(two: Store, client: TestClient) -> None:
    of_all = client.post("/v1/sql", json={"query": COUNT}).json()
    assert of_all["columns"] == [{"name": "user", "type": "string"}, {"name": "runs", "type": "int64"}]
    assert of_all["rows"] == [["ann", RUNS + 2], ["bob", RUNS + 2]]
    assert of_all["is_complete"] is True
    assert of_all["read"] == [{"name": "runs", "rows": 2 * RUNS + 4}]
    of_ann = client_of(two, ANN).post("/v1/sql", json={"query": COUNT}).json()
    assert of_ann["rows"] == [["ann", RUNS + 2]]
    assert of_ann["read"] == [{"name": "runs", "rows": RUNS + 2}]


def test_tables_are_listed_with_their_columns_and_units(client: TestClient) -> None:
    tables = {table["name"]: table for table in client.get("/v1/sql").json()["tables"]}
    assert {"runs", "ranks", "verdicts", "studies", "trials", "reports", "jobs", "step", "columns"} <= set(tables)
    units = {column["name"]: column["unit"] for column in tables["step"]["columns"]}
    assert units["duration_seconds"] == "s"
    assert not {"tokens", "audit", "secrets", "pseudonyms", "job"} & set(tables)


def test_csv_and_arrow_say_in_a_header_whether_there_is_more(client: TestClient) -> None:
    asked = {"query": "select run_id, nodes, null as nothing, [1, 2] as list from runs order by run_id", "limit": 1}
    as_csv = client.post("/v1/sql", json={**asked, "format": "csv"})
    assert as_csv.headers["content-type"].startswith("text/csv")
    assert as_csv.headers["crosswind-complete"] == "false"
    assert as_csv.text.splitlines()[0] == "run_id,nodes,nothing,list"
    assert as_csv.text.splitlines()[1].endswith(',,"[1, 2]"')
    formula = client.post("/v1/sql", json={"query": "select '=1+1' as a, -1 as b, '' as c", "format": "csv"})
    assert formula.text.splitlines()[1] == "'=1+1,-1,"
    as_arrow = client.post("/v1/sql", json={**asked, "format": "arrow"})
    table = pa.ipc.open_stream(io.BytesIO(as_arrow.content)).read_all()
    assert table.to_pylist() == [{**table.to_pylist()[0], "run_id": "ann-run0", "nothing": None, "list": [1, 2]}]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"query": "select nothing from runs"}, 422, 'Referenced column "nothing" not found'),
        ({"query": "select * from nope"}, 422, "table 'nope' is unknown, expected one of"),
        ({"query": "drop table runs"}, 422, "query: expected one SELECT, got DROP"),
        ({"query": "select 1", "limit": 0}, 422, "limit"),
        ({"query": "select 1", "limit": 10_001}, 422, "limit"),
        ({"query": "select 1", "format": "xml"}, 422, "format"),
        ({"query": "select ?", "parameters": [[1]]}, 422, "parameters"),
        ({"query": ""}, 422, "query"),
        ({}, 422, "query"),
    ],
)
def test_what_cannot_be_asked_is_refused_as_a_problem(
    client: TestClient, body: dict[str, object], status: int, said: str
) -> None:
    answer = client.post("/v1/sql", json=body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert said in answer.text.replace("\\", "")


def test_an_empty_store_has_its_tables_and_no_rows(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        client = own_client(create_app(store))
        tables = [table["name"] for table in client.get("/v1/sql").json()["tables"]]
        counts = ", ".join(f"(select count(*) from {table})" for table in tables[:-1])
        answer = client.post("/v1/sql", json={"query": f"select {counts}"})
        assert answer.json()["rows"] == [[0] * (len(tables) - 1)]


def test_local_and_remote_clients_give_the_same_answer(two: Store) -> None:
    shown = "run_id, run_seconds, shared, nodes, [1, null] as list, {'a': 1.5} as object"
    query = f"select {shown} from runs where state = $s order by run_id"
    parameters = {"s": "completed"}
    with answering(two.home) as url:
        remote = Remote(url)
        assert remote.sql.tables() == Local(two).sql.tables()
        far, near = remote.sql(query, parameters, limit=3), Local(two).sql(query, parameters, limit=3)
    assert (far.columns, far.rows, far.is_complete, far.read) == (near.columns, near.rows, near.is_complete, near.read)
    assert far.rows[0][0] == "ann-run0"
    assert not far.is_complete


def begin(url: str, query: str, secret: str | None = None) -> socket.socket:
    """Send a statement, and return the connection on which nobody has waited for the answer yet."""
    place = urlsplit(url)
    body = json.dumps({"query": query}).encode()
    head = f"POST /v1/sql HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: application/json\r\n"
    token = f"Authorization: Bearer {secret}\r\n" if secret else ""
    connection = socket.create_connection((str(place.hostname), int(str(place.port))))
    connection.sendall(f"{head}{token}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return connection


def test_a_statement_ends_when_its_client_leaves(two: Store) -> None:
    with answering(two.home) as url:
        with begin(url, FOREVER):
            assert within(10, lambda: bool(busy_workers()))
        assert within(5, lambda: not busy_workers()), "it goes on although nobody waits for it"


def test_who_sends_many_statements_keeps_nobody_else_waiting(two: Store) -> None:
    secret = issued(two, ANN).secret
    with answering(two.home) as url, ExitStack() as open_ones:
        for _ in range(5):
            open_ones.enter_context(begin(url, FOREVER, secret))
        assert within(10, lambda: bool(busy_workers()))
        assert Remote(url).sql("select 1 as one").rows == ((1,),)
        assert Remote(url).run_outcomes(limit=1)
        assert len(busy_workers()) == 1


def within(seconds: float, is_so: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if is_so():
            return True
        time.sleep(0.05)
    return False


def busy_workers() -> list[int]:
    """Return the children of this process that run a statement: those that have computed for a second."""
    own = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = status.read_text().rpartition(")")[2].split()
            is_worker = b"crosswind.data.sql.worker" in (status.parent / "cmdline").read_bytes()
        except OSError:
            continue
        own += [int(status.parent.name)] if is_worker and int(words[11]) > 100 else []
    return own

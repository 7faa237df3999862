"""GET /v1/checks."""

import time
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.serving import own_client

from crosswind.api.app import create_app
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.checks import PREFLIGHT, Measured
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import load_spool
from crosswind.ingest.preflight.record import Occasion, record

END = {"next": None, "next_url": None}
AT = 1_800_000_000_000_000_000
MEASURED = (
    Measured("n1", "gemm", 1.5e11, "cpu", method="torch", hardware="Fast 9000"),
    Measured("n1", "bandwidth", 1e9, peer="n2", method="gloo"),
    Measured("n1", "message", 1e-5, peer="n2", size_bytes=8, method="gloo"),
)


@pytest.fixture
def checked(store: Store) -> TestClient:
    for number in range(2):
        record(store.home / "spool", Occasion(f"C{number}", AT + number, "lab", None), MEASURED)
    assert load_spool(store, store.home / "spool").problems == []
    return own_client(create_app(store), base_url="http://localhost:8000")


def test_nodes_and_pairs_are_listed_with_their_newest_values(checked: TestClient) -> None:
    answer = checked.get("/v1/checks?system=lab").json()
    assert answer["system"] == "lab"
    link, gemm = sorted(answer["earlier"], key=lambda earlier: str(earlier["measure"]))
    assert gemm == {
        "measure": "gemm",
        "method": "torch",
        "hardware": "Fast 9000",
        "node": "n1",
        "device": "cpu",
        "peer": "",
        "at_ns": [AT + 1, AT],
        "values": [1.5e11, 1.5e11],
    }
    assert (link["measure"], link["node"], link["peer"], link["values"]) == ("bandwidth", "n1", "n2", [1e9, 1e9])


def test_a_system_before_its_first_check_has_none(checked: TestClient, client: TestClient) -> None:
    assert checked.get("/v1/checks?system=other").json() == {"system": "other", "earlier": [], **END}
    assert client.get("/v1/checks?system=lab").status_code == 200


@pytest.mark.parametrize("query", ["", "?system=", "?system=lab&node=n1", "?system=a&system=b", f"?system={'x' * 201}"])
def test_what_cannot_be_meant_is_refused(checked: TestClient, query: str) -> None:
    answer = checked.get(f"/v1/checks{query}")
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.thorough
def test_the_values_of_a_large_fleet_come_within_seconds(tmp_path: Path) -> None:
    """2000 nodes, five measures, ten checks: as many values as an answer ever has."""
    nodes, measures, checks = range(2000), ("gemm", "memory", "loop", "disk_write", "disk_read"), range(10)
    rows = [(AT + check, f"n{node}", measure) for check in checks for node in nodes for measure in measures]
    columns: dict[str, list[int | float | str]] = {
        "ts_ns": [at for at, _, _ in rows],
        "node": [node for _, node, _ in rows],
        "measure": [measure for _, _, measure in rows],
        "value": [1.0] * len(rows),
        **{name: [word] * len(rows) for name, word in (("system", "lab"), ("method", "m"), ("hardware", "h"))},
    }
    with Store.open(tmp_path / "home") as store:
        store.lake.append("fleet", to_table(PREFLIGHT, columns))
        client = own_client(create_app(store), base_url="http://localhost:8000")
        began = time.monotonic()
        answer = client.get("/v1/checks?system=lab&format=csv&fields=node,values")
        assert time.monotonic() - began < 20
    assert answer.text.count("\n") - 1 == len(nodes) * len(measures)
    assert {line.count(",") for line in answer.text.splitlines()[1:]} == {len(checks)}

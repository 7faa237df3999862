from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient
from tests.models.forecast.stored_weather import store_weather
from tests.models.stragglers.made_up_fleet import drawn_nodes, store_fleet
from tests.serving import own_client

from crosswind.api.answer_cache import AnswerCache
from crosswind.api.app import create_app
from crosswind.data.store.store import Store

PATHS = ("stragglers", "regressions", "counters", "interference")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """80 runs `r0` ... on 4 of 12 nodes each, of which n3 takes 1.2 times as long."""
    home = tmp_path_factory.mktemp("fleet")
    store_fleet(home, drawn_nodes(80, 4, 12), {3: np.log(1.2)})
    with Store.open(home) as store, own_client(create_app(store), base_url="http://localhost:8000") as client:
        yield client


@pytest.mark.thorough
def test_the_slow_node_comes_first(fleet: TestClient) -> None:
    ranking = fleet.get("/v1/stragglers?system=lab&workload=bert&limit=3").json()
    assert (ranking["runs"], ranking["compared_runs"], ranking["compared"], len(ranking["ranked"])) == (80, 80, 16, 3)
    first, second, _ = ranking["ranked"]
    assert (first["kind"], first["name"], first["named"], second["named"]) == ("node", "n3", True, False)
    assert first["low_ratio"] < 1.2 < first["high_ratio"]
    assert first["since_at"].startswith("2026-01-01T")


def test_a_run_of_few_steps_tells_that_they_are_few(fleet: TestClient) -> None:
    answer = fleet.get("/v1/runs/r0/stragglers").json()
    assert (answer["run_id"], answer["ranks"], answer["steps"], answer["silent_ranks"]) == ("r0", 4, 8, [])
    assert fleet.get("/v1/runs/nobody/stragglers").status_code == 404


def test_a_run_is_replayed_with_equal_ranks(fleet: TestClient) -> None:
    answer = fleet.get("/v1/runs/r0/replay").json()
    assert (answer["basis"], answer["sequence"]) == ("steps", None)
    ratios = [part["alone_ratio"] for part in answer["by_rank"]]
    assert ratios == sorted(ratios, reverse=True)
    assert len(ratios) == answer["ranks"] == 4
    assert answer["slowdown_ratio"] >= ratios[0] > 1  # all ranks as measured are no faster than one
    assert fleet.get("/v1/runs/nobody/replay").status_code == 404


def test_no_regression_is_reported_of_equal_runs(fleet: TestClient) -> None:
    assert fleet.get("/v1/regressions?since=2100-01-01T00:00:00Z").json()["runs"] == 0
    answer = fleet.get("/v1/regressions").json()
    assert (answer["runs"], answer["workloads"], answer["changes"], answer["warnings"]) == (80, 1, [], [])


@pytest.mark.thorough
def test_a_regression_is_reported_with_its_time(tmp_path: Path) -> None:
    store_weather(tmp_path, 120, lambda hours: 1.4 if hours >= 90 else 1.0)
    with Store.open(tmp_path) as store, own_client(create_app(store), base_url="http://localhost:8000") as client:
        regressions = client.get("/v1/regressions?workload=bert").json()
    [change] = regressions["changes"]
    assert change["ratio"] == pytest.approx(1.4, rel=0.05)
    assert change["since_at"].startswith("2026-01-04T")
    assert change["suspects"] == []  # nothing else changed


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("stragglers?runs=0", "greater than or equal to 1"),
        ("stragglers?runs=100001", "less than or equal to 100000"),
        ("stragglers?limit=0", "greater than or equal to 1"),
        ("stragglers?system=", "at least 1 character"),
        ("stragglers?node=n1", "query parameter 'node' is unknown"),
        ("regressions?runs=many", "valid integer"),
        ("regressions?weeks=3", "query parameter 'weeks' is unknown"),
    ],
)
def test_what_cannot_be_asked_is_refused(fleet: TestClient, path: str, message: str) -> None:
    answer = fleet.get(f"/v1/{path}")
    assert answer.status_code == 422
    assert message in answer.json()["detail"]


def test_a_run_that_came_meanwhile_is_seen(tmp_path: Path) -> None:
    store_weather(tmp_path, 20)
    with Store.open(tmp_path) as store:
        app = create_app(store)
        app.state.client.compute = AnswerCache(patience=0)  # however long it takes on a busy machine
        with own_client(app, base_url="http://localhost:8000") as client:
            before = [client.get(f"/v1/{path}").json()["runs"] for path in PATHS]
            store_weather(tmp_path, 4, first=20)
            after = [client.get(f"/v1/{path}").json()["runs"] for path in PATHS]
    assert (before, after) == ([20] * 4, [24] * 4)

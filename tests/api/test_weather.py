import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.models.forecast.stored_weather import store_weather
from tests.serving import own_client

from crosswind.api.app import create_app
from crosswind.data.store.store import Store


def test_workloads_are_listed_with_their_hours(client: TestClient) -> None:
    weather = client.get("/v1/weather?system=lab&workload=nanogpt&hours=3").json()
    assert (weather["system"], weather["running_runs"], weather["running_jobs"]) == ("lab", 0, 0)
    [workload] = weather["workloads"]
    assert (workload["workload"], workload["runs"], workload["compared_runs"]) == ("nanogpt", 8, 5)
    assert workload["newest_ended_at"] == "2026-01-02T03:11:35.000000006Z"
    assert len(workload["hours"]) == 4
    assert workload["hours"][1]["at"].endswith(":00:00.000000000Z")
    assert workload["hours"][1]["at_ns"] - workload["hours"][2]["at_ns"] == -3600 * 10**9


def test_five_runs_are_too_few_and_it_says_so(client: TestClient) -> None:
    weather = client.get("/v1/weather?workload=nanogpt").json()
    assert (weather["chosen"], weather["candidates"]) == (None, [])
    assert weather["warnings"][0].startswith("5 runs could be compared with earlier ones like them, 40 are needed")
    [workload] = weather["workloads"]
    assert (workload["standing"], workload["chance_slower"], workload["hours"][0]["ratio"]) == ("unknown", None, 1.0)


@pytest.mark.thorough
def test_the_candidate_that_answers_is_reported_with_its_backtest(tmp_path: Path) -> None:
    store_weather(tmp_path, 120)
    with Store.open(tmp_path) as store, own_client(create_app(store), base_url="http://localhost:8000") as client:
        weather = client.get("/v1/weather?workload=bert").json()
    assert weather["chosen"] == weather["candidates"][0]["name"]
    assert {candidate["name"] for candidate in weather["candidates"]} == {"climate", "local_level", "lagged_trees"}
    assert [horizon["hours"] for horizon in weather["candidates"][0]["by_horizon"]] == [0, 1, 6, 24]
    assert weather["workloads"][0]["standing"] == "usual"


@pytest.mark.thorough
def test_what_was_learned_is_kept(tmp_path: Path) -> None:
    store_weather(tmp_path, 300)
    with Store.open(tmp_path) as store, own_client(create_app(store), base_url="http://localhost:8000") as client:
        began = time.monotonic()
        client.get("/v1/weather")
        learned = time.monotonic() - began
        began = time.monotonic()
        assert client.get("/v1/weather").status_code == 200
        kept = time.monotonic() - began
    assert kept < learned / 3  # measured a fortieth; learning is two seconds, an answer some milliseconds


@pytest.mark.thorough
def test_others_are_answered_while_it_learns(tmp_path: Path) -> None:
    store_weather(tmp_path, 300)
    with (
        Store.open(tmp_path) as store,
        own_client(create_app(store), base_url="http://localhost:8000") as client,
        ThreadPoolExecutor(1) as pool,
    ):
        learning = pool.submit(client.get, "/v1/weather")
        answered = 0
        while not learning.done():
            assert client.get("/healthz").status_code == 200
            answered += 1
        assert learning.result().status_code == 200
    assert answered > 3  # seconds of learning, and some milliseconds for each of these


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("system=nowhere", "no completed run is stored, known are lab"),
        ("workload=unheard-of", "known are nanogpt"),
        ("hours=0", "greater than or equal to 1"),
        ("hours=25", "less than or equal to 24"),
        ("hours=soon", "valid integer"),
        ("system=", "at least 1 character"),
        ("days=3", "query parameter 'days' is unknown"),
    ],
)
def test_unanswerable_questions_are_refused(client: TestClient, query: str, message: str) -> None:
    answer = client.get(f"/v1/weather?{query}")
    assert answer.status_code == 422
    assert message in answer.json()["detail"]

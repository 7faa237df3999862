from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from crosswind.data.schema.facts import NAMES
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store


def test_a_run_is_reported_with_its_times_twice(client: TestClient) -> None:
    answer = client.get("/v1/runs/r0")
    assert answer.status_code == 200
    assert answer.json() == {
        "run_id": "r0",
        "workload": "nanogpt",
        "system": "lab",
        "state": "completed",
        "world_size": 2,
        "configuration": {"batch": 8, "fused": True},
        "job_id": None,
        "nodes": ["n1"],
        "started_at": "2026-01-02T03:04:05.000000006Z",
        "started_ns": 1_767_323_045_000_000_006,
        "ended_at": "2026-01-02T03:04:35.000000006Z",
        "ended_ns": 1_767_323_075_000_000_006,
        "run_seconds": pytest.approx(30),
        "exit_code": 0,
        "command": ["torchrun", "train.py"],
        "software": {},
        "tags": {"branch": "main"},
        "facts": dict.fromkeys(NAMES),
        "user": None,
        "account": None,
        "shared": False,
        "energy": None,
    }


def test_runs_are_paged_newest_first_to_the_end(client: TestClient) -> None:
    seen, url = [], "/v1/runs?limit=4"
    while url:
        page = client.get(url).json()
        seen += [run["run_id"] for run in page["runs"]]
        url = page["next_url"]
        assert (page["next"] is None) == (url is None)
    assert seen == ["r7", "r6", "r5", "r4", "r3", "r2", "r1", "r0", "other"]


def test_the_next_page_keeps_the_filter(client: TestClient) -> None:
    page = client.get("/v1/runs", params={"workload": "nanogpt", "limit": 5}).json()
    rest = client.get(page["next_url"]).json()
    assert [run["run_id"] for run in rest["runs"]] == ["r2", "r1", "r0"]


def test_runs_are_filtered(client: TestClient) -> None:
    for query in ({"workload": "bert"}, {"state": "failed"}, {"job_id": "12_3"}, {"system": "lab", "job_id": "12_3"}):
        assert [run["run_id"] for run in client.get("/v1/runs", params=query).json()["runs"]] == ["other"]
    assert client.get("/v1/runs", params={"system": "elsewhere"}).json()["runs"] == []


def test_runs_are_filtered_by_one_of_their_nodes(client: TestClient, store: Store) -> None:
    with store.catalog.write() as session:
        session.runs.merge(replace(session.runs.get("r3"), nodes=("n7", "n8")))
    assert [run["run_id"] for run in client.get("/v1/runs", params={"node": "n8"}).json()["runs"]] == ["r3"]
    assert client.get("/v1/runs", params={"node": "n"}).json()["runs"] == []


def test_who_has_a_run_already_gets_304_until_it_changes(client: TestClient, store: Store) -> None:
    first = client.get("/v1/runs/r0")
    tag = first.headers["etag"]
    assert tag.startswith('W/"')
    again = client.get("/v1/runs/r0", headers={"If-None-Match": f'"x", {tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    with store.catalog.write() as session:
        run = session.runs.get("r0")
        run.tags["note"] = "seen"  # type: ignore[index]
        session.runs.merge(run)
    changed = client.get("/v1/runs/r0", headers={"If-None-Match": tag})
    assert (changed.status_code, changed.json()["tags"]["note"]) == (200, "seen")


def test_steps_have_the_columns_of_their_metric_set_in_base_units(client: TestClient) -> None:
    page = client.get("/v1/runs/r1/steps?limit=3").json()
    assert [(row["step"], row["rank"]) for row in page["steps"]] == [(0, 0), (0, 1), (1, 0)]
    assert set(page["steps"][0]) == {column.name for column in STEP.columns}
    assert page["steps"][0]["duration_seconds"] == pytest.approx(0.103)
    assert [row["minor_faults"] for row in page["steps"]] == [None, None, 7]
    assert page["steps"][0]["tail_seconds"] is None


def test_steps_are_paged_without_gap_or_repeat(client: TestClient) -> None:
    seen, url = [], "/v1/runs/r1/steps?limit=5&rank=1"
    while url:
        page = client.get(url).json()
        seen += [(row["step"], row["rank"]) for row in page["steps"]]
        url = page["next_url"]
    assert seen == [(step, 1) for step in range(8)]


def test_a_run_without_steps_has_none(client: TestClient) -> None:
    assert client.get("/v1/runs/other/steps").json() == {"run_id": "other", "steps": [], "next": None, "next_url": None}


def test_an_explanation_adds_up(client: TestClient) -> None:
    explanation = client.get("/v1/runs/r0/explanation").json()
    assert explanation["run_id"] == "r0"
    assert explanation["verdict"] in {"slow", "normal", "insufficient_evidence"}
    assert explanation["sentence"]
    if explanation["measured_seconds"] is not None:
        parts = sum(share["seconds"]["value"] for share in explanation["shares"]) + explanation["unexplained"]["value"]
        assert abs(explanation["expected_seconds"] + parts - explanation["measured_seconds"]) < 1e-9


def test_a_run_that_never_recorded_steps_gets_an_honest_explanation(client: TestClient) -> None:
    explanation = client.get("/v1/runs/other/explanation").json()
    assert (explanation["verdict"], explanation["excess"], explanation["shares"]) == ("insufficient_evidence", None, [])
    assert explanation["next_action"]


def test_jobs_are_paged_newest_first_without_their_raw_fields(client: TestClient) -> None:
    first = client.get("/v1/jobs?limit=1").json()
    assert first["jobs"][0]["job_id"] == "12_3"
    assert first["jobs"][0]["started_at"] == "2026-01-02T03:04:05.000000006Z"
    assert "fields" not in first["jobs"][0]
    second = client.get(first["next_url"]).json()
    assert [job["job_id"] for job in second["jobs"]] == ["13"]
    assert second["jobs"][0]["started_at"] is None


def test_two_runs_that_cannot_be_compared_are_refused_by_their_ids(client: TestClient) -> None:
    answer = client.get("/v1/runs/r0/comparison?with=r0")
    assert (answer.status_code, "compared with itself" in answer.json()["detail"]) == (422, True)
    assert client.get("/v1/runs/r0/comparison?with=nobody").status_code == 404
    assert client.get("/v1/runs/r0/comparison").status_code == 422
    answer = client.get("/v1/runs/r0/comparison?with=r1")
    assert (answer.status_code, "comparable steps" in answer.json()["detail"]) == (422, True)

"""Runs with their outcomes, and reports of one run and of one job."""

import pytest
from starlette.testclient import TestClient

from crosswind.data.schema.job import Job
from crosswind.data.store.store import Store

SECOND = 1_000_000_000


def test_outcomes_are_paged_as_runs_are(client: TestClient) -> None:
    runs = client.get("/v1/runs?limit=500").json()["runs"]
    seen, url = [], "/v1/run-outcomes?limit=2"
    while url:
        page = client.get(url).json()
        seen += page["runs"]
        url = page["next_url"]
    assert [run["run_id"] for run in seen] == [run["run_id"] for run in runs]
    assert all(run == {name: outcome[name] for name in run} for run, outcome in zip(runs, seen, strict=True))
    by_id = {run["run_id"]: run for run in seen}
    assert by_id["other"]["steps"] is by_id["other"]["step_p50_seconds"] is None
    timed = [run for run in seen if run["steps"]]
    assert timed
    assert all(run["step_p05_seconds"] <= run["step_p50_seconds"] <= run["step_p95_seconds"] for run in timed)


def test_runs_are_narrowed_by_the_end_of_their_ids(client: TestClient) -> None:
    assert [run["run_id"] for run in client.get("/v1/runs?id_end=r3").json()["runs"]] == ["r3"]
    assert client.get("/v1/runs?id_end=_").json()["runs"] == []
    assert client.get("/v1/runs?id_end=").status_code == 422


def test_a_report_has_the_run_and_its_outcome(client: TestClient) -> None:
    report = client.get("/v1/runs/r0/report").json()
    assert report["run"] == client.get("/v1/runs?id_end=r0").json()["runs"][0]
    assert report["outcome"]["run_id"] == "r0"
    assert (report["latecomers"], report["energy"]) == ([], None)
    assert client.get("/v1/runs/nosuch/report").status_code == 404


def test_a_job_has_its_runs_with_their_verdicts(client: TestClient, store: Store) -> None:
    report = client.get("/v1/jobs/12_3").json()
    assert (report["job"]["state"], report["job"]["nodes"], report["run_count"]) == ("FAILED", ["n1"], 1)
    [run] = report["runs"]
    assert (run["run_id"], run["verdict"], run["cause"]) == ("other", "insufficient_evidence", None)
    assert run["sentence"]
    assert report["limit_ratio"] is report["energy"] is None


def test_a_job_is_refused_that_is_not_stored_or_of_several_systems(client: TestClient, store: Store) -> None:
    assert client.get("/v1/jobs/99").status_code == 404
    store.jobs.put(Job("alps", "13"))
    answer = client.get("/v1/jobs/13")
    assert answer.status_code == 422
    assert "alps, lab" in answer.json()["detail"]
    assert client.get("/v1/jobs/13?system=alps").json()["job"]["system"] == "alps"
    assert client.get("/v1/jobs/13?system=").status_code == 422


@pytest.mark.parametrize(
    ("query", "job_ids"),
    [
        ("state=FAILED", ["12_3"]),
        ("system=lab", ["12_3", "13"]),
        ("user=nobody", []),
        ("name=x", []),
        ("account=x", []),
        ("job_id=13", ["13"]),
    ],
)
def test_jobs_are_narrowed(client: TestClient, query: str, job_ids: list[str]) -> None:
    assert [job["job_id"] for job in client.get(f"/v1/jobs?{query}").json()["jobs"]] == job_ids
    assert client.get("/v1/jobs?partition=x").status_code == 422

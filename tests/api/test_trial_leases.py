"""Trials that jobs get over HTTP: their own back, checkpoints, outcomes, budgets; many at once."""

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

SPACE = {"batch": {"kind": "int", "low": 1, "high": 1000}, "fused": {"kind": "boolean"}}
STUDY = {"name": "leases", "space": SPACE, "objective": "step_p50_seconds", "details": {"goals": ["time"]}}
TRIALS = "/v1/studies/leases/trials"
WORKERS = 200


def suggested(client: TestClient, **fields: Any) -> list[dict[str, Any]]:
    answer = client.post(f"{TRIALS}:suggest", json={"owner": "a", **fields})
    assert answer.status_code == 200, answer.text
    trials: list[dict[str, Any]] = answer.json()["trials"]
    return trials


def test_a_requeued_job_gets_its_trial_back_with_the_checkpoint(client: TestClient) -> None:
    client.post("/v1/studies", json=STUDY)
    [mine], [other] = suggested(client, job="7_1"), suggested(client, job="7_2")
    for trial in (other, mine):
        released = client.post(f"{TRIALS}/{trial['trial_id']}:release", json={"checkpoint": "/scratch/c.pt"}).json()
        assert (released["state"], released["checkpoint"]) == ("released", "/scratch/c.pt")
    [again] = suggested(client, job="7_1", owner="b")
    assert (again["trial_id"], again["checkpoint"]) == (mine["trial_id"], "/scratch/c.pt")
    assert (again["owner"], again["job"], again["losses"]) == ("b", "7_1", 0)


def test_outcomes_are_kept_and_those_that_are_no_numbers_refused(client: TestClient) -> None:
    client.post("/v1/studies", json=STUDY)
    [trial] = suggested(client)
    url = f"{TRIALS}/{trial['trial_id']}:complete"
    refused = client.post(url, content='{"objective": 1.0, "outcomes": {"energy_joules": NaN}}', headers=JSON)
    assert refused.status_code == 400
    assert "energy_joules" in client.post(url, json={"objective": 1.0, "outcomes": {"energy_joules": "x"}}).text
    done = client.post(url, json={"objective": 1.0, "outcomes": {"energy_joules": 5.5}}).json()
    assert (done["state"], done["outcomes"]) == ("done", {"energy_joules": 5.5})


JSON = {"content-type": "application/json"}


def test_a_budget_is_kept_and_reported(client: TestClient) -> None:
    made = client.post("/v1/studies", json=STUDY | {"trials_max": 2}).json()
    assert (made["trials_max"], made["details"]) == (2, {"goals": ["time"]})
    trials = suggested(client, count=5)
    assert (len(trials), suggested(client), client.get("/v1/studies/leases").json()["is_exhausted"]) == (2, [], False)
    for trial in trials:
        client.post(f"{TRIALS}/{trial['trial_id']}:fail", json={"reason": "no memory"})
    assert client.get("/v1/studies/leases").json()["is_exhausted"] is True


@pytest.mark.parametrize("budget", [0, -1, 5_001, 1.5, "3"])
def test_an_impossible_budget_is_refused(client: TestClient, budget: object) -> None:
    refused = client.post("/v1/studies", json=STUDY | {"trials_max": budget})
    assert (refused.status_code, "body.trials_max" in refused.text) == (422, True)


SERVE = """
import sys
from pathlib import Path
from crosswind.api.server import serve
from crosswind.api.settings import ServerSettings
from crosswind.data.store.store import Store
with Store.open(Path(sys.argv[1])) as store:
    serve(store, ServerSettings(port=0), ready=lambda url: print(url, flush=True))
"""


@pytest.fixture
def url(filled: Path, tmp_path: Path) -> Iterator[str]:
    home = shutil.copytree(filled, tmp_path / "store")
    with subprocess.Popen([sys.executable, "-c", SERVE, str(home)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.mark.thorough
def test_two_hundred_workers_at_once_get_trials_of_their_own(url: str) -> None:
    with httpx2.Client(base_url=url, timeout=120, limits=httpx2.Limits(max_connections=WORKERS)) as client:
        client.post("/v1/studies", json=STUDY)
        got: list[dict[str, Any]] = []

        def work(number: int) -> None:
            request = {"owner": f"worker {number}", "job": f"7_{number}"}
            got.extend(client.post(f"{TRIALS}:suggest", json=request).json()["trials"])

        threads = [threading.Thread(target=work, args=(number,)) for number in range(WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=120)
        stored = client.get(TRIALS, params={"limit": 500}).json()["trials"]
    assert len(got) == len(stored) == WORKERS
    assert len({trial["trial_id"] for trial in got}) == len({str(trial["configuration"]) for trial in got}) == WORKERS
    assert {trial["owner"] for trial in stored} == {f"worker {number}" for number in range(WORKERS)}


def test_limits_and_hours_are_heeded_and_reported(client: TestClient) -> None:
    details = {"limits": ["memory_bytes <= 8"], "hours": 2}
    made = client.post("/v1/studies", json=STUDY | {"details": details}).json()
    for memory, seconds in ((9, 1.0), (8, 2.0)):
        [trial] = suggested(client)
        completion = {"objective": seconds, "outcomes": {"memory_bytes": memory}}
        client.post(f"{TRIALS}/{trial['trial_id']}:complete", json=completion)
    status = client.get("/v1/studies/leases").json()
    assert [point["objective"] for point in status["front"]] == [status["best"]["objective"]] == [2.0]
    assert (status["outside"], status["unjudged"], status["is_exhausted"]) == (1, 0, False)
    assert status["ends_ns"] == made["created_ns"] + 2 * 3600 * 10**9
    refused = client.post("/v1/studies", json=STUDY | {"name": "n", "details": {"hours": -1}})
    assert (refused.status_code, "hours is -1" in refused.text) == (422, True)

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.serving import own_client

from crosswind.api.app import create_app
from crosswind.data.store.store import Store

SPACE = {"batch": {"kind": "int", "low": 1, "high": 64, "log": True}, "fused": {"kind": "boolean"}}
STUDY = {"name": "buckets", "space": SPACE, "objective": "step_p50_seconds", "seed": 3}


@pytest.fixture
def study(client: TestClient) -> str:
    answer = client.post("/v1/studies", json=STUDY)
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/v1/studies/{answer.json()['study_id']}"
    study_id: str = answer.json()["study_id"]
    return study_id


def suggested(client: TestClient, **fields: Any) -> list[dict[str, Any]]:
    answer = client.post("/v1/studies/buckets/trials:suggest", json={"owner": "job 5", **fields})
    assert answer.status_code == 200, answer.text
    trials: list[dict[str, Any]] = answer.json()["trials"]
    return trials


def test_a_study_is_returned_by_id_and_by_name(client: TestClient, study: str) -> None:
    answer = client.get("/v1/studies/buckets").json()
    assert answer == client.get(f"/v1/studies/{study}").json()
    assert (answer["space"], answer["objective"], answer["unit"], answer["seed"]) == (SPACE, "step_p50_seconds", "s", 3)
    assert (answer["best"], set(answer["trials"].values())) == (None, {0})
    assert [listed["study_id"] for listed in client.get("/v1/studies").json()["studies"]] == [study]


def test_a_trial_goes_from_lease_to_outcome(client: TestClient, study: str) -> None:
    [trial] = suggested(client, lease_seconds=60)
    assert (trial["state"], trial["owner"], trial["study_id"]) == ("leased", "job 5", study)
    assert trial["lease_expires_at"].endswith("Z")
    url = f"/v1/studies/buckets/trials/{trial['trial_id']}"
    beaten = client.post(f"{url}:heartbeat", json={"owner": "job 5", "lease_seconds": 600}).json()
    assert beaten["lease_expires_ns"] > trial["lease_expires_ns"]
    done = client.post(f"{url}:complete", json={"objective": 0.25, "run_id": "r0", "owner": "job 5"})
    assert done.status_code == 200
    assert (done.json()["state"], done.json()["objective"], done.json()["run_id"]) == ("done", 0.25, "r0")
    assert client.get(url).json() == done.json()
    status = client.get("/v1/studies/buckets").json()
    assert (status["best"], status["trials"]["done"]) == (done.json(), 1)


def test_completing_twice_is_answered_the_same_unless_the_value_differs(client: TestClient, study: str) -> None:
    [trial] = suggested(client)
    url = f"/v1/studies/{study}/trials/{trial['trial_id']}:complete"
    first, again = (client.post(url, json={"objective": 1}) for _ in range(2))
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()
    other = client.post(url, json={"objective": 2})
    assert other.status_code == 409
    assert other.json()["detail"].endswith("is done with objective 1.0, expected that again, not 2.0")


def test_failing_and_releasing_name_the_expected_states(client: TestClient, study: str) -> None:
    lost, back = suggested(client, count=2)
    urls = [f"/v1/studies/{study}/trials/{trial['trial_id']}" for trial in (lost, back)]
    failed = client.post(f"{urls[0]}:fail", json={"reason": "out of memory", "state": "infeasible"}).json()
    assert (failed["state"], failed["reason"]) == ("infeasible", "out of memory")
    refused = client.post(f"{urls[0]}:release")
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/conflict")
    assert "is infeasible, expected leased or released or waiting" in refused.json()["detail"]
    assert client.post(f"{urls[1]}:release").json()["state"] == "released"
    assert suggested(client)[0]["trial_id"] == back["trial_id"]


def test_another_owner_cannot_touch_a_leased_trial(client: TestClient, study: str) -> None:
    [trial] = suggested(client)
    url = f"/v1/studies/{study}/trials/{trial['trial_id']}"
    for verb, body in (("complete", {"objective": 1.0}), ("release", {}), ("heartbeat", {}), ("fail", {"reason": "x"})):
        refused = client.post(f"{url}:{verb}", json={"owner": "job 6", **body})
        assert (verb, refused.status_code) == (verb, 409)
        assert "leased by 'job 5', not by 'job 6'" in refused.json()["detail"]
    assert client.get(url).json() == trial


def test_the_same_key_makes_one_study_and_one_set_of_trials(client: TestClient) -> None:
    key = {"Idempotency-Key": "create-1"}
    first, again = (client.post("/v1/studies", json=STUDY, headers=key) for _ in range(2))
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    ask = {"json": {"owner": "job 5", "count": 2}, "headers": {"Idempotency-Key": "suggest-1"}}
    trials, same = (client.post("/v1/studies/buckets/trials:suggest", **ask).json() for _ in range(2))  # type: ignore[arg-type]
    assert trials == same
    assert len(client.get("/v1/studies/buckets/trials").json()["trials"]) == 2


def test_a_key_used_for_something_else_is_refused(client: TestClient, study: str) -> None:
    key = {"Idempotency-Key": "one"}
    client.post("/v1/studies/buckets/trials:suggest", json={"owner": "a"}, headers=key)
    for url, body in (("/v1/studies/buckets/trials:suggest", {"owner": "b"}), ("/v1/studies", STUDY | {"name": "n"})):
        refused = client.post(url, json=body, headers=key)
        assert (refused.status_code, "'one' was used for another request" in refused.text) == (422, True)
    assert len(client.get("/v1/studies").json()["studies"]) == 1


def test_a_paused_study_says_so_and_a_stopped_one_has_no_trial(client: TestClient, study: str) -> None:
    assert client.post("/v1/studies/buckets:pause").json()["state"] == "paused"
    key = {"Idempotency-Key": "later"}
    refused = client.post("/v1/studies/buckets/trials:suggest", json={"owner": "a"}, headers=key)
    assert (refused.status_code, refused.json()["type"], refused.headers["retry-after"]) == (
        *(409, "/problems/paused"),
        "30",
    )
    assert "resumes it" in refused.json()["detail"]
    assert client.post("/v1/studies/buckets:resume").json()["state"] == "running"
    again = client.post("/v1/studies/buckets/trials:suggest", json={"owner": "a"}, headers=key)
    assert len(again.json()["trials"]) == 1
    client.post("/v1/studies/buckets:stop")
    assert suggested(client) == []
    assert (client.get("/v1/studies").json()["studies"][0]["state"]) == "stopped"
    kinds = [event["kind"] for event in client.get(f"/v1/events?study_id={study}").json()["events"]]
    assert kinds == ["study.created", "study.state", "study.state", "trial.started", "study.state"]


def test_a_taken_name_is_a_conflict(client: TestClient, study: str) -> None:
    refused = client.post("/v1/studies", json=STUDY)
    assert (refused.status_code, refused.json()["title"]) == (409, "Conflict with what is stored")
    assert "'buckets' is taken" in refused.json()["detail"]


def test_several_servers_share_a_study_in_postgresql(tmp_path: Path, postgres_url: str) -> None:
    with ExitStack() as stack:
        stores = [stack.enter_context(Store.open(tmp_path, database=postgres_url)) for _ in range(2)]
        one, two = (own_client(create_app(store), base_url="http://localhost") for store in stores)
        one.post("/v1/studies", json=STUDY | {"name": "shared ü"})
        [first], [second] = (
            client.post("/v1/studies/shared ü/trials:suggest", json={"owner": "a"}).json()["trials"]
            for client in (one, two)
        )
        assert first["trial_id"] != second["trial_id"]
        done = two.post(f"/v1/studies/shared ü/trials/{first['trial_id']}:complete", json={"objective": 1.5})
        assert one.get("/v1/studies/shared ü").json()["best"] == done.json()
        assert one.get("/readyz").json()["status"] == "ready"

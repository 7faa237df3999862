from collections.abc import Iterator
from dataclasses import replace

import pytest
from starlette.testclient import TestClient
from tests.models.registry.models import LEARNED, later_runs, poor, train, trained
from tests.serving import own_client

from crosswind.api.app import create_app
from crosswind.data.store.store import Store
from crosswind.models.baseline import Ewma
from crosswind.models.registry.drift import drift_of
from crosswind.models.registry.registry import Registry
from crosswind.models.registry.trainer import Trainer
from crosswind.models.training import drifting
from crosswind.models.training.operations import Runner

TRAINERS = {"step-time": Trainer(train)}
VERSIONS = "/v1/models/step-time/versions"


@pytest.fixture
def client(store: Store) -> Iterator[TestClient]:
    app = create_app(store, trainers=TRAINERS)
    with own_client(app, base_url="http://localhost:8000") as opened:
        yield opened


@pytest.fixture
def versions(store: Store) -> Store:
    """Two versions that beat the baselines, and a third that does not."""
    registry, evidence = Registry(store), trained().evidence
    for version_evidence in (evidence, evidence, poor(evidence)):
        registry.register("step-time", Ewma(), version_evidence)
    return store


def test_a_version_is_listed_with_its_worth(client: TestClient, versions: Store) -> None:
    answer = client.get(f"{VERSIONS}/1").json()
    evidence = trained().evidence
    assert (answer["name"], answer["version"], answer["state"], answer["parent"]) == ("step-time", 1, "candidate", None)
    assert (answer["rows"], answer["features"], answer["sources"]) == (LEARNED.rows, ["batch"], {"system": "lab"})
    assert (answer["from_ns"], answer["to_ns"], answer["promoted_at"]) == (LEARNED.from_ns, LEARNED.to_ns, None)
    assert answer["made_at"].endswith("Z")
    assert (answer["loss"], answer["baselines"]) == (evidence.loss, evidence.baselines)
    assert answer["skill"] == pytest.approx(1 - evidence.loss / evidence.baselines["always_median"])
    assert answer["coverage"][0] == {"level": 0.05, "share": evidence.coverage[0][1]}
    assert (answer["note"], answer["history"]) == ("", [])


def test_models_are_listed_with_the_version_that_answers(client: TestClient, versions: Store) -> None:
    client.post(f"{VERSIONS}/1:promote")
    [model] = client.get("/v1/models").json()["models"]
    assert (model["name"], model["versions"], model["is_trainable"]) == ("step-time", 3, True)
    assert (model["promoted"]["version"], model["newest"]["version"]) == (1, 3)
    answer = client.get("/v1/models/step-time").json()
    assert (answer["promoted"], [version["version"] for version in answer["versions"]]) == (1, [3, 2, 1])


def test_a_model_that_was_never_trained_is_among_those_that_can_be(client: TestClient) -> None:
    assert client.get("/v1/models").json() == {"models": [], "trainable": ["step-time"], "next": None, "next_url": None}


def test_the_drift_of_the_version_that_answers_has_its_limits(
    client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = trained()
    later = later_runs(shown.model, slower=1.5)
    monkeypatch.setattr(drifting, "TRAINERS", {"step-time": Trainer(train, lambda *_: later)})
    Registry(store).register("step-time", shown.model, shown.evidence)
    refused = client.get("/v1/models/step-time/drift")
    assert (refused.status_code, refused.json()["detail"]) == (404, "no version of model 'step-time' is promoted")
    client.post(f"{VERSIONS}/1:promote")
    answer = client.get("/v1/models/step-time/drift").json()
    drift = drift_of(shown.evidence, later)
    assert answer == {"name": "step-time", "version": 1, "has_drifted": True, "coverage_limit": 100.0, **vars(drift)}


def test_without_later_runs_no_drift_is_tested(client: TestClient, versions: Store) -> None:
    client.post(f"{VERSIONS}/1:promote")
    answer = client.get("/v1/models/step-time/drift").json()
    assert (answer["rows"], answer["has_drifted"], answer["loss"]) == (0, False, None)


def test_promoting_twice_is_answered_the_same(client: TestClient, versions: Store) -> None:
    first, again = (client.post(f"{VERSIONS}/1:promote") for _ in range(2))
    assert (first.status_code, first.json()["state"]) == (200, "promoted")
    assert first.json() == again.json()


def test_what_does_not_beat_the_baselines_is_promoted_for_a_reason_only(client: TestClient, versions: Store) -> None:
    refused = client.post(f"{VERSIONS}/3:promote")
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/conflict")
    assert "expected less than last's" in refused.json()["detail"]
    forced = client.post(f"{VERSIONS}/3:promote", json={"forced_because": "other rows"})
    assert (forced.status_code, forced.json()["note"]) == (200, "forced: other rows")
    assert forced.json()["history"][-1]["reason"] == "forced: other rows"


def test_a_rollback_sent_again_does_not_go_further_back(client: TestClient, versions: Store) -> None:
    for version in (1, 2):
        client.post(f"{VERSIONS}/{version}:promote")
    request = {"version": 2, "reason": "it is slow"}
    back = client.post("/v1/models/step-time:rollback", json=request)
    assert (back.status_code, back.json()["version"], back.json()["state"]) == (200, 1, "promoted")
    again = client.post("/v1/models/step-time:rollback", json=request)
    assert again.status_code == 409
    assert again.json()["detail"] == "version 2 of model 'step-time' is not promoted: version 1 is"
    last = client.post("/v1/models/step-time:rollback", json={"version": 1, "reason": "x"})
    assert "has no version that was promoted before" in last.json()["detail"]


def test_a_training_goes_on_behind_its_answer(client: TestClient, store: Store) -> None:
    accepted = client.post("/v1/models/step-time:train")
    operation = accepted.json()
    assert (accepted.status_code, operation["state"], operation["progress"]) == (202, "waiting", 0.0)
    url = accepted.headers["location"]
    assert url == f"/v1/operations/{operation['operation_id']}"
    assert client.get(url).json() == operation
    assert client.post("/v1/models/step-time:train").json() == operation
    Runner(store, TRAINERS).run_next()
    done = client.get(url).json()
    assert (done["state"], done["progress"], done["result"]["version"]) == ("done", 1.0, 1)
    assert done["ended_at"].endswith("Z")
    assert client.get("/v1/models/step-time").json()["promoted"] == 1


def test_the_same_key_trains_once(client: TestClient, store: Store) -> None:
    key = {"Idempotency-Key": "train-1"}
    first = client.post("/v1/models/step-time:train", headers=key)
    Runner(store, TRAINERS).run_next()
    again = client.post("/v1/models/step-time:train", headers=key)
    assert (again.json(), again.headers["location"]) == (first.json(), first.headers["location"])
    assert client.get(first.headers["location"]).json()["state"] == "done"
    assert client.post("/v1/models/step-time:train").json()["operation_id"] != first.json()["operation_id"]


def test_a_training_that_failed_says_why(client: TestClient, store: Store) -> None:
    url = client.post("/v1/models/step-time:train").headers["location"]
    broken = Trainer(lambda _: replace(trained(), model=print))
    Runner(store, {"step-time": broken}).run_next()
    failed = client.get(url).json()
    assert (failed["state"], failed["result"]["because"]) == ("failed", "asked for")
    assert "cannot be saved" in failed["error"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "detail"),
    [
        ("GET", "/v1/models/nobody", None, 404, "model 'nobody'"),
        ("GET", "/v1/models/step-time/versions/9", None, 404, "version 9"),
        ("GET", "/v1/models/step-time/versions/0", None, 422, "greater than or equal to 1"),
        ("GET", "/v1/models/step-time/versions/one", None, 422, "valid integer"),
        ("GET", "/v1/models?page=5", None, 422, "'page' is unknown"),
        ("POST", "/v1/models/step-time/versions/9:promote", None, 404, "version 9"),
        ("POST", "/v1/models/step-time/versions/99999999999:promote", None, 422, "less than"),
        ("POST", "/v1/models/step-time/versions/3:promote", {"forced_because": " "}, 422, "reason ' '"),
        ("POST", "/v1/models/step-time/versions/3:promote", {"force": True}, 422, "Extra inputs"),
        ("POST", "/v1/models/nobody:rollback", {"version": 1, "reason": "x"}, 404, "model 'nobody'"),
        ("POST", "/v1/models/step-time:rollback", {"version": 1}, 422, "reason"),
        ("POST", "/v1/models/step-time:rollback", {"version": "1", "reason": "x"}, 422, "valid integer"),
        ("POST", "/v1/models/nobody:train", None, 404, "no trainer: expected step-time"),
        ("POST", "/v1/models/..%5Cx:train", None, 422, "model name"),
        ("GET", "/v1/operations/nothing", None, 404, "operation 'nothing'"),
    ],
)
def test_bad_requests_are_problems_that_name_what_is_wrong(
    client: TestClient, versions: Store, method: str, path: str, body: object, status: int, detail: str
) -> None:
    before = client.get("/v1/models").json()
    answer = client.request(method, path, json=body) if body is not None else client.request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert detail in answer.json()["detail"]
    assert client.get("/v1/models").json() == before

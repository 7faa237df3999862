"""Saved cohorts over HTTP, and the same through both clients."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient
from tests.api.conftest import START_NS
from tests.serving import answering

from crosswind.client.local import Local
from crosswind.client.remote import Remote
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.run import RunState
from crosswind.data.schema.saved_cohort import RunConditions
from crosswind.data.store.store import Store


@pytest.fixture
def remote(store: Store) -> Iterator[Remote]:
    with answering(store.home) as url:
        yield Remote(url)


def test_a_cohort_is_saved_listed_and_deleted(client: TestClient) -> None:
    body = {"name": "odd ones", "note": "slow on Friday", "run_ids": ["r1", "r3", "r1"]}
    made = client.post("/v1/cohorts", json=body, headers={"Idempotency-Key": "k1"})
    assert made.status_code == 201
    cohort = made.json()
    path = f"/v1/cohorts/{cohort['cohort_id']}"
    assert (made.headers["Location"], cohort["name"], cohort["conditions"]) == (path, "odd ones", None)
    again = client.post("/v1/cohorts", json=body, headers={"Idempotency-Key": "k1"})
    assert again.json() == cohort
    assert client.get(path).json() == cohort
    assert client.get("/v1/cohorts").json()["cohorts"] == [cohort]
    assert [run["run_id"] for run in client.get(f"{path}/runs").json()["runs"]] == ["r3", "r1"]
    assert client.post(f"{path}:share", json={"shared": True}).json()["shared"] is True
    assert client.post(f"{path}:delete", json={}).json() == {"deleted": cohort["cohort_id"]}
    assert client.get(path).status_code == 404
    assert client.get("/v1/runs/r1").status_code == 200
    acts = [(entry["act"], entry["subject"]) for entry in client.get("/v1/audit").json()["entries"]]
    assert acts == [("delete cohort", cohort["cohort_id"]), ("share cohort", cohort["cohort_id"])]


def test_cohorts_and_members_are_listed_part_by_part(client: TestClient) -> None:
    for number in range(3):
        client.post("/v1/cohorts", json={"name": f"c{number}", "conditions": {"workload": "nanogpt"}})
    names, url = [], "/v1/cohorts?limit=2"
    while url:
        page = client.get(url).json()
        names += [cohort["name"] for cohort in page["cohorts"]]
        url = page["next_url"]
    assert names == ["c2", "c1", "c0"]
    runs, url = [], f"/v1/cohorts/{page['cohorts'][0]['cohort_id']}/runs?limit=3"
    while url:
        page = client.get(url).json()
        runs += [run["run_id"] for run in page["runs"]]
        url = page["next_url"]
    assert runs == [f"r{number}" for number in reversed(range(8))]


def test_conditions_choose_by_time_and_state(client: TestClient) -> None:
    conditions = {"system": "lab", "state": "completed", "from": "2026-01-02T03:06:00Z", "to": "2026-01-02T03:08:00Z"}
    made = client.post("/v1/cohorts", json={"name": "two minutes", "conditions": conditions}).json()
    assert made["conditions"]["from_ns"] == 1_767_323_160_000_000_000
    runs = client.get(f"/v1/cohorts/{made['cohort_id']}/runs").json()["runs"]
    assert [run["run_id"] for run in runs] == ["r3", "r2"]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"name": "x"}, 422, "expected either run_ids or conditions"),
        (
            {"name": "x", "run_ids": ["r1"], "conditions": {"system": "lab"}},
            422,
            "expected either run_ids or conditions",
        ),
        ({"name": "x", "conditions": {}}, 422, "conditions: expected one at least"),
        ({"name": "x", "run_ids": []}, 422, "run_ids"),
        ({"name": "x", "run_ids": ["r1", "nope"]}, 404, "run 'nope' is not in the catalog"),
        ({"name": "", "run_ids": ["r1"]}, 422, "body.name"),
        ({"name": "x", "conditions": {"from": "soon"}}, 422, "conditions.from 'soon': expected a time"),
        ({"name": "x", "conditions": {"state": "ill"}}, 422, "body.conditions.state"),
        ({"name": "x", "conditions": {"colour": "red"}}, 422, "colour"),
    ],
)
def test_what_is_no_selection_is_refused(client: TestClient, body: object, status: int, words: str) -> None:
    answer = client.post("/v1/cohorts", json=body)
    assert (answer.status_code, words in answer.json()["detail"]) == (status, True), answer.text
    assert client.get("/v1/cohorts").json()["cohorts"] == []


def test_a_comparison_of_few_runs_says_what_it_needs(client: TestClient) -> None:
    made = client.post("/v1/cohorts", json={"name": "x", "run_ids": ["r1", "r2", "r3"]}).json()
    answer = client.get(f"/v1/cohorts/{made['cohort_id']}/comparison?drift=true").json()
    assert (answer["cohort_runs"], answer["other_runs"], answer["drift"], answer["features"]) == (3, 5, True, [])
    assert "20 together" in answer["warnings"][0]


def test_both_clients_answer_the_same(store: Store, remote: Remote) -> None:
    local = Local(store).cohorts
    chosen = remote.cohorts.create("chosen", ["r1", "r2"])
    times = {"from_ns": START_NS, "to_ns": START_NS + 60_000_000_001}
    by_conditions = remote.cohorts.create("first", None, RunConditions(state=RunState.COMPLETED, **times), note="n")
    assert local.list() == remote.cohorts.list() == (by_conditions, chosen)
    for cohort in (chosen, by_conditions):
        assert local.get(cohort.cohort_id) == remote.cohorts.get(cohort.cohort_id) == cohort
        assert local.runs(cohort.cohort_id) == remote.cohorts.runs(cohort.cohort_id)
        assert local.compare(cohort.cohort_id) == remote.cohorts.compare(cohort.cohort_id)
    assert [run.run_id for run in local.runs(by_conditions.cohort_id)] == ["r1", "r0"]
    assert remote.cohorts.share(chosen.cohort_id, shared=True) == local.get(chosen.cohort_id)
    remote.cohorts.delete(chosen.cohort_id)
    for cohorts in (local, remote.cohorts):
        with pytest.raises(NotFoundError):
            cohorts.get(chosen.cohort_id)
        with pytest.raises(InvalidInputError, match="either run_ids or conditions"):
            cohorts.create("both")

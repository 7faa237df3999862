"""Idempotency-Key: every POST that changes something, in SQLite and in PostgreSQL."""

import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.api.access.issuing import ANNA, BEN, EVERY_DAY, bearer, issued, stranger
from tests.serving import own_client

from crosswind.api.access.scopes import NEEDS, Needs
from crosswind.api.app import create_app
from crosswind.api.delivery.repeats import takes_key
from crosswind.data.catalog.first_answers import LEASE_NS, FirstAnswer, InProgressError
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store

STUDY = {"name": "n", "space": {"batch": {"kind": "int", "low": 1, "high": 64}}, "objective": "o", "trials_max": 50}
KEY = {"Idempotency-Key": "k"}
DAY_NS = 24 * 3600 * 1_000_000_000
WITHOUT = {  # whose answers hold a secret, and what stores nothing
    *("POST /v1/tokens", "POST /v1/tokens:link", "POST /v1/tokens:job", "POST /v1/tokens/{token_id}:revoke"),
    *("POST /login", "POST /logout"),
    *(
        "POST /v1/predictions",
        "POST /v1/predictions:batch",
        "POST /v1/walltime-advice",
        "POST /v1/scaling-advice",
        "POST /v1/sql",
    ),
}


in_both = pytest.mark.parametrize("store", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.thorough)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    url = None if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with Store.open(tmp_path / "store", database=url) as opened:
        with opened.catalog.write() as session:
            for number in range(3):
                session.runs.merge(Run(f"r{number}", "w", "lab", RunState.COMPLETED, started_ns=1, ended_ns=9))
        yield opened


@pytest.fixture
def app(store: Store) -> FastAPI:
    return create_app(store)


@pytest.fixture
def client(app: FastAPI) -> TestClient:
    return own_client(app)


def test_every_post_that_changes_something_takes_a_key(app: FastAPI) -> None:
    needs = Needs()
    posts = {route for route in NEEDS if route.startswith("POST ")}
    keyed = {route for route in posts if takes_key(needs, route.removeprefix("POST "))}
    assert posts - keyed == WITHOUT
    for path, operations in app.openapi()["paths"].items():
        names = {parameter["name"] for parameter in operations.get("post", {}).get("parameters", ())}
        assert ("idempotency-key" in names) == (f"POST {path}" in keyed), path


def trial_of(client: TestClient) -> str:
    client.post("/v1/studies", json=STUDY)
    [trial] = client.post("/v1/studies/n/trials:suggest", json={"owner": "a"}).json()["trials"]
    return f"/v1/studies/n/trials/{trial['trial_id']}"


ACTS: Mapping[str, tuple[str, Any]] = {  # TRIAL is a leased trial of a study n
    "extend": ("/v1/studies/n:extend", {"trials": 5}),
    "pause": ("/v1/studies/n:pause", {}),
    "rename": ("/v1/studies/n:rename", {"name": "m", "force": True}),
    "delete": ("/v1/studies/n:delete", {"force": True}),
    "share": ("/v1/runs/r0:share", {}),
    "suggest": ("/v1/studies/n/trials:suggest", {"owner": "a", "count": 2}),
    "enqueue": ("/v1/studies/n/trials:enqueue", {"configurations": [{"batch": 3}]}),
    "heartbeat": ("TRIAL:heartbeat", {"owner": "a"}),
    "report": ("TRIAL:report", {"reports": [{"step": 1, "value": 0.5}]}),
    "complete": ("TRIAL:complete", {"objective": 0.5, "owner": "a"}),
    "fail": ("TRIAL:fail", {"reason": "x"}),
    "release": ("TRIAL:release", {}),
    "delete a run": ("/v1/runs/r1:delete", {}),
}


@pytest.mark.parametrize("act", ACTS)
def test_the_same_request_gets_the_first_answer_and_another_is_refused(client: TestClient, act: str) -> None:
    trial = trial_of(client)
    path, body = ACTS[act]
    path = path.replace("TRIAL", trial)
    first = client.post(path, json=body, headers=KEY)
    again = client.post(path, json=body, headers=KEY)
    assert first.is_success, first.text
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert [answer.headers.get("idempotency-replayed") for answer in (first, again)] == [None, "true"]
    other = client.post(path, json={**body, "owner": "z"}, headers=KEY)
    assert (other.status_code, "'k' was used for another request" in other.text) == (422, True)


def test_the_first_answer_comes_again_after_the_state_has_changed(client: TestClient) -> None:
    first = client.post("/v1/studies", json=STUDY, headers=KEY)
    client.post("/v1/studies/n:rename", json={"name": "m"})
    again = client.post("/v1/studies", json=STUDY, headers=KEY)
    assert (again.status_code, again.content) == (201, first.content)
    assert again.headers["location"] == first.headers["location"]
    assert again.headers["content-type"] == "application/json"


def test_a_refusal_changes_nothing_and_leaves_its_key_free(client: TestClient) -> None:
    assert client.post("/v1/studies/n:extend", json={"trials": 1}, headers=KEY).status_code == 404
    assert client.post("/v1/studies", json=STUDY, headers=KEY).status_code == 201


def test_a_key_is_of_use_to_its_caller_alone(app: FastAPI, store: Store) -> None:
    people = (replace(who, scopes=EVERY_DAY) for who in (ANNA, BEN))
    anna, ben = (stranger(app, bearer(issued(store, who).secret)) for who in people)
    first = anna.post("/v1/studies", json=STUDY, headers=KEY)
    other = ben.post("/v1/studies", json=STUDY, headers=KEY)
    assert (first.status_code, other.status_code) == (201, 409)  # the name is taken: nothing of hers is his answer
    assert "idempotency-replayed" not in other.headers


@in_both
def test_many_at_once_change_it_once(app: FastAPI, client: TestClient) -> None:
    client.post("/v1/studies", json=STUDY)
    barrier = threading.Barrier(8)

    def suggest(_: int) -> Any:
        barrier.wait()
        return own_client(app).post("/v1/studies/n/trials:suggest", json={"owner": "a"}, headers=KEY)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(suggest, range(8)))
    done = [answer for answer in answers if answer.status_code == 200]
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert len({answer.content for answer in done}) == 1
    for answer in answers:
        if answer.status_code == 409:
            assert (answer.json()["type"], answer.headers["retry-after"]) == ("/problems/in-progress", "1")
    assert len(client.get("/v1/studies/n/trials").json()["trials"]) == 1
    assert client.post("/v1/studies/n/trials:suggest", json={"owner": "a"}, headers=KEY).content == done[0].content


@in_both
def test_a_claim_lasts_until_its_answer_or_a_minute_and_an_answer_a_day(store: Store) -> None:
    request, other, now = RequestKey("k", "f", "anna"), RequestKey("k", "g", "anna"), time.time_ns()
    answer = FirstAnswer(201, {"location": "/x"}, b"{}")
    with store.catalog.write() as session:
        answers = session.first_answers
        assert answers.claim(request, now) is None
        with pytest.raises(InProgressError):
            answers.claim(request, now + LEASE_NS)
        with pytest.raises(InvalidInputError):
            answers.claim(other, now)
        assert answers.claim(request, now + LEASE_NS + 1) is None  # its server was killed
        answers.settle(request, answer)
        answers.settle(request, FirstAnswer(200, {}, b"late"))
        answers.release(request)
        assert answers.claim(request, now + DAY_NS) == answer
        assert answers.claim(RequestKey("k", "g", "ben"), now) is None
        assert answers.claim(other, now + DAY_NS + 1) is None


def test_a_key_that_is_none_is_refused_by_name(client: TestClient) -> None:
    refused = client.post("/v1/runs/r0:share", json={}, headers={"Idempotency-Key": "a b"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "header.idempotency-key")


def test_a_token_is_never_kept(client: TestClient, store: Store) -> None:
    first, again = (client.post("/v1/tokens", json={"name": "s"}, headers=KEY) for _ in range(2))
    assert first.json()["secret"] != again.json()["secret"]
    with store.catalog.write() as session:
        assert session.first_answers.claim(RequestKey("k", "f"), time.time_ns()) is None

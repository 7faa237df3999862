import time
from dataclasses import replace

import pytest
from anyio import fail_after, to_thread
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.api.access.issuing import ADMIN, AGENT, ANNA, BEN, JOB, SERVICE, bearer, issued, revoked, stranger

from crosswind.api.access.token_cache import FRESH_SECONDS, KEPT_MAX, USE_NS, TokenCache
from crosswind.api.app import create_app
from crosswind.data.catalog.tokens import digest_of
from crosswind.data.schema.access import Principal, Scope
from crosswind.data.schema.occupancy import Allocation, Source
from crosswind.data.store.store import Store

HOST_AGENT = Principal(AGENT, "n1", scopes=frozenset({Scope.INGEST}), system="lab")


@pytest.fixture
def app(store: Store) -> FastAPI:
    return create_app(store)


def as_(app: FastAPI, store: Store, principal: Principal) -> TestClient:
    return stranger(app, bearer(issued(store, principal).secret))


def test_an_administrator_creates_a_token_for_anybody(app: FastAPI, store: Store) -> None:
    wanted = {"name": "7", "kind": "job", "system": "lab", "scopes": ["read", "tune"], "accounts": ["physics"]}
    answer = as_(app, store, ADMIN).post("/v1/tokens", json={**wanted, "seconds": 60})
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    token = answer.json()["token"]
    assert {name: token["principal"][name] for name in ("name", "kind", "system", "accounts")} == {
        name: wanted[name] for name in ("name", "kind", "system", "accounts")
    }
    assert sorted(token["principal"]["scopes"]) == ["read", "tune"]
    assert token["expires_ns"] - token["created_ns"] == 60 * 10**9
    assert token["created_by"] == "service operations"
    assert stranger(app, bearer(answer.json()["secret"])).get("/v1/runs").status_code == 200


def test_a_person_creates_lists_and_revokes_own_tokens_alone(app: FastAPI, store: Store) -> None:
    anna, theirs = as_(app, store, ANNA), issued(store, BEN).token
    made = anna.post("/v1/tokens", json={}).json()
    assert made["token"]["principal"]["name"] == "anna"
    listed = anna.get("/v1/tokens").json()["tokens"]
    assert {token["principal"]["name"] for token in listed} == {"anna"}
    assert made["token"] in listed
    assert "secret" not in str(listed)
    ended = anna.post(f"/v1/tokens/{made['token']['token_id']}:revoke")
    assert (ended.status_code, ended.json()["revoked_ns"] is not None) == (200, True)
    assert stranger(app, bearer(made["secret"])).get("/v1/runs").status_code == 401
    hidden, missing = (anna.post(f"/v1/tokens/{one}:revoke") for one in (theirs.token_id, "nope"))
    assert (hidden.status_code, missing.status_code) == (404, 404)
    assert hidden.json()["detail"].replace(theirs.token_id, "nope") == missing.json()["detail"]
    with store.catalog.read() as session:
        assert session.tokens.get(theirs.token_id).revoked_ns is None


@pytest.mark.parametrize(
    "wanted",
    [
        {"name": "ben", "kind": "person"},
        {"name": "anna"},  # a service of that name
        {"scopes": ["admin"]},
        {"scopes": ["read", "ingest"]},
        {"name": "anna", "kind": "person", "role": "support", "accounts": ["physics"]},
        {"name": "anna", "kind": "person", "user": "ben", "accounts": ["physics"]},
        {"name": "anna", "kind": "person", "accounts": ["physics", "chemistry"]},
    ],
)
def test_nobody_gives_away_more_than_they_have(app: FastAPI, store: Store, wanted: dict[str, object]) -> None:
    for path in ("/v1/tokens", "/v1/tokens:link"):
        answer = as_(app, store, ANNA).post(path, json=wanted)
        assert (answer.status_code, answer.json()["type"]) == (403, "/problems/out-of-scope")
    with store.catalog.read() as session:
        assert {token.principal for token in session.tokens.find()} == {ANNA}


@pytest.mark.parametrize("kind", [JOB, AGENT, SERVICE])
def test_jobs_agents_and_services_create_no_tokens(app: FastAPI, store: Store, kind: Principal) -> None:
    client = as_(app, store, Principal(kind, "x", system="lab"))  # type: ignore[arg-type]
    assert client.post("/v1/tokens", json={}).status_code == 403


def test_a_list_of_tokens_goes_on_at_its_cursor(app: FastAPI, store: Store) -> None:
    admin = as_(app, store, ADMIN)
    made = [issued(store, ANNA).token.token_id for _ in range(4)]
    seen, url = [], "/v1/tokens?limit=2"
    while url:
        part = admin.get(url).json()
        seen += [token["token_id"] for token in part["tokens"]]
        url = part["next_url"]
    assert seen == sorted(seen)
    assert len(seen) == 5
    assert set(made) < set(seen)


@pytest.mark.parametrize(
    "body",
    [
        *({"seconds": 0}, {"seconds": 1e12}, {"scopes": []}, {"scopes": ["write"]}, {"kind": "robot"}, {"nme": "x"}),
        *({"name": "x", "kind": "job"}, {"name": ""}, {"name": "a\u0000"}, {"accounts": ["a"] * 101}),
    ],
)
def test_a_token_that_makes_no_sense_is_refused_with_the_field(
    app: FastAPI, store: Store, body: dict[str, object]
) -> None:
    answer = as_(app, store, ADMIN).post("/v1/tokens", json=body)
    assert answer.status_code in {400, 422}
    assert any(word in answer.json()["detail"] for word in (*body, "system", "NUL"))


def place(store: Store, job_id: str, node: str) -> None:
    with store.catalog.write() as session:
        session.places.merge(Allocation(job_id, node, node, Source.PROLOG, system="lab"))


def test_an_agent_makes_tokens_for_jobs_of_its_node_that_end_with_its_own(app: FastAPI, store: Store) -> None:
    place(store, "7", "n1")
    own = issued(store, HOST_AGENT)
    agent = stranger(app, bearer(own.secret))
    for job_id in ("7", "not stored yet"):
        made = agent.post("/v1/tokens:job", json={"job_id": job_id, "system": "lab"})
        assert made.status_code == 201
        principal = made.json()["token"]["principal"]
        assert (principal["kind"], principal["name"], principal["user"]) == ("job", job_id, None)
        assert "admin" not in principal["scopes"]
    job = stranger(app, bearer(made.json()["secret"]))
    assert job.get("/v1/runs").status_code == 200
    revoked(store.catalog, own)
    time.sleep(FRESH_SECONDS + 0.1)
    assert job.get("/v1/runs").status_code == 401
    assert agent.post("/v1/tokens:job", json={"job_id": "7", "system": "lab"}).status_code == 401


@pytest.mark.parametrize(
    ("principal", "body"),
    [
        (HOST_AGENT, {"job_id": "8", "system": "lab"}),
        (HOST_AGENT, {"job_id": "7", "system": "other"}),
        (replace(HOST_AGENT, kind=SERVICE), {"job_id": "7", "system": "lab"}),
        (replace(ANNA, scopes=frozenset({Scope.INGEST})), {"job_id": "7", "system": "lab"}),
    ],
)
def test_an_agent_makes_no_tokens_for_jobs_elsewhere_and_others_make_none(
    app: FastAPI, store: Store, principal: Principal, body: dict[str, str]
) -> None:
    place(store, "8", "n2")
    answer = as_(app, store, principal).post("/v1/tokens:job", json=body)
    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/out-of-scope")


def test_a_revoked_token_ends_within_a_second_on_every_server(app: FastAPI, store: Store) -> None:
    with Store.open(store.home) as opened:
        other = create_app(opened)
        made = issued(store, ANNA)
        clients = [stranger(one, bearer(made.secret)) for one in (app, other)]
        assert [client.get("/v1/runs").status_code for client in clients] == [200, 200]
        admin = as_(app, store, ADMIN)
        assert admin.post(f"/v1/tokens/{made.token.token_id}:revoke").status_code == 200
        assert clients[0].get("/v1/runs").status_code == 401  # the server that did it, at once
        ended = time.monotonic() + 1.0
        while clients[1].get("/v1/runs").status_code == 200:
            assert time.monotonic() < ended
            time.sleep(0.02)


@pytest.mark.anyio
async def test_a_busy_token_is_looked_up_twice_a_second_and_its_use_noted_every_ten_minutes(store: Store) -> None:
    made, now = issued(store, ANNA), [0.0]
    cache = TokenCache(store.catalog, lambda: now[0])
    lookups: list[str] = []
    fetch = cache._fetch
    cache._fetch = lambda digest: (lookups.append(digest), fetch(digest))[1]  # type: ignore[method-assign]
    for number in range(100):
        now[0] = number / 100
        assert await cache.find(made.secret) is not None
    assert lookups == [digest_of(made.secret)] * 2
    cache.note_uses()
    with store.catalog.read() as session:
        first = session.tokens.get(made.token.token_id).used_ns
    assert first is not None
    now[0] = 2.0
    await cache.find(made.secret)
    cache.note_uses()
    with store.catalog.read() as session:
        assert session.tokens.get(made.token.token_id).used_ns == first
    assert USE_NS == 600 * 10**9


@pytest.mark.anyio
async def test_forged_tokens_fill_no_memory(store: Store) -> None:
    cache = TokenCache(store.catalog)
    cache._fetch = lambda _: None  # type: ignore[method-assign]
    for number in range(KEPT_MAX + 50):
        assert await cache.find(f"cw_{number}") is None
    assert len(cache._kept) == KEPT_MAX


@pytest.mark.anyio
async def test_slow_answers_do_not_keep_callers_waiting_at_the_door(store: Store) -> None:
    made, cache = issued(store, ANNA), TokenCache(store.catalog)
    threads = to_thread.current_default_thread_limiter()
    holders = [object() for _ in range(int(threads.total_tokens))]
    for holder in holders:
        threads.acquire_on_behalf_of_nowait(holder)
    try:
        with fail_after(10):
            assert await cache.find(made.secret) == made.token
    finally:
        for holder in holders:
            threads.release_on_behalf_of(holder)

"""Keys and cursors of one principal are of no use to another."""

from dataclasses import replace

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.api.access.issuing import ANNA, BEN, EVERY_DAY, bearer, issued, stranger

from crosswind.api.app import create_app
from crosswind.data.schema.access import Principal, Role
from crosswind.data.store.store import Store

STUDY = {"name": "n", "space": {"batch": {"kind": "int", "low": 1, "high": 64}}, "objective": "o"}


@pytest.fixture
def app(store: Store) -> FastAPI:
    return create_app(store)


def as_(app: FastAPI, store: Store, principal: Principal) -> TestClient:
    """Return a client of somebody who may see all rows."""
    return stranger(app, bearer(issued(store, replace(principal, role=Role.SUPPORT, scopes=EVERY_DAY)).secret))


@pytest.mark.parametrize("path", ["/v1/runs", "/v1/run-outcomes", "/v1/jobs"])
def test_a_cursor_goes_on_for_its_principal_alone(app: FastAPI, store: Store, path: str) -> None:
    anna, again, ben = (as_(app, store, replace(who, role=Role.SUPPORT)) for who in (ANNA, ANNA, BEN))
    further = anna.get(path, params={"limit": 1}).json()["next_url"]
    assert anna.get(further).json() == again.get(further).json()
    refused = ben.get(further)
    assert (refused.status_code, "asked by you" in refused.json()["detail"]) == (422, True)


def test_an_idempotency_key_of_one_principal_says_nothing_to_another(app: FastAPI, store: Store) -> None:
    anna, again, ben = as_(app, store, ANNA), as_(app, store, ANNA), as_(app, store, BEN)
    key = {"Idempotency-Key": "k1"}
    made = anna.post("/v1/studies", json=STUDY, headers=key)
    repeated = again.post("/v1/studies", json=STUDY, headers=key)
    assert (made.status_code, repeated.json()["study_id"]) == (201, made.json()["study_id"])
    other = ben.post("/v1/studies", json=STUDY | {"name": "m"}, headers=key)
    assert (other.status_code, other.json()["study_id"] != made.json()["study_id"]) == (201, True)
    assert anna.post("/v1/studies", json=STUDY | {"name": "m"}, headers=key).status_code == 422

"""Tokens for tests, and clients that bring them."""

import time
from collections.abc import Mapping

from fastapi import FastAPI
from starlette.testclient import TestClient

from crosswind.api.peer import PEER, Peer
from crosswind.data.catalog.catalog import Catalog
from crosswind.data.schema.access import Principal, PrincipalKind, Role, Scope, TokenUse
from crosswind.data.schema.answers.tokens import IssuedToken
from crosswind.data.store.store import Store

UNPLACED = Peer("127.0.0.1")
NOBODY = 65534  # a uid that runs no test
PERSON, JOB, AGENT, SERVICE = PrincipalKind
ANNA = Principal(PERSON, "anna", user="anna", accounts=frozenset({"physics"}))
BEN = Principal(PERSON, "ben", user="ben")
ADMIN = Principal(SERVICE, "operations", Role.ADMIN, frozenset(Scope))
EVERY_DAY = frozenset({Scope.READ, Scope.INGEST, Scope.TUNE})


def issued(
    store: Store,
    principal: Principal,
    seconds: float = 3600.0,
    *,
    use: TokenUse = TokenUse.PROGRAM,
    parent_id: str | None = None,
) -> IssuedToken:
    with store.catalog.write() as session:
        return session.tokens.issue(principal, seconds, created_by="a test", use=use, parent_id=parent_id)


def revoked(catalog: Catalog, made: IssuedToken) -> str:
    with catalog.write() as session:
        session.tokens.revoke(made.token.token_id, by="a test")
    return made.secret


def expired(store: Store, principal: Principal) -> str:
    made = issued(store, principal, 0.001)
    while time.time_ns() < made.token.expires_ns:
        time.sleep(0.001)
    return made.secret


def bearer(secret: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def stranger(
    app: FastAPI,
    headers: Mapping[str, str] | None = None,
    peer: Peer = UNPLACED,
    url: str = "http://localhost",
) -> TestClient:
    """Return a client with these headers, whom the kernel knows as this peer, or not at all."""
    client = TestClient(app, url, headers=dict(headers or {}), follow_redirects=False)
    client.app_state[PEER] = peer
    return client

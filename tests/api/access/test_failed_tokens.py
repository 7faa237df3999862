"""Tokens in header fields that do not hold: slower each time, then refused, and logged twice."""

import logging

import anyio
import pytest
from fastapi import FastAPI
from tests.api.access.issuing import ANNA, bearer, issued, stranger

from crosswind.api.access.attempts import TOKENS_FREE, TOKENS_MAX
from crosswind.api.app import create_app
from crosswind.api.peer import Peer
from crosswind.data.store.store import Store

HERE, THERE = Peer("192.0.2.1"), Peer("192.0.2.2")


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    seconds: list[float] = []

    async def nap(wanted: float) -> None:
        seconds.append(wanted)
        await anyio.lowlevel.checkpoint()

    monkeypatch.setattr("crosswind.api.auth.sleep", nap)
    return seconds


@pytest.fixture
def app(store: Store) -> FastAPI:
    return create_app(store)


def test_failed_tokens_are_slowed_then_refused_and_logged_twice(
    app: FastAPI, naps: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    guesser = stranger(app, peer=HERE)
    with caplog.at_level(logging.WARNING, "crosswind.access"):
        answers = [guesser.get("/v1/runs", headers=bearer(f"guess {number}")) for number in range(TOKENS_MAX + 3)]
    assert [answer.status_code for answer in answers] == [401] * TOKENS_MAX + [429] * 3
    assert (len(naps), naps[:4], naps[-1]) == (TOKENS_MAX - TOKENS_FREE, [0.25, 0.5, 1.0, 2.0], 2.0)
    assert 0 < int(answers[-1].headers["retry-after"]) <= 60
    assert answers[-1].json()["detail"].endswith("of this one: the token is unknown here")
    assert [record.getMessage() for record in caplog.records] == [
        "a token from 192.0.2.1 failed: the token is unknown here",
        f"{TOKENS_MAX} tokens from 192.0.2.1 failed within a minute: more are refused",
    ]


def test_tokens_that_hold_and_other_places_are_not_affected(app: FastAPI, store: Store, naps: list[float]) -> None:
    for number in range(TOKENS_MAX):
        stranger(app, bearer(f"guess {number}"), HERE).get("/v1/runs")
    good = bearer(issued(store, ANNA).secret)
    assert stranger(app, good, HERE).get("/v1/runs").status_code == 200
    assert stranger(app, bearer("guess"), THERE).get("/v1/runs").status_code == 401
    assert stranger(app, peer=HERE).get("/v1/runs").status_code == 401  # without a token: nothing was tried

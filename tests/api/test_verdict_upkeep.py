"""A server computes in the background what is due of its store."""

import time
from dataclasses import replace

import pytest

from crosswind.api.verdict_upkeep import verdict_upkeep
from crosswind.data.store.store import Store
from crosswind.models.explain import upkeep
from crosswind.models.explain.explain import explain_run
from crosswind.models.explain.stored import stored_explanations


def test_runs_that_end_get_their_verdict_without_being_asked_for(store: Store) -> None:
    with store.catalog.read() as session:
        run = session.runs.get("r0")
    with verdict_upkeep(store, look_seconds=0.05):
        assert await_verdict(store, "r0")
        with store.catalog.write() as session:
            session.runs.merge(replace(run, run_id="r9"))
        assert await_verdict(store, "r9")
    assert stored_explanations(store, ["r9"])["r9"] == explain_run(store, "r9")


def await_verdict(store: Store, run_id: str) -> bool:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if stored_explanations(store, [run_id]):
            return True
        time.sleep(0.05)
    return False


def test_an_error_does_not_end_it(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    lock = store.home / upkeep.LOCK
    lock.mkdir()
    with verdict_upkeep(store, look_seconds=0.02):
        until = time.monotonic() + 30
        while not caplog.records and time.monotonic() < until:
            time.sleep(0.02)
        assert len(caplog.records) == 1
        lock.rmdir()
        assert await_verdict(store, "r0")

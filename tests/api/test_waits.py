from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from tests.serving import own_client

from crosswind.api.app import create_app
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store

STEPS, SECOND = 8, 10**9


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """A server with a run in which rank 0 waits half a second for rank 1 in every step, and one without steps."""
    with Store.open(tmp_path) as store:
        with store.catalog.write() as session:
            for run_id in ("r", "empty"):
                session.runs.merge(Run(run_id, "w", "s", RunState.COMPLETED, world_size=2))
        ranks, steps = [0, 1] * STEPS, [step for step in range(STEPS) for _ in range(2)]
        columns = {
            "ts_ns": [step * SECOND for step in steps],
            "run_id": ["r"] * len(steps),
            "rank": ranks,
            "step": steps,
        }
        times = {"duration_seconds": [SECOND] * len(steps), "comm_seconds": [SECOND * 6 // 10, SECOND // 10] * STEPS}
        store.lake.append("steps", to_table(STEP, columns | times))
        yield own_client(create_app(store), base_url="http://127.0.0.1")


def test_who_waited_for_whom(client: TestClient) -> None:
    waits = client.get("/v1/runs/r/waits").json()
    assert (waits["edges"][0]["culprit"], waits["edges"][0]["victim"]) == (1, 0)
    assert waits["edges"][0]["seconds"] == pytest.approx(0.5 * waits["steps"])
    assert (waits["stages"], waits["balance_ratio"]) == ([], None)


def test_a_run_without_steps_has_nobody_who_waited(client: TestClient) -> None:
    waits = client.get("/v1/runs/empty/waits").json()
    assert (waits["steps"], waits["lost_seconds"], waits["edges"]) == (0, 0.0, [])


def test_a_run_that_is_not_there_is_not_found(client: TestClient) -> None:
    assert client.get("/v1/runs/nobody/waits").status_code == 404

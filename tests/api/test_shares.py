from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.models.advice.measured_ranks import store_run
from tests.serving import own_client

from crosswind.api.app import create_app
from crosswind.data.store.store import Store


def test_a_slow_rank_gets_less(tmp_path: Path) -> None:
    store_run(tmp_path, [1.0, 2.0], {"batch": 15})
    with Store.open(tmp_path) as store, own_client(create_app(store), base_url="http://localhost:8000") as client:
        shares = client.get("/v1/runs/measured/batch-shares?batch=60").json()
    assert [rank["samples"] for rank in shares["ranks"]] == [40, 20]
    assert (shares["batch"], shares["now_batch"], shares["present"]) == (60, 30, "batch x 2 ranks")
    assert shares["gain_ratio"] == pytest.approx(1 - (4 * 0.2 / 3 + 0.01) / 0.41)


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("r0/batch-shares?batch=16", 422, "5 steps tell every rank's compute seconds, expected at least 20"),
        ("other/batch-shares?batch=16", 422, "no step after its first 3 is recorded"),
        ("nothing/batch-shares?batch=16", 404, "nothing"),
        ("r0/batch-shares?batch=0", 422, "greater than or equal to 1"),
        ("r0/batch-shares?batch=many", 422, "valid integer"),
        ("r0/batch-shares?samples=3", 422, "query parameter 'samples' is unknown"),
    ],
)
def test_what_cannot_be_shared_is_refused(client: TestClient, path: str, status: int, message: str) -> None:
    answer = client.get(f"/v1/runs/{path}")
    assert answer.status_code == status
    assert message in answer.json()["detail"]

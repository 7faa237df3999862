import pytest
from starlette.testclient import TestClient

RUN = {"workload": "nanogpt", "system": "lab", "configuration": {"batch": 8, "fused": True}}


def test_the_limit_is_enough_for_what_runs_took(client: TestClient) -> None:
    advice = client.post("/v1/walltime-advice", json={**RUN, "world_size": 2, "confidence": 0.9}).json()
    assert advice["answer"]["outcome"] == "run_seconds"  # all eight took 30 s
    assert advice["limit"]["seconds"] == 60
    assert advice["limit"]["directive"] == "#SBATCH --time=00:01:00"
    assert advice["startup_seconds"] == 0  # the runs were in no job


def test_the_time_before_the_run_can_be_given(client: TestClient) -> None:
    request = {**RUN, "world_size": 2, "startup_seconds": 300}
    advice = client.post("/v1/walltime-advice", json=request).json()
    assert advice["limit"]["seconds"] == 360
    assert advice["limit"]["confidence"] == 0.95


@pytest.mark.parametrize("confidence", [0.2, 1.0, 0.999, "0.9"])
def test_a_confidence_that_nobody_can_give_is_refused(client: TestClient, confidence: object) -> None:
    answer = client.post("/v1/walltime-advice", json={**RUN, "world_size": 2, "confidence": confidence})
    assert answer.status_code == 422
    assert "confidence" in answer.text


def test_scales_are_compared_with_the_fewest_nodes(client: TestClient) -> None:
    request = {**RUN, "node_counts": [1, 2, 4], "ranks_per_node": 2, "node_watts": 400, "now": 4}
    advice = client.post("/v1/scaling-advice", json=request).json()
    points = advice["curve"]["points"]
    assert [point["node_count"] for point in points] == [1, 2, 4]
    assert (points[0]["speedup"], points[0]["efficiency"]) == (1.0, 1.0)
    assert points[0]["joules"] == pytest.approx(400 * points[0]["node_hours"] * 3600)
    assert [answer["basis"] for answer in advice["answers"]] == ["cohort", "workload", "workload"]
    assert advice["change"] == advice["advised"] - 4


def test_a_deadline_that_nothing_keeps_gets_no_advice(client: TestClient) -> None:
    advice = client.post("/v1/scaling-advice", json={**RUN, "node_counts": [1, 2], "deadline_seconds": 0.001}).json()
    assert (advice["advised"], advice["change"]) == (None, None)


@pytest.mark.parametrize("counts", [[], [2, 1], [1, 1], [0], list(range(1, 67))])
def test_numbers_of_nodes_that_do_not_rise_are_refused(client: TestClient, counts: list[int]) -> None:
    assert client.post("/v1/scaling-advice", json={**RUN, "node_counts": counts}).status_code == 422

import pytest
from starlette.testclient import TestClient

ASKED = {"workload": "nanogpt", "system": "lab", "configuration": {"batch": 8, "fused": True}, "world_size": 2}


def test_the_next_run_is_predicted_from_its_cohort(client: TestClient) -> None:
    answer = client.post("/v1/predictions", json=ASKED)
    assert answer.status_code == 200
    told = answer.json()
    seconds = [each["seconds"] for each in told["quantiles"]]
    assert seconds == sorted(seconds)
    assert 0.095 < seconds[0] <= seconds[-1] < 0.115  # the runs took 100 to 107 ms a step
    assert (told["runs"], told["cohort_runs"], told["unit"], told["outcome"]) == (8, 8, "s", "step_p50_seconds")
    assert told["method"] in told["losses"]
    assert 0 < told["promised_coverage"] <= 0.9


def test_the_skill_compares_with_the_cohorts_median(client: TestClient) -> None:
    told = client.post("/v1/predictions", json=ASKED).json()
    assert told["skill"] == pytest.approx(1 - told["losses"][told["method"]] / told["losses"]["always_median"])


def test_too_few_runs_are_said_to_be_too_few(client: TestClient) -> None:
    answer = client.post("/v1/predictions", json=ASKED | {"workload": "bert"})
    assert answer.status_code == 422
    assert "0 earlier runs" in answer.json()["detail"]

import pytest
from starlette.testclient import TestClient

REQUEST = {"workload": "nanogpt", "system": "lab", "configuration": {"batch": 8, "fused": True}, "world_size": 2}
NETWORK = {"hidden": 4096, "layers": 32, "tp": 8, "pp": 2, "global_batch": 512, "accelerator": "H100"}


def test_the_next_run_is_predicted_from_its_cohort(client: TestClient) -> None:
    answer = client.post("/v1/predictions", json=REQUEST)
    assert answer.status_code == 200
    body = answer.json()
    seconds = [quantile["seconds"] for quantile in body["quantiles"]]
    assert seconds == sorted(seconds)
    assert [quantile["level"] for quantile in body["quantiles"]] == [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99]
    assert 0.09 < seconds[0] <= seconds[-1] < 0.12  # the runs took 100 to 107 ms a step
    assert (body["runs"], body["cohort_runs"], body["unit"], body["outcome"]) == (8, 8, "s", "step_p50_seconds")
    assert (body["basis"], body["distance"], body["is_outside"]) == ("cohort", 0.0, False)
    assert [run["run_id"] for run in body["evidence"]] == ["r7", "r6", "r5", "r4", "r3"]


def test_another_outcome_can_be_asked_for(client: TestClient) -> None:
    body = client.post("/v1/predictions", json=REQUEST | {"outcome": "run_seconds"}).json()
    assert body["outcome"] == "run_seconds"
    assert body["quantiles"][3]["seconds"] == pytest.approx(30)


def test_the_chance_to_exceed_a_limit_falls_with_the_limit(client: TestClient) -> None:
    chances = [
        client.post("/v1/predictions", json=REQUEST | {"limit_seconds": limit}).json()["exceedance"]
        for limit in (0.05, 0.103, 1.0)
    ]
    assert chances[0] > 0.9 > chances[1] > 0.01 > chances[2]


def test_another_scale_is_predicted_from_the_workload_and_flagged(client: TestClient) -> None:
    body = client.post("/v1/predictions", json=REQUEST | {"world_size": 1024}).json()
    assert (body["basis"], body["cohort_runs"], body["is_outside"]) == ("workload", 0, True)
    assert "world_size is 1024, earlier runs had 2 to 2" in body["warnings"]
    assert body["evidence"][0]["run_id"] == "r7"


def test_another_system_is_predicted_by_transfer(client: TestClient) -> None:
    body = client.post("/v1/predictions", json=REQUEST | {"system": "other"}).json()
    assert body["basis"] == "transfer"
    assert "system is other, earlier runs had lab" in body["warnings"]


def test_an_accelerator_that_is_in_no_table_is_warned_of(client: TestClient) -> None:
    body = client.post("/v1/predictions", json=REQUEST | {"facts": {"accelerator": "Abacus 3"}}).json()
    unknown = "accelerator Abacus 3 is not in the table of devices: its peak figures are unknown"
    assert (body["basis"], body["is_outside"], body["warnings"]) == ("cohort", False, [unknown])


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"facts": {"gpu": "H200"}}, "fact 'gpu' is unknown, expected one of accelerator"),
        ({"facts": {"node_count": 0}}, "fact node_count is 0, expected a whole number from 1"),
        ({"facts": ["H200"]}, "facts"),
        ({"started_ns": -1}, "started_ns"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/predictions", "/v1/walltime-advice"])
def test_what_is_no_fact_is_refused(client: TestClient, path: str, change: dict[str, object], complaint: str) -> None:
    answer = client.post(path, json=REQUEST | change)
    assert answer.status_code == 422
    assert complaint in answer.text


def test_a_described_network_that_never_ran_is_predicted_by_formulas(client: TestClient) -> None:
    request = {"workload": "gpt", "system": "lab", "configuration": NETWORK, "world_size": 64}
    body = client.post("/v1/predictions", json=request).json()
    assert (body["basis"], body["evidence"], body["distance"], body["is_outside"]) == ("analytic", [], None, True)
    level = {quantile["level"]: quantile["seconds"] for quantile in body["quantiles"]}
    assert level[0.95] > 1.5 * level[0.05]  # the constants were not calibrated
    assert body["memory"]["device"].startswith("H100")
    assert body["memory"]["fits"] is (body["memory"]["bytes"] < 0.92 * body["memory"]["device_bytes"])


def test_a_workload_of_which_nothing_is_known_is_refused_with_what_would_help(client: TestClient) -> None:
    answer = client.post("/v1/predictions", json=REQUEST | {"workload": "nanogtp"})
    assert answer.status_code == 422
    assert "did you mean nanogpt?" in answer.json()["detail"]
    assert "hidden, layers" in answer.json()["detail"]


def test_a_run_like_a_stored_one_has_from_it_what_is_not_given(client: TestClient) -> None:
    like = client.post("/v1/predictions", json={"like": "r7"})
    assert like.json() == client.post("/v1/predictions", json=REQUEST).json()
    newest = client.get("/v1/runs?limit=1").json()["runs"][0]["run_id"]
    latest, named = (client.post("/v1/predictions", json={"like": name}).json() for name in ("latest", newest))
    assert latest == named
    change = {"system": "other", "world_size": 64, "configuration": {"batch": 16}}
    asked = (
        REQUEST | change | {"configuration": {"batch": 16, "fused": True}, "node_count": 32}
    )  # r7 had two ranks on one
    assert client.post("/v1/predictions", json={"like": "r7", **change}).json() == (
        client.post("/v1/predictions", json=asked).json()
    )


def test_a_run_like_one_that_is_not_stored_is_not_found(client: TestClient) -> None:
    answer = client.post("/v1/predictions", json={"like": "r99"})
    assert answer.status_code == 404
    assert "r99" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"configuration": {"dp": 2, "tp": 2, "pp": 2}}, "data 2 x tensor 2 x pipeline 2 make 8 ranks, expected 2"),
        ({"configuration": {"tp": 3}}, "tensor 3 do not divide 2 ranks"),
        ({"configuration": {"tp": 1.5}}, "tp is 1.5, expected a whole number"),
        ({"configuration": {"tp": 1, "tensor_parallel": 2}}, "are one degree, expected one value"),
        ({"node_count": 3}, "node_count 3: expected 1 to the 2 ranks"),
        ({"limit_seconds": 0}, "limit_seconds"),
        ({"outcome": "joy"}, "outcome"),
    ],
)
def test_contradictions_are_refused(client: TestClient, change: dict[str, object], detail: str) -> None:
    answer = client.post("/v1/predictions", json=REQUEST | change)
    assert answer.status_code == 422
    assert detail in answer.text


def test_many_are_answered_in_columns_as_they_would_be_one_by_one(client: TestClient) -> None:
    request = {**REQUEST, "world_size": [2, 4, 2], "configuration": {"batch": [8, 8, 16], "fused": True}}
    many = client.post("/v1/predictions:batch", json=request).json()
    for row, (ranks, batch) in enumerate(((2, 8), (4, 8), (2, 16))):
        configuration = {"batch": batch, "fused": True}
        one = client.post(
            "/v1/predictions", json=REQUEST | {"world_size": ranks, "configuration": configuration}
        ).json()
        assert many["seconds"][row] == pytest.approx([quantile["seconds"] for quantile in one["quantiles"]])
        assert (many["basis"][row], many["is_outside"][row]) == (one["basis"], one["is_outside"])


def test_columns_of_another_length_are_refused(client: TestClient) -> None:
    request = {**REQUEST, "world_size": [2, 4], "configuration": {"batch": [8, 8, 16]}}
    answer = client.post("/v1/predictions:batch", json=request)
    assert answer.status_code == 422
    assert "configuration batch has 3 values, expected 2" in answer.json()["detail"]

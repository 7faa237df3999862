from typing import Any

import pytest
from starlette.testclient import TestClient

PARALLEL = {
    "parameters": {
        "dp": {"kind": "ordinal", "values": [1, 2, 4, 8], "description": "replicas"},
        "tp": {"kind": "ordinal", "values": [1, 2, 4, 8]},
        "overlap": {"kind": "boolean", "when": "dp > 1"},
    },
    "constraints": ["dp * tp == ranks"],
    "facts": {"ranks": 8},
}
STUDY = {"name": "degrees", "space": PARALLEL, "objective": "step_p50_seconds"}
TRANSFORMER = {"layers": 2, "hidden": 64, "heads": 2, "sequence": 32, "vocabulary": 100, "device_memory_bytes": 1e9}


def test_a_study_with_constraints_hands_out_only_valid_configurations(client: TestClient) -> None:
    assert client.post("/v1/studies", json=STUDY).status_code == 201
    assert client.get("/v1/studies/degrees").json()["space"] == PARALLEL
    trials = client.post("/v1/studies/degrees/trials:suggest", json={"owner": "job 5", "count": 20}).json()["trials"]
    configurations = [trial["configuration"] for trial in trials]
    assert len(configurations) == 7  # 8 = 1 * 8, where overlap does not apply, and three products with it on and off
    assert all(configuration["dp"] * configuration["tp"] == 8 for configuration in configurations)
    assert all(("overlap" in configuration) is (configuration["dp"] > 1) for configuration in configurations)


def test_what_a_study_tells_of_its_space_makes_the_same_study(client: TestClient) -> None:
    space = {**PARALLEL, "constraints": ["dp * tp == ranks", "fits_memory"], "transformer": TRANSFORMER}
    first = client.post("/v1/studies", json={**STUDY, "space": space}).json()
    again = client.post("/v1/studies", json={**STUDY, "name": "again", "space": first["space"]})
    assert again.status_code == 201
    assert again.json()["space"] == first["space"] == space


def test_conditions_may_stand_among_parameters_alone(client: TestClient) -> None:
    space = {"a": {"kind": "boolean"}, "b": {"kind": "boolean", "when": "a"}}
    assert client.post("/v1/studies", json={**STUDY, "space": space}).json()["space"] == space


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"constraints": ["dp * tp == 7"]}, "constraint 'dp * tp == 7' leaves no configuration"),
        ({"constraints": ["gpus > 1"]}, "names gpus, expected only dp, tp, overlap, ranks"),
        ({"constraints": ["__import__('os')"]}, "it calls"),
        ({"constraints": ["x" * 1001]}, "body.space.constraints.0"),
        ({"constraints": [""]}, "body.space.constraints.0"),
        ({"constraints": [3]}, "body.space.constraints.0"),
        ({"constraints": ["dp > 0"] * 201}, "body.space.constraints"),
        ({"facts": {"ranks": []}}, "body.space.facts.ranks"),
        ({"facts": {"ranks": "NaN", "dp": 1}}, "facts: dp is a parameter too"),
        ({"transformer": {"layers": 1}}, "transformer: hidden is None"),
        ({"limits": []}, "body.space.limits: Extra inputs are not permitted"),
        ({"parameters": {}}, "the space has no parameters, expected at least one"),
        ({"parameters": {"dp": {"kind": "boolean", "when": 3}}}, "body.space.parameters.dp.when"),
        ({"parameters": {"dp": {"kind": "boolean", "description": "x" * 501}}}, "body.space.parameters.dp.description"),
    ],
)
def test_impossible_spaces_are_refused(client: TestClient, change: dict[str, Any], says: str) -> None:
    answer = client.post("/v1/studies", json={**STUDY, "space": {**PARALLEL, **change}})
    assert answer.status_code == 422
    assert says in answer.text
    assert client.get("/v1/studies").json()["studies"] == []

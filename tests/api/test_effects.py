"""GET /v1/counters and /v1/interference over eight runs without samples."""

import pytest
from starlette.testclient import TestClient


@pytest.mark.thorough
@pytest.mark.parametrize(("path", "ranked"), [("/v1/counters", "counters"), ("/v1/interference", "suspects")])
def test_few_runs_are_an_answer_that_says_what_is_missing(client: TestClient, path: str, ranked: str) -> None:
    answer = client.get(path, params={"workload": "nanogpt", "system": "lab"})
    assert answer.status_code == 200
    body = answer.json()
    assert (body[ranked], body["runs"], body["compared_runs"]) == ([], 8, 8)
    assert "8 of 8 completed runs can be compared, expected 20 or more" in body["warnings"][0]


@pytest.mark.parametrize("path", ["/v1/counters", "/v1/interference"])
@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ({"system": "nowhere"}, 422, "known are lab"),
        ({"workload": "bert"}, 422, "workload 'bert': no run of it has completed"),
        (
            {"since": "2100-01-01T00:00:00Z"},
            422,
            "since: no run has completed on system 'lab' that began then or later",
        ),
        ({"since": "soon"}, 422, "since"),
        ({"users": "all"}, 422, "query parameter 'users' is unknown: expected since, system, workload"),
        ({"workload": ""}, 422, "workload"),
        ({"workload": "x" * 201}, 422, "workload"),
    ],
)
def test_what_is_not_stored_or_not_known_is_refused(
    client: TestClient, path: str, query: dict[str, str], status: int, message: str
) -> None:
    answer = client.get(path, params=query)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert message in answer.text

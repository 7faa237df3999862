"""Any question about runs to come gets a whole answer or a refusal with words, never a 500."""

import math
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient
from tests.serving import own_client

from crosswind.api.app import create_app
from crosswind.data.store.store import Store

EQUAL = 1e-9  # share by which quantiles that are equal may fall, from rounding of sums
JUNK = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
)
PARAMETERS = st.sampled_from(["batch", "fused", "hidden", "layers", "heads", "tp", "pp", "dp", "global_batch", "steps"])
VALUES = st.sampled_from([0, 1, 2, 8, 1024, 0.5, -1.0, True, "8", "", 2**62])
RANKS = st.sampled_from([1, 2, 8, 64, 10_000_000])
SECONDS = st.sampled_from([0.5, 0.95, 0.99, 1.0, 60, 1e12, 1e308]) | st.none()
RUNS = {
    "workload": st.sampled_from(["nanogpt", "nanogpt", "bert"]),
    "system": st.sampled_from(["lab", "away"]),
    "configuration": st.dictionaries(PARAMETERS, VALUES, max_size=5),
    "world_size": RANKS,
}
COUNTS = st.sets(RANKS, min_size=1, max_size=4).map(sorted)
REQUESTS = {
    "/v1/predictions": st.fixed_dictionaries(RUNS, optional={"limit_seconds": SECONDS, "node_count": RANKS}),
    "/v1/predictions:batch": st.fixed_dictionaries({**RUNS, "world_size": st.lists(RANKS, min_size=1, max_size=3)}),
    "/v1/walltime-advice": st.fixed_dictionaries(RUNS, optional={"confidence": SECONDS, "startup_seconds": SECONDS}),
    "/v1/scaling-advice": st.fixed_dictionaries(
        {**RUNS, "world_size": st.just(1), "node_counts": COUNTS},
        optional={"deadline_seconds": SECONDS, "now": RANKS, "node_watts": SECONDS},
    ),
}


@pytest.fixture(scope="module")
def lasting_client(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A client of the filled store for all examples, which store nothing."""
    with Store.open(Path(shutil.copytree(filled, tmp_path_factory.mktemp("requests") / "store"))) as opened:
        yield own_client(create_app(opened), base_url="http://localhost", raise_server_exceptions=False)


@pytest.mark.parametrize("path", REQUESTS)
@settings(
    max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_anything_is_answered_or_refused(lasting_client: TestClient, path: str, data: st.DataObject) -> None:
    request = data.draw(REQUESTS[path])
    if data.draw(st.booleans()):  # spoils one field of half of the examples
        request[data.draw(st.sampled_from(sorted(request)))] = data.draw(JUNK | st.lists(JUNK, max_size=3))
    answer = lasting_client.post(path, json=request)
    if answer.status_code == 200:
        for quantiles in _quantiles(answer.json()):
            assert all(math.isfinite(seconds) and seconds > 0 for seconds in quantiles)
            assert all(after >= before * (1 - EQUAL) for before, after in pairwise(quantiles))
    else:
        assert (answer.status_code, answer.headers["content-type"]) in (
            (422, "application/problem+json"),
            (400, "application/problem+json"),  # half a character
        ), answer.text
        assert answer.json()["detail"]


def _quantiles(body: dict[str, Any]) -> list[list[float]]:
    """Seconds at rising levels of every run that is answered about."""
    if "seconds" in body:
        return list(body["seconds"])
    answers = body.get("answers") or [body.get("answer", body)]
    return [[quantile["seconds"] for quantile in answer["quantiles"]] for answer in answers]

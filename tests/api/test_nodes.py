import time

import pytest
from starlette.testclient import TestClient

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.metric import Scalar, with_node_keys
from crosswind.data.store.store import Store
from crosswind.ingest.agent.self_metrics import AGENT, PAGE_BYTES
from crosswind.ingest.agent.sweep import COLLECTOR

SECOND = 1_000_000_000


def hear(store: Store, node: str, last_ns: int) -> None:
    """Two sweeps of a node, a second apart, with one source that is up and one that is not."""
    times = [last_ns - SECOND, last_ns]
    keys = {"ts_ns": times, "mono_ns": times, "boot_id": ["b"] * 2, "node": [node] * 2}
    own: dict[str, list[Scalar]] = {"device": ["agent"] * 2, "cpu_seconds_total": [1.0, 1.25]}
    own |= {"missed_ticks_total": [0, 2], "lost_sweeps_total": [0, 0], "lateness_seconds": [0.5, 0.5]}
    own |= {"resident_bytes": [3, 3], "clock_error_max_seconds": [0.5, 0.5], "clock_synchronized": [1, 1]}
    looked = {"device": ["cpu", "ipmi"], "up": [1, 0], "reason": [None, "UnavailableError: busy"]}
    store.lake.append(f"agent-{node.encode().hex()}", to_table(with_node_keys(AGENT), keys | own))
    store.lake.append(f"collector-{node.encode().hex()}", to_table(with_node_keys(COLLECTOR), keys | looked))


def test_a_node_is_shown_with_its_sweeps_and_sources(client: TestClient, store: Store) -> None:
    last_ns = (time.time_ns() - 60 * SECOND) // SECOND * SECOND + 6
    hear(store, "n1.lab", last_ns)
    [node] = client.get("/v1/nodes").json()["nodes"]
    assert node.pop("last_sweep_at").endswith(".000000006Z")
    assert node == {
        "node": "n1.lab",
        "last_sweep_ns": last_ns,
        "sweeps": 2,
        "sources_up": ["cpu"],
        "sources_down": [{"name": "ipmi", "reason": "UnavailableError: busy"}],
        "missed_ticks": 2,
        "lost_sweeps": 0,
        "lateness_p99_seconds": 0.5,
        "cpu_ratio": 0.25,
        "resident_bytes": 3 * PAGE_BYTES,
        "clock_error_seconds": 0.5,
        "clock_synchronized": True,
    }


def test_nodes_are_paged_by_name_without_gap_or_repeat(client: TestClient, store: Store) -> None:
    for number in (3, 1, 4, 2, 5):
        hear(store, f"n{number}", time.time_ns() - number * SECOND)
    seen, url = [], "/v1/nodes?limit=2&since_seconds=600"
    while url:
        page = client.get(url).json()
        seen += [node["node"] for node in page["nodes"]]
        hear(store, "n1", time.time_ns())  # what goes on meanwhile
        url = page["next_url"]
    assert seen == ["n1", "n2", "n3", "n4", "n5"]


def test_nodes_of_the_last_hour_are_listed_and_others_when_asked_for(client: TestClient, store: Store) -> None:
    hear(store, "n1", time.time_ns() - 4000 * SECOND)
    assert client.get("/v1/nodes").json() == {"nodes": [], "next": None, "next_url": None}
    assert [node["node"] for node in client.get("/v1/nodes?since_seconds=7200").json()["nodes"]] == ["n1"]


def test_a_store_without_samples_has_no_nodes(client: TestClient) -> None:
    assert client.get("/v1/nodes").json() == {"nodes": [], "next": None, "next_url": None}


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=501", "cursor=x", "cursor=WzFd", "since_seconds=0", "since_seconds=4294967297", "node=n1"],
)
def test_a_question_that_makes_no_sense_is_refused(client: TestClient, query: str) -> None:
    assert client.get(f"/v1/nodes?{query}").status_code == 422

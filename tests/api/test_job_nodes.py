import time
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.metric import NODE_KEYS, Column, MetricSet
from crosswind.data.schema.occupancy import Allocation, Source
from crosswind.data.store.store import Store

SECOND = 1_000_000_000
START_NS = 1_767_323_045_000_000_006  # 2026-01-02T03:04:05.000000006Z
ALLOCATION = Allocation(
    "4711",
    "n1",
    "n1.lab",
    Source.PROLOG,
    "lab",
    uid=1000,
    started_ns=START_NS,
    ended_ns=START_NS + 100 * SECOND,
    gpus=("0", "1"),
    cpus=8,
)
COLLECTOR = MetricSet("collector", "", (*NODE_KEYS, Column("up", "")))


def note(store: Store, *allocations: Allocation) -> None:
    with store.catalog.write() as session:
        for allocation in allocations:
            session.places.merge(allocation)


def test_an_allocation_is_reported_with_the_share_of_it_that_was_sampled(client: TestClient, store: Store) -> None:
    note(store, ALLOCATION)
    times = [START_NS + second * SECOND for second in range(40)]
    columns = {"ts_ns": times, "node": ["n1.lab"] * 40, "device": ["loop"] * 40}
    store.lake.append("sweeps", to_table(COLLECTOR, columns))
    answer = client.get("/v1/jobs/4711/nodes")
    assert answer.status_code == 200
    assert answer.json() == {
        "job_id": "4711",
        "nodes": [
            {
                "system": "lab",
                "node": "n1",
                "sampled_as": "n1.lab",
                "restart_count": 0,
                "array_id": None,
                "uid": 1000,
                "started_at": "2026-01-02T03:04:05.000000006Z",
                "started_ns": START_NS,
                "ended_at": "2026-01-02T03:05:45.000000006Z",
                "ended_ns": START_NS + 100 * SECOND,
                "gpus": ["0", "1"],
                "cpus": 8,
                "source": "prolog",
                "coverage_ratio": pytest.approx(0.39),
            }
        ],
        "next": None,
        "next_url": None,
    }


def test_what_is_unknown_is_null(client: TestClient, store: Store) -> None:
    note(store, Allocation("5", "n1", "n1", Source.ENVIRONMENT, started_ns=time.time_ns()))
    note(store, Allocation("5", "n2", "n2", Source.PROLOG, ended_ns=START_NS))
    running, without_start = client.get("/v1/jobs/5/nodes").json()["nodes"]
    assert (running["system"], running["ended_at"], running["uid"], running["cpus"]) == (None, None, None, None)
    assert running["coverage_ratio"] == 0.0
    assert (without_start["started_ns"], without_start["coverage_ratio"]) == (None, None)


def test_nodes_are_paged_in_order_without_gap_or_repeat(client: TestClient, store: Store) -> None:
    note(store, *(replace(ALLOCATION, node=f"n{n}", restart_count=r) for n in (3, 1, 2) for r in (1, 0)))
    seen, url = [], "/v1/jobs/4711/nodes?limit=4"
    while url:
        page = client.get(url).json()
        seen += [(node["node"], node["restart_count"]) for node in page["nodes"]]
        url = page["next_url"]
    assert seen == [("n1", 0), ("n1", 1), ("n2", 0), ("n2", 1), ("n3", 0), ("n3", 1)]


def test_a_job_that_no_agent_saw_has_no_nodes_and_an_unknown_one_is_not_found(client: TestClient) -> None:
    assert client.get("/v1/jobs/12_3/nodes").json() == {"job_id": "12_3", "nodes": [], "next": None, "next_url": None}
    unknown = client.get("/v1/jobs/999/nodes")
    assert (unknown.status_code, unknown.json()["detail"]) == (404, "job '999' is not in the store")


@pytest.mark.parametrize("query", ["limit=0", "limit=501", "cursor=x", "node=n1"])
def test_a_question_that_makes_no_sense_is_refused(client: TestClient, query: str) -> None:
    assert client.get(f"/v1/jobs/12_3/nodes?{query}").status_code == 422

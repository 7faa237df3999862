"""Neighbours on a switch count by what they send."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.models.interference.stored import HOUR_NS, run

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.answers.effects import NeighbourScope
from crosswind.data.schema.metric import with_node_keys
from crosswind.data.schema.run import new_ulid
from crosswind.data.store.store import Store
from crosswind.ingest.collectors.network import NETWORK
from crosswind.models.association.outcomes import Outcomes
from crosswind.models.interference.interference import exposures_of
from crosswind.models.interference.traffic import relative_traffic

GROUPS = {"n1": "s", "n2": "s", "n3": "s", "n4": "s"}
BEGAN = 2 * HOUR_NS


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def put(store: Store, node: str, device: str, byte_count: int) -> None:
    """So many bytes sent in an hour, and as many received."""
    keys = {"ts_ns": [BEGAN, BEGAN + HOUR_NS], "node": [node] * 2, "device": [device] * 2, "boot_id": [node] * 2}
    counters = {f"{way}_bytes_total": [0, byte_count] for way in ("transmit", "receive")}
    store.lake.append(new_ulid(), to_table(with_node_keys(NETWORK), keys | counters))  # type: ignore[arg-type]


def present(*users: tuple[str, str]) -> pd.DataFrame:
    table = pd.DataFrame(users, columns=["user", "node"], dtype=object)
    nobody = pd.Series([None] * len(users), dtype=object)
    times = {"begin_ns": BEGAN, "end_ns": 2**63 - 1}
    return table.assign(**times, run_id=nobody, job_id=nobody, workload=nobody, job=nobody)


def one_run() -> Outcomes:
    runs = (run(0, 1.01),)
    return Outcomes("lab", None, runs, np.zeros(1), np.zeros(1, np.int64), 1)


def test_who_sends_more_counts_more_and_who_is_unknown_as_usual(store: Store) -> None:
    for node, byte_count in (("n2", 100), ("n3", 400), ("n4", 200)):
        put(store, node, "eth0", byte_count)
        put(store, node, "lo", 10**6)
    there = present(("a", "n2"), ("b", "n3"), ("c", "n4"), ("d", "n9"))
    sent = relative_traffic(store.lake, one_run(), there, GROUPS)
    assert sent is not None
    assert sent.tolist() == [0.5, 2.0, 1.0, 1.0]
    met = exposures_of(one_run(), there, GROUPS, traffic=sent)
    assert [(candidate.name, candidate.scope) for candidate in met.candidates] == [
        (name, NeighbourScope.GROUP) for name in "abc"
    ]
    assert met.shares.toarray()[0] == pytest.approx([0.125, 0.5, 0.25], rel=0.01)


def test_without_samples_or_groups_all_count_alike(store: Store) -> None:
    assert relative_traffic(store.lake, one_run(), present(("a", "n2")), GROUPS) is None
    put(store, "n2", "eth0", 100)
    assert relative_traffic(store.lake, one_run(), present(("a", "n2")), {}) is None
    assert relative_traffic(store.lake, one_run(), present(("a", "n2")), GROUPS) == pytest.approx([1.0])

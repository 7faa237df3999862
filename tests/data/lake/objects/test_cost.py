"""Batches cost a few statements however many sets they have, and an object a set, or two for all that come together."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from tests.data.lake.objects.store_of_objects import Faults, Proxied
from tests.ingest.load.test_together import one_by_one

from crosswind.data.schema.lake_address import LakeAddress
from crosswind.data.schema.metric import NODE_KEYS, Column, MetricSet
from crosswind.data.store.store import Store
from crosswind.ingest.load import together
from crosswind.ingest.load.receive import Fate
from crosswind.ingest.load.together import Batch, store_together
from crosswind.ingest.spool.segment_reader import Unpacked
from crosswind.ingest.spool.spool import SpoolWriter, SweepRows, batch_id, sealed_segments

SETS = [MetricSet(f"s{n}", "one", (*NODE_KEYS, Column(f"s{n}_hertz", "speed", dtype="float64"))) for n in range(12)]
STATEMENTS = 10


@pytest.fixture
def store(proxied: tuple[LakeAddress, Faults], postgres_url: str, tmp_path: Path) -> Iterator[Store]:
    """A store on PostgreSQL whose bucket is behind the proxy, and which knows the sets."""
    with Store.open(tmp_path / "home", database=postgres_url, lake=proxied[0]) as store:
        for node in ("first", "second"):  # by then it knows that they are stored
            one_by_one(store, [of_node(tmp_path / "spool", node)])
        yield store


def of_node(spool: Path, node: str) -> Batch:
    with SpoolWriter(spool / node, f"agent.{node}") as writer:
        writer.append_sweep([SweepRows(one, 1, 1, node, "boot", [["d0", 2.5]]) for one in SETS])
    path = sealed_segments(spool / node)[-1]
    segment = Unpacked(path.name, path.read_bytes())
    return Batch(segment, batch_id(segment))


@contextmanager
def counted(store: Store, faults: Faults) -> Iterator[dict[str, int]]:
    """Count statements, a row of a list as one each, and requests to the bucket."""
    counts = {"statements": 0}

    def note(_: Any, __: Any, ___: str, parameters: Any, ____: Any, is_list: bool) -> None:
        counts["statements"] += len(parameters) if is_list else 1

    def act(request: Proxied) -> bool:
        counts[request.method] = counts.get(request.method, 0) + 1
        return False

    event.listen(store.catalog.engine, "before_cursor_execute", note)
    faults.act = act
    yield counts
    event.remove(store.catalog.engine, "before_cursor_execute", note)


def test_one_batch(store: Store, proxied: tuple[LakeAddress, Faults], tmp_path: Path) -> None:
    sent = of_node(tmp_path / "spool", "n1")
    with counted(store, proxied[1]) as counts:
        assert one_by_one(store, [sent]) == [Fate.STORED]
    assert counts.pop("statements") <= STATEMENTS
    assert counts == {"PUT": len(SETS)}
    assert one_by_one(store, [sent]) == [Fate.DUPLICATE]


def test_ten_batches_together(store: Store, proxied: tuple[LakeAddress, Faults], tmp_path: Path) -> None:
    together._is_safe.cache_clear()
    sent = [of_node(tmp_path / "spool", f"n{number}") for number in range(10)]
    with counted(store, proxied[1]) as counts:
        assert len(store_together(store, sent)) == 10
    assert counts.pop("statements") <= STATEMENTS
    assert counts == {"PUT": 2 * len(SETS)}
    assert set(one_by_one(store, sent)) == {Fate.DUPLICATE}
    assert len(store.lake.frame("select * from s7")) == 12

"""A trace from the cache is the trace that was put there; a damaged one is none."""

from pathlib import Path

import numpy as np
import pytest

from crosswind.data.traces.cache import TraceCache, key_of
from crosswind.data.traces.columns import EventColumns
from crosswind.data.traces.trace import Group, Place, RankTrace


def trace(rank: int) -> RankTrace:
    """A trace with a value in each field."""
    columns = EventColumns()
    columns.add(2, {"begin_ns": [1 << 60, 2], "duration_ns": [3, 4], "kind": [0, 1], "name": [0, 1], "flops": [1.5, 2]})
    return RankTrace(
        columns.events(),
        ("gemm", "nccl ä\ud7ff"),
        (Place("stream 7", 0, 7),),
        (Group("1", (0, 1), 2),),
        rank=rank,
        world_size=2,
        counters={"instructions": 3.0},
        notes=("one", "two"),
    )


def test_what_is_put_is_got(tmp_path: Path) -> None:
    cache = TraceCache(tmp_path / "new")
    cache.put("key", [trace(rank) for rank in range(11)])
    kept = cache.get("key")
    assert kept is not None
    assert [one.rank for one in kept] == list(range(11))
    for name, column in trace(0).events.columns.items():
        assert np.array_equal(kept[0].events.columns[name], column, equal_nan=name == "flops")
    facts = [vars(one) | {"events": None} for one in (kept[4], trace(4))]
    assert facts[0] == facts[1]


@pytest.mark.parametrize("damage", ["cut", "empty", "other", "one of two"])
def test_a_damaged_one_is_none_and_is_made_again(tmp_path: Path, damage: str) -> None:
    cache = TraceCache(tmp_path)
    cache.put("key", [trace(0), trace(1)])
    path = tmp_path / "key.1of2.parquet"
    content = path.read_bytes()
    if damage == "one of two":
        path.unlink()
    else:
        path.write_bytes({"cut": content[: len(content) // 2], "empty": b"", "other": b"PAR1" * 9}[damage])
    assert cache.get("key") is None
    cache.put("key", [trace(0)])
    assert [one.rank for one in cache.get("key") or []] == [0]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_key_is_of_content_and_reader(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("one")
    first = key_of([path], "kineto 1")
    assert key_of([path], "kineto 1") == first
    assert key_of([path], "kineto 2") != first
    path.write_text("one more")
    assert key_of([path], "kineto 1") != first

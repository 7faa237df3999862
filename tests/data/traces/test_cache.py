"""A trace from the cache is the trace that was put there; a damaged one is none."""

import os
from concurrent.futures import ThreadPoolExecutor
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


def keys_in(folder: Path) -> set[str]:
    """The keys that are kept whole or in part."""
    return {path.name.split(".")[0] for path in folder.iterdir()}


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    TraceCache(tmp_path).put("a", [trace(0), trace(1)])
    cache = TraceCache(tmp_path, limit_bytes=int(2.5 * TraceCache(tmp_path).size_bytes))
    cache.put("b", [trace(0), trace(1)])
    for age, key in enumerate("ba"):
        for path in tmp_path.glob(f"{key}.*"):
            os.utime(path, (1000 + age, 1000 + age))
    assert cache.get("b") is not None  # is used now, and "a" is older
    cache.put("c", [trace(0), trace(1)])
    assert keys_in(tmp_path) == {"b", "c"}
    assert cache.size_bytes <= cache.limit_bytes


def test_what_was_read_is_good_although_its_use_cannot_be_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> None:
        raise PermissionError("another's file")

    cache = TraceCache(tmp_path)
    cache.put("key", [trace(3)])
    monkeypatch.setattr(os, "utime", refuse)
    assert [one.rank for one in cache.get("key") or []] == [3]


@pytest.mark.parametrize("limit", [0, 100])
def test_what_is_larger_than_all_is_not_kept(tmp_path: Path, limit: int) -> None:
    cache = TraceCache(tmp_path, limit)
    cache.put("key", [trace(0)])
    assert cache.get("key") is None
    assert cache.size_bytes == 0


def test_what_a_killed_writer_left_behind_goes_with_the_next(tmp_path: Path) -> None:
    left, written = tmp_path / "key.0of1.parquet.1-1.part", tmp_path / "key.0of1.parquet.2-2.part"
    for path in (left, written):
        path.write_bytes(b"x")
    os.utime(left, (1000, 1000))
    TraceCache(tmp_path).put("other", [trace(0)])
    assert (left.exists(), written.exists()) == (False, True)


def test_many_read_and_write_at_once_and_each_gets_a_whole_trace_or_none(tmp_path: Path) -> None:
    TraceCache(tmp_path).put("size", [trace(0), trace(1)])
    size = TraceCache(tmp_path).size_bytes

    def work(number: int) -> list[int | None]:
        key, cache = f"key{number % 8}", TraceCache(tmp_path, 4 * size)
        seen = []
        for _ in range(4):
            kept = cache.get(key)
            if kept is None:
                cache.put(key, [trace(0), trace(1)])
            else:
                assert [one.rank for one in kept] == [0, 1]
                assert kept[1].names == trace(1).names
            seen.append(None if kept is None else len(kept))
        return seen

    with ThreadPoolExecutor(64) as pool:
        answers = [one for answer in pool.map(work, range(64)) for one in answer]
    assert len(answers) == 256
    assert TraceCache(tmp_path).size_bytes <= 4 * size
    assert not list(tmp_path.glob("*.part"))

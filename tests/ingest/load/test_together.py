"""Batches of many agents stored together are what they are one by one, whoever dies between, and each once."""

import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from crosswind.data.catalog.catalog import Session
from crosswind.data.lake.compaction import compact
from crosswind.data.lake.lake import Lake
from crosswind.data.lake.storage import LocalStorage
from crosswind.data.schema.metric import NODE_KEYS, Column, Kind, MetricSet
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store
from crosswind.ingest.load import together
from crosswind.ingest.load.receive import Fate, receive
from crosswind.ingest.load.together import Batch, store_together
from crosswind.ingest.spool.segment import SweepRows
from crosswind.ingest.spool.segment_reader import Unpacked
from crosswind.ingest.spool.spool import SpoolWriter, batch_id, sealed_segments

FAN = MetricSet("fan", "fans", (*NODE_KEYS, Column("fan_hertz", "speed", dtype="float64")))
NIC = MetricSet("nic", "a port", (*NODE_KEYS, Column("nic_rx_bytes_total", "bytes", Kind.COUNTER)))
NOON = 1_767_355_200_000_000_000
DAY = 86_400_000_000_000


def sweep_rows(metric_set: MetricSet, node: str, ts_ns: int, value: float) -> SweepRows:
    return SweepRows(metric_set, ts_ns, ts_ns - NOON, node, "boot", [["d0", value], ["d1", None]])


def batch(spool: Path, node: str, *, at_ns: int = NOON, sets: Sequence[MetricSet] = (FAN, NIC)) -> Batch:
    """Return two sweeps as an agent would send them."""
    with SpoolWriter(spool / node, f"agent.{node}") as writer:
        for tick in range(2):
            values = {"fan": 2.5, "nic": 7}
            rows = [sweep_rows(one, node, at_ns + tick, values[one.name]) for one in sets]
            writer.append_sweep(rows)
    path = sealed_segments(spool / node)[-1]
    segment = Unpacked(path.name, path.read_bytes())
    return Batch(segment, batch_id(segment))


def one_by_one(store: Store, batches: Sequence[Batch]) -> list[Fate]:
    return [receive(store, one.segment, one.identity, rejected_bytes=1000).fate for one in batches]


def rows_of(store: Store) -> list[tuple[object, ...]]:
    """Every stored row; doubled ones are there twice."""
    with store.lake.connect() as connection:
        return [row for name in store.lake.sets() for row in connection.execute(f"from {name} order by all").fetchall()]


def files_of(store: Store) -> int:
    return len(list(store.home.glob("lake/set=*/date=*/part-*.parquet")))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store that knows the sets."""
    store = Store.open(tmp_path / "home")
    one_by_one(store, [batch(tmp_path / "first", "n0")])
    return store


@pytest.fixture
def batches(tmp_path: Path) -> list[Batch]:
    return [batch(tmp_path, f"n{number}") for number in range(1, 5)]


def test_they_are_stored_as_one_by_one_in_fewer_files(store: Store, batches: list[Batch], tmp_path: Path) -> None:
    stored = store_together(store, batches)
    assert {one.identity: (stored[one.identity].fate, stored[one.identity].rows) for one in batches} == {
        one.identity: (Fate.STORED, 8) for one in batches
    }
    other = Store.open(tmp_path / "other")
    one_by_one(other, [batch(tmp_path / "again", "n0"), *batches])
    assert rows_of(store) == rows_of(other)
    assert (files_of(store), files_of(other)) == (4, 10)
    with store.catalog.read() as session, other.catalog.read() as others:
        assert session.ingested() == others.ingested()


def test_a_batch_that_comes_again_adds_nothing(store: Store, batches: list[Batch]) -> None:
    store_together(store, batches)
    before = rows_of(store)
    assert store_together(store, batches) == {}
    assert one_by_one(store, batches) == [Fate.DUPLICATE] * 4
    assert rows_of(store) == before


@pytest.mark.parametrize("again", [one_by_one, store_together])
def test_rows_without_a_note_in_the_catalog_are_stored_once_when_they_come_again(
    store: Store, batches: list[Batch], again: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Session, "add_batches", lambda *_: (_ for _ in ()).throw(OSError("killed here")))
        assert store_together(store, batches) == {}
    before = rows_of(store)
    mixed = [*batches[2:], batch(store.home.parent, "n9")]
    if again is store_together:
        assert store_together(store, mixed) == {}  # two of them stand in a file already
    assert one_by_one(store, [*mixed, *batches]) == [Fate.STORED] * 5 + [Fate.DUPLICATE] * 2
    assert [row for row in rows_of(store) if row[1] != "n9"] == before
    assert len(rows_of(store)) == len(before) + 8


def test_what_is_not_plain_samples_is_left_out(store: Store, batches: list[Batch], tmp_path: Path) -> None:
    with SpoolWriter(tmp_path / "runs", "agent.n5") as writer:
        writer.append_record("run", {"run_id": "r1", "workload": "w", "system": "s", "state": "running"})
    path = sealed_segments(tmp_path / "runs")[-1]
    run = Unpacked(path.name, path.read_bytes())
    torn = Unpacked(batches[0].segment.name, batches[0].segment.content[:-3])
    odd = [
        Batch(run, batch_id(run)),
        Batch(torn, batch_id(torn)),
        Batch(batches[0].segment, "0" * 64),
        batch(tmp_path / "future", "n6", at_ns=NOON + 10_000 * DAY),
        batch(tmp_path / "past", "n7", at_ns=-5),
        replace(batch(tmp_path / "foreign", "n8"), nodes=frozenset({"n9"})),
    ]
    batches[0] = replace(batches[0], nodes=frozenset({"n1", "n9"}))
    assert set(store_together(store, [*odd, *batches])) == {one.identity for one in batches}


def test_a_set_that_is_new_or_contradicts_leaves_all_of_them_to_be_stored_one_by_one(
    store: Store, batches: list[Batch], tmp_path: Path
) -> None:
    new = MetricSet("nic", "a port", (*NIC.columns, Column("nic_tx_bytes_total", "bytes", Kind.COUNTER)), version=2)
    odd = MetricSet("fan", "fans", (*NODE_KEYS, Column("fan_hertz", "speed", dtype="float64", scale=0.5)))
    with SpoolWriter(tmp_path / "new", "agent.n8") as writer:
        writer.append_sweep([SweepRows(new, NOON, 0, "n8", "boot", [["d0", 1, 2]])])
    path = sealed_segments(tmp_path / "new")[-1]
    segment = Unpacked(path.name, path.read_bytes())
    for strange in (Batch(segment, batch_id(segment)), batch(tmp_path / "odd", "n8", sets=[odd])):
        assert store_together(store, [*batches, strange]) == {}
    assert len(rows_of(store)) == 8


def test_rows_of_two_days_make_a_file_each(store: Store, tmp_path: Path) -> None:
    midnight = NOON + DAY // 2 - 1
    both = [batch(tmp_path, f"n{number}", at_ns=midnight) for number in range(2)]
    assert len(store_together(store, both)) == 2
    assert files_of(store) == 2 + 4
    assert len(rows_of(store)) == 8 + 16


def test_nothing_is_stored_together_where_locks_do_not_hold_for_all(
    store: Store, batches: list[Batch], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalStorage, "why_unsafe", lambda *_: "nfs")
    together._is_safe.cache_clear()
    try:
        assert store_together(store, batches) == {}
    finally:
        together._is_safe.cache_clear()


def test_compaction_takes_them_as_new_parts(store: Store, batches: list[Batch]) -> None:
    store_together(store, batches)
    before = rows_of(store)
    compact(store.lake, now_ns=NOON + 3 * DAY, settle_seconds=-1)
    assert (rows_of(store), files_of(store)) == (before, 2)
    assert one_by_one(store, batches) == [Fate.DUPLICATE] * 4


def killed_before(number: int) -> None:
    """Have this process killed before its so-manieth change of the disk."""
    seen = 0

    def look(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        if event in ("os.rename", "os.remove") or (event == "open" and "w" in str(arguments[1])):
            seen += 1
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(look)


@pytest.mark.thorough
def test_killed_at_any_change_of_the_disk_nothing_is_lost_or_doubled(tmp_path: Path, batches: list[Batch]) -> None:
    expected: list[tuple[object, ...]] = []
    for number in range(1, 60):
        home = tmp_path / f"killed-{number}"
        with Store.open(home) as store:
            one_by_one(store, [batch(tmp_path / f"first-{number}", "n0")])
        pid = os.fork()
        if not pid:
            with Store.open(home) as store:
                assert store.lake.sets()
                killed_before(number)
                store_together(store, batches)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        with Store.open(home) as store:
            compact(store.lake, now_ns=NOON + 3 * DAY, settle_seconds=-1)
            store_together(store, batches[1:])
            one_by_one(store, batches)
            rows = [row for row in rows_of(store) if row[1] != "n0"]
            expected = expected or rows
            assert (len(rows), rows) == (32, expected), number
        if status == 0:
            break
    assert 10 < number < 59
    assert Lake(home / "lake").sets() == ["fan", "nic"]


def test_runs_on_their_nodes_meanwhile_are_due_and_no_others(store: Store, tmp_path: Path) -> None:
    hour = 3_600_000_000_000
    places = {"now-on-n1": (NOON, "n1"), "before-on-n2": (NOON - hour, "n2"), "before-on-n1": (NOON - hour, "n1")}
    runs = [
        Run(run_id, "w", "s", RunState.COMPLETED, 1, nodes=(node,), started_ns=at_ns, ended_ns=at_ns + 9)
        for run_id, (at_ns, node) in places.items()
    ]
    with store.catalog.write() as session:
        session.runs.put_all(runs)
        for run in runs:
            session.verdicts.give_up(run.run_id)
    assert store_together(store, [batch(tmp_path, "n1"), batch(tmp_path, "n2", at_ns=NOON - hour)])
    with store.catalog.read() as session:
        assert sorted(session.verdicts.due_features(9)) == ["before-on-n2", "now-on-n1"]

"""A lake in a bucket keeps the promises of one in a folder, whoever writes, compacts, erases and reads."""

import gc
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import duckdb
import pytest
from tests.data.lake.objects.store_of_objects import Faults

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.lake.compaction import compact, days_of
from crosswind.data.lake.erasure import erase_run
from crosswind.data.lake.lake import Lake, to_table
from crosswind.data.lake.merged import stage_merged
from crosswind.data.lake.objects.bucket import Bucket
from crosswind.data.lake.objects.mirror import Mirror
from crosswind.data.lake.objects.sweep import MARK, sweep
from crosswind.data.lake.parts import ALWAYS
from crosswind.data.lake.skipped import Skipped
from crosswind.data.schema.errors import ConflictError, MalformedError, UnavailableError
from crosswind.data.schema.lake_address import LakeAddress
from crosswind.data.schema.lake_file import LakeFile, LakeFileKind
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store

MINUTE, HOUR, DAY = 60_000_000_000, 3_600_000_000_000, 86_400_000_000_000
LATER = 400 * DAY
ALL = "select run_id, step, rank from step order by all"


def columns(minute: int) -> dict[str, list[object]]:
    rows = [(step, rank) for step in range(5) for rank in range(2)]
    return {
        "ts_ns": [minute * MINUTE + step for step, _ in rows],
        "run_id": [f"r{rank}" for _, rank in rows],
        "rank": [rank for _, rank in rows],
        "step": [minute * 5 + step for step, _ in rows],
        "duration_seconds": [1000] * len(rows),
    }


def put(lake: Lake, *minutes: int) -> None:
    for minute in minutes:
        lake.append(f"b{minute}-0", to_table(STEP, columns(minute)))  # type: ignore[arg-type]


def rows_of(lake: Lake) -> list[tuple[object, ...]]:
    return list(lake.frame(ALL).itertuples(index=False, name=None))


def expected(minutes: int) -> list[tuple[object, ...]]:
    return [(f"r{rank}", step, rank) for rank in range(2) for step in range(5 * minutes)]


def merge(lake: Lake) -> None:
    compact(lake, now_ns=LATER, settle_seconds=-1)


def touch_back(path: Path) -> None:
    """Let a copy look as if it was used an hour ago."""
    os.utime(path, (time.time() - 3600, path.stat().st_mtime))


def mirror_of(store: Store) -> Mirror:
    assert isinstance(store.lake.storage, Mirror)
    return store.lake.storage


def objects(address: LakeAddress) -> list[str]:
    return [one.key for one in Bucket(address).listing() if one.key != MARK]


def test_rows_are_read_wherever_they_were_written(store: Store, another: Callable[[], Store]) -> None:
    other = another()
    put(store.lake, 0)
    put(other.lake, 1)
    assert rows_of(store.lake) == rows_of(other.lake) == expected(2)
    assert store.lake.sets() == ["step"]


def test_rows_count_from_the_note_of_their_batch_and_once(store: Store, another: Callable[[], Store]) -> None:
    table = {"p-0": to_table(STEP, columns(0))}  # type: ignore[arg-type]
    published = store.lake.publish(store.lake.stage(table))
    assert store.lake.sets() == []
    other = another()
    again = other.lake.publish(other.lake.stage(table))  # the sender had no answer
    with other.catalog.write() as session:
        session.lake_files.add(again.files)
        session.add_batch("p", "agent", row_count=10, skipped=0)
    assert rows_of(store.lake) == expected(1)
    with store.catalog.write() as session:  # a writer that went on in spite of that
        session.lake_files.add(published.files)
    assert rows_of(store.lake) == rows_of(other.lake) == expected(1)


def test_an_upload_that_was_noted_half_a_day_late_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    published = store.lake.publish(store.lake.stage({"p": to_table(STEP, columns(0))}))  # type: ignore[arg-type]
    later = time.time_ns() + 13 * HOUR
    monkeypatch.setattr(time, "time_ns", lambda: later)
    with pytest.raises(UnavailableError, match="half a day ago"):
        store.lake.storage.note(published)


def test_compaction_changes_no_answer(store: Store, another: Callable[[], Store]) -> None:
    put(store.lake, *range(6))
    other = another()
    done = compact(other.lake, now_ns=LATER, settle_seconds=-1)
    assert (done.files_before, done.files_after, done.problems) == (6, 1, [])
    assert rows_of(store.lake) == rows_of(other.lake) == expected(6)
    put(store.lake, 6)
    merge(store.lake)
    assert rows_of(store.lake) == rows_of(other.lake) == expected(7)
    assert [file.name[:6] for file in store.lake.parts("step")] == ["part-c", "part-c"]


def test_files_of_other_runs_and_times_are_not_copied(store: Store, another: Callable[[], Store]) -> None:
    put(store.lake, 0, 1)
    merge(store.lake)
    put(store.lake, 24 * 60)
    reader = another().lake
    assert len(reader.parts("step", (DAY, 2 * DAY))) == 1
    assert reader.parts("step", (0, HOUR), ["r9"]) == []
    assert len(list(reader.root.glob("set=step/date=*/*/part-*"))) == 1
    assert len(reader.parts("step", (0, HOUR), ["r1"])) == 1


def test_a_query_that_fails_copies_nothing_to_look_for_damage(store: Store, another: Callable[[], Store]) -> None:
    put(store.lake, 0, 24 * 60)
    reader = another().lake
    reader.skipped = Skipped(reader.root)
    with pytest.raises(duckdb.ConversionException):
        reader.frame("select cast(run_id as integer) from step", within=(0, HOUR))
    assert len(list(reader.root.glob("set=step/date=*/*/part-*"))) == 1


def test_of_two_that_compact_the_same_one_is_refused_and_its_file_dropped(
    store: Store, another: Callable[[], Store]
) -> None:
    put(store.lake, 0, 1)
    slow = another()
    folder = slow.lake.root / "set=step" / "date=1970-01-01"
    day = slow.lake.storage.day(folder)
    merge(store.lake)
    table = to_table(STEP, columns(0))  # type: ignore[arg-type]
    merged = stage_merged(folder, table, [part.path.name for part in day.live])
    with pytest.raises(ConflictError, match="replaced by others"):
        slow.lake.storage.replace([part.path for part in day.live], merged)
    assert rows_of(store.lake) == rows_of(slow.lake) == expected(2)


def test_a_look_at_a_day_of_many_files_costs_by_their_number(store: Store) -> None:
    names = [f"part-c{number}_{number}_{number:016x}" for number in range(4000)]
    kinds = {LakeFileKind.LANDING: "{}.parquet", LakeFileKind.MANIFEST: "_held-{}.json"}
    facts = {"rows": 1, "columns": "c", "bytes": 1, "checksum": "", "added_ns": time.time_ns()}
    files = [
        LakeFile(f"k/{place.format(name)}", place.format(name), kind, "step", "1970-01-01", 0, 0, **facts)  # type: ignore[arg-type]
        for name in names
        for kind, place in kinds.items()
    ]
    with store.catalog.write() as session:
        session.lake_files.add(files)
    folder = store.lake.root / "set=step" / "date=1970-01-01"
    begin = time.process_time()
    day = store.lake.storage.day(folder)
    assert time.process_time() - begin < 1.0  # 2.5 s when each was looked for among all
    assert [len(mirror_of(store)._noted[part.path]) for part in day.live] == [2] * len(names)


def test_one_server_compacts_at_a_time(store: Store, another: Callable[[], Store]) -> None:
    put(store.lake, 0, 1)
    with another().lake.storage.changing() as is_ours:
        assert is_ours
        with pytest.raises(ConflictError, match="compacted by another process"):
            merge(store.lake)
    merge(store.lake)


def test_days_that_need_nothing_are_not_looked_into_again_until_they_change(
    store: Store, another: Callable[[], Store]
) -> None:
    put(store.lake, 0, 1)
    less = replace(STEP, columns=STEP.columns[:5])
    for minute in (2, 3):
        own = {name: values for name, values in columns(minute).items() if name in {one.name for one in less.columns}}
        store.lake.append(f"less{minute}", to_table(less, own))  # type: ignore[arg-type]
    days = [days_of(store.lake) for _ in range(4) if merge(store.lake) is None]
    assert days == [1, 0, 0, 0]
    assert len(store.lake.parts("step")) == 2
    put(another().lake, 4, 5)
    assert days_of(store.lake) == 1
    merge(store.lake)
    assert days_of(store.lake) == 1
    assert len(store.lake.parts("step")) == 2


def test_of_two_threads_of_a_server_one_changes_files(store: Store) -> None:
    put(store.lake, 0, 1)
    with store.lake.storage.changing(), pytest.raises(ConflictError, match="compacted by another process"):
        merge(store.lake)
    merge(store.lake)


def test_the_turn_of_a_killed_server_ends_by_itself(store: Store, catalog: Catalog) -> None:
    with catalog.write() as session:
        assert session.lake_files.take_turn("change", "killed", 0.2)
        assert not session.lake_files.take_turn("change", "next", 0.2)
    time.sleep(0.25)
    with catalog.write() as session:
        assert session.lake_files.take_turn("change", "next", 60)
    assert store.lake.sets() == []


def test_a_runs_rows_are_erased_for_every_reader(store: Store, another: Callable[[], Store]) -> None:
    put(store.lake, 0, 1)
    merge(store.lake)
    put(store.lake, 2)
    other = another()
    assert len(rows_of(other.lake)) == 30
    assert erase_run(store.lake, "r0", ALWAYS) == 15
    for lake in (store.lake, other.lake):
        assert {run for run, _, _ in rows_of(lake)} == {"r1"}
    merge(other.lake)
    assert [row[1] for row in rows_of(store.lake)] == list(range(15))
    mirror_of(other).remove_stale_copies(-1)
    assert len(list(other.lake.root.glob("set=step/date=*/*/part-*"))) == 1
    assert erase_run(store.lake, "r1", ALWAYS) == 15
    assert rows_of(other.lake) == []


def test_what_was_replaced_goes_after_an_hour_and_what_nobody_named_after_a_day(
    store: Store, address: LakeAddress
) -> None:
    put(store.lake, 0, 1)
    store.lake.publish(store.lake.stage({"lost": to_table(STEP, columns(2))}))  # type: ignore[arg-type]
    merge(store.lake)
    assert len(objects(address)) == 1 + 3 + 2
    bucket = Bucket(address)
    sweep(store.catalog, bucket, lists_all=lambda _: True)
    assert len(objects(address)) == 6
    sweep(store.catalog, bucket, lists_all=lambda _: True, now_ns=time.time_ns() + 2 * HOUR)
    assert len(objects(address)) == 4
    sweep(store.catalog, bucket, lists_all=lambda _: True, now_ns=time.time_ns() + 25 * HOUR)
    assert sorted(key.rpartition("/")[2][:5] for key in objects(address)) == ["_held", "_sche", "part-"]
    assert rows_of(store.lake) == expected(2)


def test_removal_that_takes_long_goes_on_after_the_next_compaction(
    store: Store, address: LakeAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store.lake, 0, 1, 2)
    merge(store.lake)
    bucket, later = Bucket(address), time.time_ns() + 2 * HOUR
    remove, removed = bucket.remove, list[str]()

    def slowly(keys: Iterable[str]) -> None:
        removed.extend(keys)
        remove(keys)
        time.sleep(0.2)

    monkeypatch.setattr(bucket, "remove", slowly)
    monkeypatch.setattr("crosswind.data.lake.objects.sweep.AT_ONCE", 1)
    monkeypatch.setattr("crosswind.data.lake.objects.sweep.REPLACED_SECONDS", 0.1)
    for count in (1, 2, 3, 3):
        sweep(store.catalog, bucket, lists_all=lambda _: False, now_ns=later)
        assert len(removed) == count
    assert rows_of(store.lake) == expected(3)


def test_a_server_looks_through_the_whole_bucket_once_a_day(
    proxied: tuple[LakeAddress, Faults], another: Callable[[], Store], database: str, tmp_path: Path
) -> None:
    with Store.open(tmp_path / "home", database=database, lake=proxied[0]) as store:
        for lake in (store.lake, store.lake, another().lake, store.lake):
            merge(lake)
    whole = [line for line in proxied[1].log if "list-type" in line and "delimiter" not in line]
    assert len(whole) == 1, proxied[1].log


def test_copies_are_kept_within_their_limit_and_fetched_again(
    store: Store, address: LakeAddress, database: str
) -> None:
    put(store.lake, *range(16))
    sizes = [path.stat().st_size for path in store.lake.parts("step")]
    limit = sum(sizes) - 6 * sizes[0]
    small = LakeAddress(**{**vars(address), "cache_bytes": limit})
    with Store.open(store.home.parent / "small", database=database, lake=small) as reader:
        for minute in range(16):
            assert len(reader.lake.parts("step", (minute * MINUTE, minute * MINUTE + 5))) == 1
        copies = mirror_of(reader)._copies
        for path in reader.lake.root.glob("set=step/date=*/*/part-*"):
            touch_back(path)
        copies.make_room()
        assert sum(path.stat().st_size for path in reader.lake.root.glob("set=*/**/*.parquet")) <= limit
        assert len(list(reader.lake.root.glob("set=step/date=*/*/part-*"))) > 0
        mirror_of(reader)._copies.bucket = Bucket(LakeAddress(**{**vars(address), "cache_bytes": 10 * sizes[0]}))
        with pytest.raises(UnavailableError, match=r"16 files of step with \d+ bytes .* CROSSWIND_LAKE_CACHE"):
            reader.lake.parts("step")


def test_a_copy_that_a_reader_may_open_stays(store: Store, address: LakeAddress) -> None:
    put(store.lake, *range(4))
    mirror = mirror_of(store)
    with store.lake.connect({"step"}) as connection:
        mirror._copies.bucket = Bucket(LakeAddress(**{**vars(address), "cache_bytes": 1}))
        for path in store.lake.root.glob("set=step/date=*/*/part-*"):
            touch_back(path)
        mirror.make_room()
        assert connection.execute("select count(*) from step").fetchall() == [(40,)]
    del connection
    gc.collect()
    for path in store.lake.root.glob("set=step/date=*/*/part-*"):
        touch_back(path)
    mirror.make_room()
    assert list(store.lake.root.glob("set=step/date=*/*/part-*")) == []


def test_an_object_that_was_changed_or_is_gone_is_named(
    store: Store, another: Callable[[], Store], address: LakeAddress, tmp_path: Path
) -> None:
    put(store.lake, 0)
    [key] = [key for key in objects(address) if "part-" in key]
    bucket = Bucket(address, patience_seconds=0.5)
    (tmp_path / "other").write_bytes(b"x" * store.lake.parts("step")[0].stat().st_size)
    bucket.put(key, tmp_path / "other")
    with pytest.raises(MalformedError, match=f"{key} is not what was stored"):
        rows_of(another().lake)
    bucket.remove([key])
    with pytest.raises(UnavailableError, match=f"{key} cannot be read: it is not there"):
        rows_of(another().lake)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_two_servers_write_compact_and_read_at_once(store: Store, another: Callable[[], Store]) -> None:
    stores = [store, another(), another()]
    beside = Beside()
    with beside.doing([partial(merge, one.lake) for one in stores[:2]], [one.lake for one in stores]):
        writers = [threading.Thread(target=put, args=(stores[n].lake, *range(n, 12, 2))) for n in range(2)]
        for thread in writers:
            thread.start()
        for thread in writers:
            thread.join()
    assert beside.problems == []
    assert all(rows_of(one.lake) == expected(12) for one in stores)
    merge(stores[1].lake)
    assert all(rows_of(one.lake) == expected(12) for one in stores)


@dataclass
class Beside:
    """Others who compact and read while somebody writes."""

    problems: list[BaseException] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def doing(self, works: Sequence[Callable[[], object]], read: Sequence[Lake]) -> Iterator[None]:
        """Do it again and again within."""
        reads = [partial(look, lake) for lake in read]
        threads = [threading.Thread(target=self._again, args=(work,)) for work in (*works, *reads)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.is_over.set()
            for thread in threads:
                thread.join()

    def _again(self, work: Callable[[], object]) -> None:
        while not self.is_over.is_set():
            try:
                work()
            except ConflictError:  # the other one does it
                time.sleep(0.01)
            except BaseException as error:  # noqa: BLE001 - shown by the test
                self.problems.append(error)
                return


def look(lake: Lake) -> None:
    if lake.sets():
        steps = lake.frame("select step, count(*) as times from step group by step")
        assert (steps["times"] == 2).all(), "a part was read half or twice"

"""Compaction changes files and never rows: whatever stands half done, what is asked is answered as before."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from crosswind.data.lake.compaction import PATIENCE_SECONDS, Compacted, compact
from crosswind.data.lake.lake import Lake, to_table
from crosswind.data.lake.locks import COMPACTING, READING, alone
from crosswind.data.lake.parts import held, manifest_of
from crosswind.data.schema.errors import ConflictError, InvalidInputError, MalformedError, UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet

SECOND = 1_000_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR
LATER = 400 * DAY  # everything is long over
TIME = Column("ts_ns", "time", Kind.KEY)
NODE = Column("node", "host", Kind.KEY, "string")
SENT = Column("sent_bytes_total", "sent", Kind.COUNTER, "uint64", "bytes", 1024)
LINK = MetricSet("link", "a link", (TIME, NODE, SENT))
OLD = replace(LINK, columns=(TIME, NODE))
OTHER = MetricSet("other", "another set", (TIME,))
EVERYTHING = "select * from link order by all"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def put(lake: Lake, part: str, *times: int, node: str = "n1") -> list[Path]:
    numbers = [2**64 - 1 - time for time in times]
    return lake.append(part, to_table(LINK, {"ts_ns": times, "node": [node] * len(times), "sent_bytes_total": numbers}))


def put_minutes(lake: Lake, minutes: Sequence[int], node: str = "n1") -> None:
    for minute in minutes:
        put(lake, f"{node}-{minute}", minute * 60 * SECOND, minute * 60 * SECOND + 1, node=node)


def done(lake: Lake, now_ns: int = LATER) -> Compacted:
    return compact(lake, now_ns=now_ns, settle_seconds=-1)


def records(lake: Lake, sql: str = EVERYTHING) -> list[dict[str, object]]:
    return lake.frame(sql).to_dict("records")


def parts(lake: Lake) -> list[str]:
    return sorted(path.relative_to(lake.root).as_posix() for path in lake.root.glob("set=*/date=*/part-*"))


def test_the_parts_of_a_day_become_one_sorted_file_of_the_same_rows(lake: Lake) -> None:
    put_minutes(lake, range(180), "n2")
    put_minutes(lake, range(180), "n1")
    before = records(lake)
    assert (done(lake).files_before, len(before)) == (360, 720)
    assert records(lake) == before
    [name] = parts(lake)
    assert name.startswith(f"set=link/date=1970-01-01/part-c0_{179 * 60 * SECOND + 1}_")
    rows = pq.read_table(lake.root / name, columns=["node", "ts_ns"])
    assert rows.to_pylist() == sorted(rows.to_pylist(), key=lambda row: (row["node"], row["ts_ns"]))


def test_counters_beyond_what_a_float_holds_are_the_same_afterwards(lake: Lake) -> None:
    put_minutes(lake, range(5))
    before = lake.counters("link", ["sent_bytes_total"]).sort_by("ts_ns")
    done(lake)
    after = lake.counters("link", ["sent_bytes_total"]).sort_by("ts_ns")
    assert after == before
    assert after["sent_bytes_total"].to_pylist()[:2] == [2**64 - 1, 2**64 - 2]


def test_hours_of_a_day_that_goes_on_stay_apart(lake: Lake) -> None:
    put_minutes(lake, range(150))
    done(lake, now_ns=150 * 60 * SECOND)
    spans = [name.split("_")[0].partition("part-c")[2] for name in parts(lake)]
    assert sorted(map(int, spans)) == [0, HOUR, 2 * HOUR]
    done(lake)
    assert len(parts(lake)) == 1


def test_a_second_compaction_finds_nothing_to_do(lake: Lake) -> None:
    put_minutes(lake, range(30))
    assert done(lake).rows == 60
    [name] = parts(lake)
    again = done(lake)
    assert (again.rows, again.files_before, again.files_after) == (0, 1, 1)
    assert parts(lake) == [name]


def test_days_that_need_nothing_are_not_looked_into_again_until_they_change(lake: Lake) -> None:
    put_minutes(lake, range(3))
    for minute in range(3, 6):
        lake.append(f"old-{minute}", to_table(OLD, {"ts_ns": [minute], "node": ["n1"]}))
        lake.append(f"other-{minute}", to_table(OTHER, {"ts_ns": [minute]}))
    looks = []
    for _ in range(4):
        held.cache_clear()
        done(lake)
        looks.append(held.cache_info().misses)
    assert looks[2:] == [
        0,
        0,
    ]  # two files of `link` rest since the second time, and one of `other` is never looked into
    assert done(Lake(lake.root)).files_before == 3
    put_minutes(lake, range(6, 8))
    done(lake)
    assert len(parts(lake)) == 3


def test_parts_that_may_still_be_written_again_wait(lake: Lake) -> None:
    put_minutes(lake, range(3))
    assert compact(lake, now_ns=LATER, settle_seconds=3600).rows == 0
    assert len(parts(lake)) == 3


def test_a_batch_that_comes_again_after_it_was_compacted_doubles_nothing(lake: Lake) -> None:
    put_minutes(lake, range(4))
    before = records(lake)
    done(lake)
    put_minutes(lake, range(4))
    assert records(lake) == before
    put_minutes(lake, range(4, 8))
    whole = records(lake)
    assert len(whole) == 16
    done(lake)
    put_minutes(lake, range(8))  # also after what was compacted was compacted again
    assert records(lake) == whole
    done(lake)
    assert (records(lake), len(parts(lake))) == (whole, 1)


def test_what_comes_late_joins_what_was_compacted(lake: Lake) -> None:
    put_minutes(lake, range(0, 60, 2))
    done(lake)
    put_minutes(lake, range(1, 60, 2))
    before = records(lake)
    done(lake)
    assert (records(lake), len(parts(lake))) == (before, 1)


def test_a_few_late_rows_do_not_write_a_large_file_again(lake: Lake) -> None:
    put_minutes(lake, range(30))
    done(lake)
    [large] = parts(lake)
    for late in range(40, 46):
        put_minutes(lake, [late])
        assert done(lake).rows == 2
        assert large in parts(lake)
    put_minutes(lake, [47])
    done(lake)  # until there are several of them
    put_minutes(lake, [48])
    done(lake)
    assert len(parts(lake)) == 1
    assert len(records(lake)) == 76


def test_definitions_are_not_mixed_and_both_are_read(lake: Lake) -> None:
    put_minutes(lake, range(3))
    for minute in range(3, 6):
        lake.append(f"old-{minute}", to_table(OLD, {"ts_ns": [minute], "node": ["n1"]}))
    before = lake.counters("link", ["sent_bytes_total"]).sort_by("ts_ns").to_pylist()
    done(lake)
    assert len(parts(lake)) == 2
    assert lake.counters("link", ["sent_bytes_total"]).sort_by("ts_ns").to_pylist() == before
    assert sum(row["sent_bytes_total"] is None for row in before) == 3


def test_a_damaged_part_stays_and_is_reported(lake: Lake) -> None:
    put_minutes(lake, range(3))
    bad = lake.root / "set=link" / "date=1970-01-01" / "part-bad.parquet"
    bad.write_bytes(b"PAR1 torn")
    [problem] = done(lake).problems
    assert problem.startswith(f"{bad}: left as it is: ")
    assert len(parts(lake)) == 2
    bad.unlink()
    assert len(records(lake)) == 6


def test_a_damaged_compacted_part_stays_and_is_reported_and_the_others_become_one(lake: Lake) -> None:
    put_minutes(lake, range(30))
    done(lake)
    [bad] = (lake.root / name for name in parts(lake))
    bad.write_bytes(b"PAR1 torn")
    put_minutes(lake, range(30, 120))
    result = done(lake)
    assert [problem.startswith(f"{bad}: left as it is: ") for problem in result.problems] == [True]
    assert (result.rows, len(parts(lake))) == (180, 2)


@pytest.mark.parametrize("manifest", [None, '{"names": [', "[]"])
def test_a_damaged_manifest_hinders_its_own_day_alone(lake: Lake, manifest: str | None) -> None:
    put_minutes(lake, range(2))
    done(lake)
    [compacted] = (lake.root / name for name in parts(lake))
    put_minutes(lake, range(2, 4))
    put(lake, "p", DAY)
    put(lake, "q", DAY)
    lake.append("r", to_table(OTHER, {"ts_ns": [1]}))
    if manifest is None:
        manifest_of(compacted).unlink()
    else:
        manifest_of(compacted).write_text(manifest)
    held.cache_clear()
    result = done(lake)
    [problem] = result.problems
    assert problem.startswith(f"{compacted.parent}: left as it is: ")
    assert manifest_of(compacted).name in problem
    assert (result.rows, len(parts(lake))) == (3, 3 + 1 + 1)


def test_a_damaged_definition_hinders_its_own_set_alone(lake: Lake) -> None:
    put_minutes(lake, range(2))
    for number in range(2):
        lake.append(f"r{number}", to_table(OTHER, {"ts_ns": [number]}))
    [definition] = (lake.root / "set=link").glob("_schema-*")
    definition.write_bytes(b"PAR1 torn")
    result = done(Lake(lake.root))
    [problem] = result.problems
    assert problem.startswith(f"{lake.root / 'set=link'}: left as it is: ")
    assert (result.rows, len(parts(lake))) == (2, 3)


def test_killed_before_the_rename_nothing_has_happened(lake: Lake) -> None:
    put_minutes(lake, range(3))
    before = records(lake)
    done(lake)
    [compacted] = (lake.root / name for name in parts(lake))
    compacted.unlink()
    put_minutes(lake, range(3))
    assert records(lake) == before
    done(lake)
    assert (records(lake), [lake.root / name for name in parts(lake)]) == (before, [compacted])


def test_a_writers_unfinished_part_stays_whatever_its_name(lake: Lake) -> None:
    put_minutes(lake, range(2))
    table = to_table(LINK, {"ts_ns": [5], "node": ["n1"], "sent_bytes_total": [1]})
    staged = lake.stage({"cpu_2026_x": table, "c0_1_2": table})
    draft = lake.root / ".writing" / "set=link.date=1970-01-01._held-part-c0_1_0123456789abcdef.json.01234567"
    draft.touch()
    done(lake)
    assert not draft.exists()
    lake.publish(staged)
    assert len(records(lake)) == 6


def test_a_reader_keeps_the_files_that_it_may_have_listed(lake: Lake) -> None:
    put_minutes(lake, range(2))
    done(lake)
    put_minutes(lake, range(2, 4))
    with lake.connect() as connection:
        done(lake)
        assert len(parts(lake)) == 4  # the new one, the older one, and two parts that wait for the reader
        assert connection.execute("select count(*) from link").fetchall() == [(8,)]
        assert len(records(lake)) == 8  # as who comes later, and sees the new file too
    del connection
    done(lake)
    assert (len(parts(lake)), len(records(lake))) == (1, 8)


def test_for_readers_a_compaction_waits_once_however_many_days_it_finds(lake: Lake) -> None:
    for number in range(6):
        put(lake, f"p{number}", number % 3 * DAY)
    with lake.connect() as connection:
        began = time.monotonic()
        assert done(lake).files_after == 3
        assert PATIENCE_SECONDS <= time.monotonic() - began < 1.7 * PATIENCE_SECONDS
        assert len(parts(lake)) == 9
    del connection
    done(lake)
    assert len(parts(lake)) == 3


def test_a_file_that_vanished_between_the_look_and_the_reading_is_looked_for_again(lake: Lake) -> None:
    put_minutes(lake, range(2))
    looks = []

    def ask(connection: object) -> int:
        paths = lake.parts("link")
        if not looks:
            paths[0].unlink()
        looks.append(len(paths))
        sql = f"select count(*) from {lake.source('link', paths)}"
        [(count,)] = connection.execute(sql).fetchall()  # type: ignore[attr-defined]
        return int(count)

    assert (lake.answer(ask), looks) == (2, [2, 1])


def test_two_do_not_compact_at_once(lake: Lake) -> None:
    put_minutes(lake, range(2))
    with alone(lake.root / COMPACTING) as is_ours:
        assert is_ours
        with pytest.raises(ConflictError, match="is being compacted by another process"):
            done(lake)
    assert done(lake).rows == 4


@pytest.mark.parametrize(
    "mount", ["nfs server:/home rw,local_lock=flock", "lustre mds:/scratch rw,localflock", "9p share rw"]
)
def test_where_locks_may_hold_on_one_node_alone_nothing_is_compacted(lake: Lake, tmp_path: Path, mount: str) -> None:
    put_minutes(lake, range(2))
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"36 22 0:32 / {tmp_path} rw - {mount}\n")
    with pytest.raises(
        UnavailableError, match=f"is not compacted on {mount.split(maxsplit=1)[0]}: expected a disk of this node"
    ):
        compact(lake, now_ns=LATER, settle_seconds=-1, mounts=mounts)
    assert len(parts(lake)) == 2
    mounts.write_text(f"36 22 0:32 / {tmp_path} rw - nfs4 server:/home rw,local_lock=none\n")
    assert compact(lake, now_ns=LATER, settle_seconds=-1, mounts=mounts).rows == 4


def test_files_of_other_times_are_not_opened(lake: Lake) -> None:
    put_minutes(lake, [0, 1])
    put_minutes(lake, [600, 601])
    put(lake, "other-day", 3 * DAY)
    done(lake, now_ns=601 * 60 * SECOND)
    assert len(parts(lake)) == 3
    for path in lake.parts("link", (0, HOUR)):
        path.write_bytes(b"PAR1 torn")
    where = f"where ts_ns between {9 * HOUR} and {11 * HOUR}"
    rows = lake.frame(f"select count(*) as rows from link {where}", within=(9 * HOUR, 11 * HOUR))
    assert rows["rows"].tolist() == [4]
    with pytest.raises(MalformedError, match=r"cannot be read"):
        records(lake)


def test_a_missing_manifest_is_named(lake: Lake) -> None:
    put_minutes(lake, range(2))
    done(lake)
    put_minutes(lake, [5])
    [compacted] = (path for path in lake.parts("link") if "part-c" in path.name)
    manifest_of(compacted).unlink()
    held.cache_clear()
    with pytest.raises(MalformedError, match="_held-part-c"):
        Lake(lake.root).frame(EVERYTHING)


def test_nobody_may_call_a_part_as_compaction_does(lake: Lake) -> None:
    with pytest.raises(InvalidInputError, match="expected letters, digits, - and _"):
        put(lake, "c0_1_0123456789abcdef", 1)


def test_an_empty_lake_has_nothing_to_compact(lake: Lake) -> None:
    assert done(lake) == Compacted()
    lake.root.mkdir()
    assert done(lake) == Compacted()
    assert (lake.root / READING).exists()

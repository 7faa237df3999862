"""A policy applied: what is retired was rolled up, what comes late is added, and readers see neither less nor more."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.data.lake.retention.rolled_store import (
    APART,
    COUNTERS,
    DAY,
    DAYS,
    GAUGES,
    METER,
    START,
    Values,
    asked,
    every_statistic,
    fill,
    same,
    samples,
    values,
)

from crosswind.data.lake.compaction import compact
from crosswind.data.lake.lake import Lake, to_table
from crosswind.data.lake.locks import READING
from crosswind.data.lake.parts import is_last_rows
from crosswind.data.lake.retention.days import covers, days_in, rolled_up
from crosswind.data.lake.retention.retirement import retire
from crosswind.data.lake.retention.rollups_of_day import SetToRoll
from crosswind.data.lake.retention.upkeep import Upkeep, expected, upkeep
from crosswind.data.lake.storage import Filed
from crosswind.data.lake.verification import verify
from crosswind.data.schema.errors import ConflictError, MalformedError, UnavailableError
from crosswind.data.schema.keeping import KeepPolicy
from crosswind.data.schema.series_question import Statistic
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store

POLICY = KeepPolicy.of("raw:1d,1m:30d,1h:forever")
LATER = START + (DAYS + 2) * DAY
COUNT = "select count(*) as n from meter"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def raw_files(lake: Lake) -> list[str]:
    paths = lake.root.glob("set=meter/date=*/part-*.parquet")
    return [path.name for path in paths if not is_last_rows(path.name)]


def test_without_a_policy_nothing_is_rolled_up_and_nothing_goes(store: Store) -> None:
    fill(store.lake)
    assert upkeep(store.lake, KeepPolicy.of(""), now_ns=START + 4000 * DAY) == Upkeep()
    assert store.lake.storage.sets() == ["meter"]


def test_raw_rows_go_once_they_are_rolled_up_and_that_is_done_once(store: Store) -> None:
    fill(store.lake)
    names = raw_files(store.lake)
    assert expected(store.lake, POLICY, LATER) == (done := upkeep(store.lake, POLICY, now_ns=LATER))
    assert (done.rolled_up, done.retired, done.removed, done.problems) == (DAYS, DAYS, 0, [])
    assert done.retired_bytes > 10_000
    assert raw_files(store.lake) == []
    assert upkeep(store.lake, POLICY, now_ns=LATER) == Upkeep()
    assert verify(store.lake).problems == []
    assert store.lake.sets() == ["meter"]
    assert len(names) == 4 * DAYS


def test_a_day_that_may_still_get_rows_is_left_alone(store: Store) -> None:
    fill(store.lake)
    assert upkeep(store.lake, POLICY, now_ns=START + 2 * DAY + DAY // 24).rolled_up == 1


def test_the_same_parts_that_come_again_do_not_count_again(store: Store) -> None:
    fill(store.lake)
    raw = every_statistic(store)
    upkeep(store.lake, POLICY, now_ns=LATER)
    fill(store.lake)
    same(every_statistic(store), raw)
    compact(store.lake, now_ns=LATER, settle_seconds=-1)
    assert raw_files(store.lake) == []
    assert upkeep(store.lake, POLICY, now_ns=LATER) == Upkeep()


def test_rows_that_come_late_make_a_new_roll_up_while_raw_rows_are_there(store: Store) -> None:
    kept = KeepPolicy.of("raw:forever,1h:forever")
    fill(store.lake, nodes=("n1",))
    assert upkeep(store.lake, kept, now_ns=LATER).rolled_up == DAYS
    fill(store.lake, days=range(1), nodes=("n2",))
    raw = every_statistic(store)
    assert upkeep(store.lake, kept, now_ns=LATER).rolled_up == 2  # also the next day's first growth may be another
    same(every_statistic(store), raw)
    upkeep(store.lake, POLICY, now_ns=LATER)
    same(every_statistic(store), raw)


def test_rows_that_come_after_their_day_was_retired_count_at_once_and_once(store: Store) -> None:
    fill(store.lake, nodes=("n1",))
    upkeep(store.lake, POLICY, now_ns=LATER)
    before = values(store, asked())
    late = samples(7, "n2", 1)
    store.lake.append("late", late)
    given = of_gauges(store)
    assert given.keys() > {key for key in before if key[0] in GAUGES}
    compact(store.lake, now_ns=LATER, settle_seconds=-1)
    same(of_gauges(store), given)
    done = upkeep(store.lake, POLICY, now_ns=LATER)
    assert (done.rolled_up, done.retired, done.problems) == (1, 1, [])
    assert raw_files(store.lake) == []
    same(of_gauges(store), given)
    store.lake.append("late", late)
    same(of_gauges(store), given)
    after = values(store, asked())  # their growth may stand in that around them, and is not counted twice
    same({key: after[key] for key in before}, before)
    assert not any(key[0] in COUNTERS and "n2" in key for key in after)


def of_gauges(store: Store) -> Values:
    return {key: of_key for key, of_key in every_statistic(store).items() if key[0] in GAUGES}


def test_finer_roll_ups_go_where_coarser_ones_stay(store: Store) -> None:
    fill(store.lake)
    raw = every_statistic(store)
    upkeep(store.lake, POLICY, now_ns=LATER)
    done = upkeep(store.lake, POLICY, now_ns=LATER + 40 * DAY)
    assert (done.rolled_up, done.removed, done.problems) == (0, DAYS, [])
    assert store.lake.storage.sets() == ["meter", "rollup_3600s_meter"]
    same(every_statistic(store), raw)
    assert upkeep(store.lake, POLICY, now_ns=LATER + 50 * DAY) == Upkeep()


def test_the_last_roll_up_goes_when_the_policy_says_so_and_never_before_there_was_one(store: Store) -> None:
    fill(store.lake)
    short = KeepPolicy.of("raw:1d,1h:2d")
    done = upkeep(store.lake, short, now_ns=LATER + 100 * DAY)
    assert (done.rolled_up, done.retired, done.removed) == (DAYS, DAYS, 0)
    assert upkeep(store.lake, short, now_ns=LATER + 100 * DAY).removed == DAYS
    assert all(value is None for of_key in values(store, asked()).values() for value in of_key)


def test_retirement_is_refused_where_the_roll_up_lacks_rows(store: Store) -> None:
    fill(store.lake, nodes=("n1",))
    day = days_in(store.lake.storage.listed("meter"))[START // DAY]
    with pytest.raises(ConflictError, match="meter of 2024-10-04 stays: its roll-up at 60 s does not have anything"):
        retire(SetToRoll(store.lake, "meter"), day, [60])
    upkeep(store.lake, KeepPolicy.of("raw:forever,1m:forever"), now_ns=LATER)
    fill(store.lake, nodes=("n2",))
    day = days_in(store.lake.storage.listed("meter"))[START // DAY]
    with pytest.raises(ConflictError, match=r"does not have part-n2-1-0-0\.parquet and 1 others"):
        retire(SetToRoll(store.lake, "meter"), day, [60])
    assert len(raw_files(store.lake)) == 4 * DAYS


def test_a_damaged_file_keeps_its_day_and_the_next_ones_roll_up(store: Store) -> None:
    fill(store.lake)
    path = next(store.lake.root.glob("set=meter/date=2024-10-05/part-n1*.parquet"))
    path.write_bytes(path.read_bytes()[:-30])
    done = upkeep(store.lake, POLICY, now_ns=LATER)
    assert [problem[:19] for problem in done.problems] == ["meter of 2024-10-05", "meter of 2024-10-06"]
    assert path.exists()
    assert {filed.date for filed in store.lake.storage.listed("meter")} == {"2024-10-04", "2024-10-05", "2024-10-06"}
    assert len(raw_files(store.lake)) == 8


def test_sets_of_runs_and_accounts_stay_as_they_are(store: Store) -> None:
    store.lake.append("s", to_table(STEP, {"ts_ns": [START], "run_id": ["r"], "rank": [0], "step": [1]}))
    assert upkeep(store.lake, POLICY, now_ns=LATER) == Upkeep()


def test_nobody_stores_rows_where_roll_ups_are(store: Store) -> None:
    named = to_table(replace(METER, name="rollup_60s_meter"), {"ts_ns": [1]})
    with pytest.raises(MalformedError, match="rollup_60s_meter: expected another name, roll-ups have such names"):
        store.lake.append("p", named)


def test_two_do_not_do_it_at_once_and_not_where_locks_do_not_hold(store: Store, tmp_path: Path) -> None:
    fill(store.lake, days=range(1))
    with store.lake.storage.changing(), pytest.raises(ConflictError, match="by another process"):
        upkeep(store.lake, POLICY, now_ns=LATER)
    mounts = tmp_path / "mounts"
    mounts.write_text("1 1 0:1 / / rw - nfs4 server:/ rw\n")
    with pytest.raises(UnavailableError, match="is not retired on nfs4"):
        upkeep(store.lake, POLICY, now_ns=LATER, mounts=mounts)


def test_others_have_a_turn_between_two_days(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosswind.data.lake.retention.upkeep.TURN_SECONDS", 0.0)
    fill(store.lake)
    others: list[int] = []

    def compacted() -> None:
        with store.lake.storage.changing(10) as is_ours:
            others.append(done.rolled_up if is_ours else -1)

    done = Upkeep()
    monkeypatch.setattr("crosswind.data.lake.retention.upkeep.Upkeep", lambda: done)
    thread = threading.Thread(target=compacted)

    def start() -> bool:
        if done.rolled_up == 1 and not thread.ident:
            thread.start()
        return False

    assert upkeep(store.lake, POLICY, now_ns=LATER, is_over=start).retired == DAYS
    thread.join()
    assert others == [2]


def test_whoever_reads_meanwhile_always_sees_the_same(store: Store) -> None:
    fill(store.lake)
    expected_values = of_all(store)
    seen: list[Values] = []
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(0.05):  # else the two take turns at the interpreter
            seen.append(of_all(store))

    reader = threading.Thread(target=look)
    reader.start()
    for policy in ("raw:forever,1m:forever", "raw:4d,1m:forever,1h:forever", "raw:1d,1m:30d,1h:forever"):
        upkeep(store.lake, KeepPolicy.of(policy), now_ns=LATER)
        compact(store.lake, now_ns=LATER, settle_seconds=-1)
    upkeep(store.lake, POLICY, now_ns=LATER + 40 * DAY)
    is_over.set()
    reader.join()
    assert len(seen) > 4
    for one in seen:
        same(one, expected_values)


def of_all(store: Store) -> Values:
    return values(store, asked(statistics=(Statistic.MEAN, Statistic.SUM), by=("node",)))


def test_a_reader_keeps_files_until_it_is_done(store: Store) -> None:
    fill(store.lake, days=range(1))
    connection = store.lake.connect(["meter"])
    upkeep(store.lake, POLICY, now_ns=LATER)
    assert len(raw_files(store.lake)) == 4
    assert connection.execute(COUNT).fetchall()[0][0] > DAY // APART
    connection.close()
    del connection
    assert (store.lake.root / READING).exists()
    compact(store.lake, now_ns=LATER, settle_seconds=-1)
    assert raw_files(store.lake) == []


def filed(*names: str) -> list[Filed]:
    return [Filed(Path(f"lake/set=meter/date=1970-01-0{2 + place // 2}") / name) for place, name in enumerate(names)]


def test_the_name_of_a_roll_up_says_what_it_is_of() -> None:
    before, day = days_in(filed("part-a.parquet", "part-b.parquet", "part-c.parquet", "part-d.parquet")).values()
    last = f"part-c{DAY}_{2 * DAY - 1}_{before.digest}-last.parquet"
    [retired] = days_in(filed(last)).values()
    assert retired.last is not None
    assert rolled_up(day, before) == rolled_up(day, retired) != rolled_up(day, None)
    assert rolled_up(day, before).startswith(f"part-c{2 * DAY}_{3 * DAY - 1}_")
    assert covers(day, None)[2:] == ["part-c.parquet", "part-d.parquet"]
    more = days_in(filed("part-a.parquet", "part-b.parquet", "part-c.parquet", "part-e.parquet"))[2]
    assert rolled_up(more, before) != rolled_up(day, before)

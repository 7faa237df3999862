"""Steps of a run as a page reads them: the same before, while and after they are compacted."""

import os
from pathlib import Path

import pandas as pd
import pytest

from crosswind.data.lake import parquet, steps_summary
from crosswind.data.lake.compaction import compact
from crosswind.data.lake.lake import Lake, to_table
from crosswind.data.lake.steps_summary import SUMMARISED, Window, per_step, rank_steps, ribbon, window_of
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import STEP

SECOND = 1_000_000_000
MINUTE, DAY = 60 * SECOND, 86_400 * SECOND
RANKS = 4


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setattr(steps_summary, "MANY_ROWS", RANKS)  # few runs are as large as those that get a summary
    return Lake(tmp_path / "lake")


def put(lake: Lake, part: str, steps: range, ranks: range = range(RANKS), run_id: str = "r") -> None:
    """Steps that take 1 s on every rank and 10 ms more a rank on the slowest, which is rank `step % 4`."""
    rows = [(step, rank) for step in steps for rank in ranks]
    slow = [rank == step % RANKS for step, rank in rows]
    columns = {
        "ts_ns": [step * MINUTE + rank for step, rank in rows],
        "run_id": [run_id] * len(rows),
        "rank": [rank for _, rank in rows],
        "step": [step for step, _ in rows],
        "duration_seconds": [SECOND + 10_000_000 * step + 1000 * rank for step, rank in rows],
        "compute_seconds": [900_000_000 if is_slow else 700_000_000 for is_slow in slow],
        "comm_seconds": [100_000_000 if is_slow else 300_000_000 for is_slow in slow],
        "input_seconds": [None] * len(rows),
    }
    lake.append(part, to_table(STEP, columns))


def compacted(lake: Lake, now_ns: int = 400 * DAY) -> int:
    return compact(lake, now_ns=now_ns, settle_seconds=-1).summaries


def same(one: pd.DataFrame, other: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(one, other)


def test_a_step_is_summarized_by_its_slowest_rank_and_who_came_last(lake: Lake) -> None:
    put(lake, "p", range(5, 7))
    [row, _] = per_step(lake, "r").to_dict("records")
    assert row["input_seconds"] != row["input_seconds"]  # null
    assert {key: row[key] for key in ("step", "began_ns", "ranks", "slowest_rank", "last_rank")} == {
        "step": 5, "began_ns": 5 * MINUTE, "ranks": 4, "slowest_rank": 3, "last_rank": 1,
    }  # fmt: skip
    keys = ("slowest_seconds", "median_seconds", "fastest_seconds", "spread_seconds", "compute_seconds", "comm_seconds")
    assert [row[key] for key in keys] == pytest.approx([1.050003, 1.050002, 1.05, 0.2, 0.75, 0.25], abs=1e-6)


def test_of_ranks_that_are_alike_the_first_is_named(lake: Lake) -> None:
    rows = {"ts_ns": [1, 2, 3], "run_id": ["r"] * 3, "rank": [2, 0, 1], "step": [0] * 3, "duration_seconds": [7] * 3}
    lake.append("p", to_table(STEP, rows | {"comm_seconds": [4, 4, 4]}))
    [row] = per_step(lake, "r").to_dict("records")
    assert (row["slowest_rank"], row["last_rank"]) == (0, 0)


def test_nobody_came_last_where_one_rank_is_alone(lake: Lake) -> None:
    put(lake, "p", range(1), range(1))
    assert per_step(lake, "r")["last_rank"].isna().all()


def test_small_runs_get_no_summary_each(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROWS_READ_AT_ONCE", 8)  # each group of rows has a dictionary of its own
    monkeypatch.setattr(parquet, "LARGE_ROWS", 1)
    for number in range(20):
        put(lake, f"p{number}", range(1), range(RANKS if number == 7 else RANKS - 1), run_id=f"r{number}")
    assert compacted(lake) == 1
    assert len(per_step(lake, "r7")) == len(per_step(lake, "r8")) == 1


def test_compaction_changes_no_answer(lake: Lake) -> None:
    for minute in range(0, 120, 10):
        put(lake, f"p{minute}", range(minute, minute + 10))
    before = per_step(lake, "r"), ribbon(lake, "r", points=7), rank_steps(lake, "r", [2])
    assert len(before[0]) == 120
    assert compacted(lake) == 1
    same(per_step(lake, "r"), before[0])
    same(ribbon(lake, "r", points=7), before[1])
    same(rank_steps(lake, "r", [2]), before[2])
    assert compacted(lake) == 0


def test_the_summary_answers_alone_once_all_is_compacted(lake: Lake) -> None:
    put(lake, "p", range(100))
    before = per_step(lake, "r")
    compacted(lake)
    for path in lake.parts("step"):
        path.write_bytes(b"PAR1 torn")
    same(per_step(lake, "r"), before)


@pytest.mark.parametrize("is_compacted_twice", [False, True])
def test_ranks_of_a_step_that_come_later_are_summarized_with_the_others(lake: Lake, is_compacted_twice: bool) -> None:
    whole = Lake(lake.root.parent / "whole")
    put(whole, "p", range(120))
    put(lake, "p0", range(90), range(2))
    put(lake, "p1", range(90), range(2, 3))
    compacted(lake)
    put(lake, "p2", range(85), range(3, 4))
    put(lake, "p3", range(85, 90), range(3, 4))
    put(lake, "p4", range(90, 120))
    if is_compacted_twice:
        assert compacted(lake) == 1
    same(per_step(lake, "r"), per_step(whole, "r"))
    same(per_step(lake, "r", Window(80, 95)), per_step(whole, "r", Window(80, 95)))


def test_hours_that_become_days_leave_the_summary_right(lake: Lake) -> None:
    for minute in range(0, 360, 10):
        put(lake, f"p{minute}", range(minute, minute + 10))
    before = per_step(lake, "r")
    assert compacted(lake, now_ns=361 * MINUTE) == 1
    assert len(lake.parts("step")) == 6
    assert compacted(lake) == 1
    assert len(lake.parts("step")) == 1
    same(per_step(lake, "r"), before)


def test_a_summary_that_was_not_written_is_made_up_for(lake: Lake) -> None:
    put(lake, "p", range(60))
    before = per_step(lake, "r")
    compacted(lake)
    [summary] = (lake.root / "rollup=step").iterdir()
    for path in (summary, lake.root / SUMMARISED):  # as where it was killed before
        path.unlink()
    same(per_step(lake, "r"), before)
    assert compacted(lake) == 1
    assert summary.exists()


def test_a_damaged_summary_counts_as_none_until_it_is_written_again(lake: Lake) -> None:
    put(lake, "p", range(60))
    before = per_step(lake, "r")
    compacted(lake)
    [summary] = (lake.root / "rollup=step").iterdir()
    summary.write_bytes(b"PAR1 torn")
    same(per_step(lake, "r"), before)
    put(lake, "q", range(60, 90))
    before = per_step(lake, "r")
    assert compacted(lake) == 1
    same(per_step(lake, "r"), before)
    for path in lake.parts("step"):
        path.write_bytes(b"PAR1 torn")
    same(per_step(lake, "r"), before)


def test_summaries_of_runs_without_new_rows_are_not_looked_at(lake: Lake) -> None:
    put(lake, "p", range(10), run_id="old")
    compacted(lake)
    os.utime(lake.parts("step")[0], (1, 1))  # not of the very moment of the look
    [old] = (lake.root / "rollup=step").iterdir()
    old.write_bytes(b"PAR1 torn")
    put(lake, "q", range(3000, 3010))
    assert compacted(lake) == 1
    assert old.read_bytes() == b"PAR1 torn"


def test_a_damaged_part_hinders_the_summary_of_its_own_runs_alone(lake: Lake) -> None:
    put(lake, "p", range(10), run_id="bad")
    put(lake, "q", range(3000, 3010))
    compacted(lake)
    [bad, _] = lake.parts("step")
    bad.write_bytes(b"PAR1 torn")
    for path in (lake.root / "rollup=step").iterdir():
        path.unlink()
    (lake.root / SUMMARISED).unlink()
    result = compact(lake, now_ns=400 * DAY, settle_seconds=-1)
    assert (result.summaries, len(result.problems)) == (1, 1)
    assert bad.name in result.problems[0]
    assert compacted(lake) == 0


def test_runs_do_not_mix(lake: Lake) -> None:
    put(lake, "p", range(10))
    put(lake, "q", range(20), run_id="it's another")
    assert compacted(lake) == 2
    assert len(per_step(lake, "r")) == 10
    assert len(per_step(lake, "it's another")) == 20
    assert per_step(lake, "none").empty


def test_a_ribbon_has_as_many_points_as_asked_and_keeps_the_worst_step(lake: Lake) -> None:
    put(lake, "p", range(1000))
    band = ribbon(lake, "r", points=30)
    assert (len(band), band["steps"].sum()) == (30, 1000)
    worst = band.iloc[-1]
    assert (worst["slowest_step"], worst["slowest_rank"]) == (999, 3)
    assert worst["slowest_seconds"] == pytest.approx(10.990003)
    assert len(ribbon(lake, "r", Window(10, 19), points=2000)) == 10


def test_rows_of_a_window_come_in_order_with_the_columns_asked_for(lake: Lake) -> None:
    put(lake, "p", range(10))
    rows = rank_steps(lake, "r", [3, 1], Window(4, 5), columns=["rank", "step", "duration_seconds"])
    assert rows.to_dict("split")["data"] == [
        [1, 4, pytest.approx(1.040001)],
        [1, 5, pytest.approx(1.050001)],
        [3, 4, pytest.approx(1.040003)],
        [3, 5, pytest.approx(1.050003)],
    ]


def test_files_of_other_runs_and_other_days_are_not_opened(lake: Lake) -> None:
    put(lake, "p", range(10))
    put(lake, "other", range(3000, 3010), run_id="other")
    compacted(lake)
    [_, later] = lake.parts("step")
    later.write_bytes(b"PAR1 torn")
    assert len(rank_steps(lake, "r")) == 10 * RANKS
    run = Run("other", "w", "s", RunState.COMPLETED, started_ns=0, ended_ns=10 * MINUTE)
    assert rank_steps(lake, "other", window=window_of(run)).empty


def test_files_of_other_steps_are_not_opened(lake: Lake) -> None:
    put(lake, "p0", range(10))
    put(lake, "p1", range(100, 110))
    compacted(lake, now_ns=600 * MINUTE)
    put(lake, "p2", range(10, 20))
    before = rank_steps(lake, "r", window=Window(5, 15))
    assert len(before) == 11 * RANKS
    [_, later, _] = lake.parts("step")
    later.write_bytes(b"PAR1 torn")
    same(rank_steps(lake, "r", window=Window(5, 15)), before)


def test_an_empty_lake_has_no_steps(lake: Lake) -> None:
    assert per_step(lake, "r").empty
    assert ribbon(lake, "r").empty
    assert rank_steps(lake, "r").empty

import json
import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.run import Run, RunState, cohort_key
from crosswind.data.schema.steps import PHASES, STEP
from crosswind.data.store.features import WARM_UP_STEPS, all_runs, steps_of, summaries
from crosswind.data.store.store import Store

START_NS = 1_767_323_045_000_000_001  # too fine for a float
MS = 1_000_000
TIMED = Run(
    "timed", "toy", "lab", RunState.COMPLETED, 2, {"batch": 8}, started_ns=START_NS, ended_ns=START_NS + 500 * MS
)
BARE = Run("bare", "tool", "lab", RunState.FAILED)
DURATIONS = {0: [900, 800, 700, 10, 20, 30, 40], 1: [900, 800, 700, 11, 19, 33, 40]}  # ms, by rank


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path) as store:
        with store.catalog.write() as session:
            session.runs.merge(TIMED)
            session.runs.merge(BARE)
        for rank, durations in DURATIONS.items():
            count = len(durations)
            columns = {
                "ts_ns": [START_NS + number for number in range(count)],
                "run_id": ["timed"] * count,
                "rank": [rank] * count,
                "step": list(range(count)),
                "duration_seconds": [duration * MS for duration in durations],
                "input_seconds": [(rank + 1) * MS] * count,
            }
            store.lake.append(f"rank{rank}", to_table(STEP, columns))
        yield store


def test_a_step_lasts_as_long_as_its_slowest_rank_and_warm_up_is_left_out(store: Store) -> None:
    [row] = summaries(store, [TIMED]).to_dict("records")
    slowest = [0.011, 0.020, 0.033, 0.040]
    assert len(slowest) == len(DURATIONS[0]) - WARM_UP_STEPS
    assert row["steps"] == 4
    assert row["step_p50_seconds"] == pytest.approx(statistics.median(slowest))
    assert row["step_mean_seconds"] == pytest.approx(statistics.mean(slowest))
    assert row["step_cov_ratio"] == pytest.approx(statistics.stdev(slowest) / statistics.mean(slowest))
    assert row["step_p05_seconds"] == pytest.approx(0.011 + 0.15 * 0.009)
    assert row["step_p95_seconds"] == pytest.approx(0.040 - 0.15 * 0.007)
    assert row["input_seconds"] == pytest.approx(0.0015)  # the mean over ranks
    assert row["run_seconds"] == pytest.approx(0.5)


def test_runs_stand_in_the_order_asked_for_and_without_steps_have_nulls(store: Store) -> None:
    frame = summaries(store, [BARE, TIMED])
    assert frame["run_id"].tolist() == ["bare", "timed"]
    assert frame["state"].tolist() == ["failed", "completed"]
    assert pd.isna(frame.loc[0, ["steps", "step_p50_seconds", *(f"{phase}_seconds" for phase in PHASES)]]).all()


def test_whole_numbers_stay_whole_beside_runs_that_lack_them(store: Store) -> None:
    bare, timed = json.loads(summaries(store, [BARE, TIMED]).to_json(orient="records"))
    assert (timed["started_ns"], timed["world_size"], timed["steps"]) == (START_NS, 2, 4)
    assert (bare["started_ns"], bare["world_size"], bare["steps"]) == (None, None, None)


def test_no_runs_make_an_empty_frame_of_the_same_columns(store: Store) -> None:
    frame = summaries(store, [])
    assert len(frame) == 0
    assert list(frame.columns) == list(summaries(store, [TIMED]).columns)


def test_a_store_without_any_step_answers_with_nulls(tmp_path: Path) -> None:
    with Store.open(tmp_path / "empty") as store:
        assert pd.isna(summaries(store, [TIMED])["steps"]).all()


def test_a_run_has_its_own_cohort_by_configuration_scale_workload_and_system() -> None:
    others = [{"configuration": {"batch": 9}}, {"world_size": 4}, {"workload": "x"}, {"system": "x"}]
    assert len({cohort_key(run) for run in [TIMED, *(replace(TIMED, **other) for other in others)]}) == 5  # type: ignore[arg-type]
    again = replace(TIMED, run_id="again", state=RunState.FAILED, started_ns=1)
    assert cohort_key(again) == cohort_key(TIMED)
    turned = [replace(TIMED, configuration=configuration) for configuration in ({"a": 1, "b": 2}, {"b": 2, "a": 1})]
    assert cohort_key(turned[0]) == cohort_key(turned[1])


def test_all_runs_are_the_newest_oldest_first(store: Store) -> None:
    assert [run.run_id for run in all_runs(store)] == ["bare", "timed"]
    assert [run.run_id for run in all_runs(store, limit=1)] == ["timed"]
    assert [run.run_id for run in all_runs(store, RunFilter(workload="tool"))] == ["bare"]


def test_steps_of_a_run_are_in_seconds_by_step_and_rank(store: Store) -> None:
    steps = steps_of(store, "timed")
    assert list(zip(steps["step"], steps["rank"], strict=True))[:3] == [(0, 0), (0, 1), (1, 0)]
    assert steps["duration_seconds"].tolist()[6:8] == pytest.approx([0.010, 0.011])


def test_a_run_without_steps_has_none_and_an_unknown_run_is_not_found(store: Store) -> None:
    assert len(steps_of(store, "bare")) == 0
    with pytest.raises(NotFoundError, match="run 'nosuch' is not in the catalog"):
        steps_of(store, "nosuch")

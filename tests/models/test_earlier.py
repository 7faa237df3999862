from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from crosswind.data.job import Job
from crosswind.data.lake import to_table
from crosswind.data.run import Run, RunState
from crosswind.data.steps import STEP
from crosswind.data.store import Store
from crosswind.models.earlier import Outcome, earlier_runs
from crosswind.models.outlook import Question, next_run

SECOND = 10**9
RUN = Run("r0", "bert", "lab", RunState.COMPLETED, world_size=4, started_ns=0, ended_ns=100 * SECOND)
JOB = Job("lab", "0", "bert", state="COMPLETED", node_count=2, started_ns=SECOND, ended_ns=61 * SECOND)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def keep(store: Store, *runs: Run) -> None:
    with store.catalog.write() as session:
        for run in runs:
            session.runs.merge(run)


def test_runs_with_steps_are_compared_by_their_steps(store: Store) -> None:
    keep(store, RUN)
    steps = list(range(20))
    columns = {"ts_ns": steps, "run_id": ["r0"] * 20, "rank": [0] * 20, "step": steps}
    store.lake.append("r0", to_table(STEP, columns | {"duration_seconds": [50_000_000] * 20}))
    found = earlier_runs(store, "bert", "lab")
    assert found.outcome is Outcome.STEP
    assert list(found.history["seconds"]) == [0.05]


def test_runs_without_steps_are_compared_by_their_run_time(store: Store) -> None:
    keep(store, RUN, replace(RUN, run_id="r1", state=RunState.FAILED), replace(RUN, run_id="r2", ended_ns=None))
    store.jobs.put(JOB)
    found = earlier_runs(store, "bert", "lab")
    assert found.outcome is Outcome.RUN
    assert list(found.history["seconds"]) == [100.0]


def test_a_workload_of_which_only_the_scheduler_knows_is_predicted_from_its_jobs(store: Store) -> None:
    jobs = [replace(JOB, job_id=str(number), elapsed_seconds=60.0 + number) for number in range(8)]
    failed = replace(JOB, job_id="f", state="FAILED")
    store.jobs.put(*jobs, failed, replace(JOB, job_id="x", name="other"), replace(JOB, job_id="y", system="elsewhere"))
    found = earlier_runs(store, "bert", "lab")
    assert found.outcome is Outcome.JOB
    assert sorted(found.history["seconds"]) == [60.0 + number for number in range(8)]
    outlook = next_run(store, Question("bert", "lab", {}, 2))
    assert outlook.outcome is Outcome.JOB
    assert 60 <= outlook.prediction.seconds[0] <= outlook.prediction.seconds[-1] < 75


def test_a_job_takes_what_its_scheduler_counts_else_what_the_clock_says() -> None:
    assert replace(JOB, elapsed_seconds=5.0).seconds == 5.0
    assert JOB.seconds == pytest.approx(60.0)
    assert replace(JOB, ended_ns=None).seconds is None

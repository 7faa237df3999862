from dataclasses import replace
from pathlib import Path
from statistics import median

import pyarrow.parquet as pq
import pytest
from tests.needs import needs_data

from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.progress_rate import ProgressRate, progress_rates

REAL = Path(__file__).parents[4] / "shared" / "data" / "mlperf" / "runs.parquet"
SECOND = 1_000_000_000


def run(seconds: int, epochs: str, **other: object) -> Run:
    tags = {"progress": epochs, "progress_unit": "epoch_num"}
    untimed = Run(f"r{seconds}-{epochs}", "unet3d", "storm", RunState.COMPLETED, 8, {"batch": 56}, tags=tags)
    return replace(replace(untimed, started_ns=5 * SECOND, ended_ns=(5 + seconds) * SECOND), **other)


def test_luck_in_converging_is_distinguished_from_the_systems_pace() -> None:
    [rate] = progress_rates([run(100, "10"), run(200, "20"), run(300, "30")])
    assert rate == ProgressRate(
        workload="unet3d",
        system="storm",
        world_size=8,
        unit="epoch_num",
        runs=3,
        seconds_p50=200.0,
        seconds_cov_ratio=0.5,
        progress_p50=20.0,
        progress_cov_ratio=0.5,
        seconds_per_progress_p50=10.0,
        seconds_per_progress_cov_ratio=0.0,
    )


def test_a_slow_system_shows_in_the_pace_alone() -> None:
    [rate] = progress_rates([run(100, "10"), run(200, "10"), run(300, "10")])
    assert (rate.progress_cov_ratio, rate.seconds_per_progress_cov_ratio) == (0.0, pytest.approx(0.5))


def test_only_runs_of_one_cohort_and_unit_are_compared() -> None:
    runs = [
        run(100, "10"),
        run(101, "10", configuration={"batch": 28}),
        run(102, "10", world_size=16),
        run(103, "10", tags={"progress": "10", "progress_unit": "samples_count"}),
    ]
    assert progress_rates(runs) == []
    assert [rate.runs for rate in progress_rates([*runs, *runs, run(104, "10")])] == [3, 2, 2, 2]


@pytest.mark.parametrize("epochs", ["", "0", "-1", "nan", "inf", "ten"])
def test_runs_without_progress_are_left_out(epochs: str) -> None:
    assert progress_rates([run(100, "10"), run(200, epochs)]) == []


def test_runs_that_did_not_reach_their_target_are_left_out() -> None:
    aborted = run(100, "10", state=RunState.FAILED)
    unfinished = run(100, "10", ended_ns=None)
    assert progress_rates([run(100, "10"), aborted, unfinished, run(200, "10", tags={})]) == []


@needs_data(REAL)
def test_published_runs_vary_by_luck_rather_than_by_pace() -> None:
    columns = ["config_id", "benchmark", "ttt_min", "status", "last_eval_progress"]
    runs = [
        run(
            0, str(row["last_eval_progress"]), system=row["config_id"], ended_ns=(5 + int(row["ttt_min"] * 60)) * SECOND
        )
        for row in pq.read_table(REAL, columns=columns).to_pylist()
        if row["status"] == "success" and row["ttt_min"]
    ]
    rates = [rate for rate in progress_rates(runs) if rate.runs >= 5]
    assert len(rates) > 1400
    assert 0.04 < median(rate.seconds_cov_ratio for rate in rates) < 0.05
    assert median(rate.seconds_per_progress_cov_ratio for rate in rates) < 0.004

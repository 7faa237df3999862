"""DeepSpeed's logs. deepspeed-0.19 was recorded from a training with that version at log level INFO; micro_steps is
quoted from deepspeedai/DeepSpeed#1825, timers from #3742, below a configuration in the form of runtime/config.py.
"""

from pathlib import Path

from tests.ingest.readers.logs.logged import SECOND, read_log, read_text
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.run import RunState
from crosswind.ingest.readers.logs.deepspeed import DeepSpeedReader

RECORDED = RECORDINGS / "deepspeed"
READER = DeepSpeedReader()
MS = 1_000_000
MADE = 1_795_300_262_480 * MS  # 2026-11-21 22:31:02.480 UTC


def report(step: int, seconds: int, rates: str = "0.01") -> str:
    time = f"[2023-07-25 21:03:{seconds:02d},500]"
    return f"{time} [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped=0, lr=[{rates}], mom=[0.9]\n"


def test_steps_last_what_passes_between_reports_and_the_run_begins_when_the_engine_is_made() -> None:
    log = read_log(READER, RECORDED / "deepspeed-0.19.txt")
    assert log.steps() == [
        (MADE + 163 * MS - 14 * MS, 3, 14 * MS),
        (MADE + 188 * MS - 12_500_000, 5, 12_500_000),
    ]
    [run] = log.runs
    assert (run.state, run.started_ns, run.ended_ns) == (RunState.LOST, MADE, MADE + 193 * MS)
    assert run.configuration == {"train_batch_size": 8, "world_size": 1}
    assert run.tags["durations_from"] == "times of the lines: what lies between steps is in them"


def test_what_is_logged_is_of_the_step_before_it_and_timers_of_unnamed_steps_are_left_out() -> None:
    log = read_log(READER, RECORDED / "deepspeed-0.19.txt")
    assert log.values(1) == {
        "skipped_steps": 0,
        "learning_rate": 0.01,
        "fwd_seconds": 0.00023,
        "bwd_seconds": 0.00802,
        "bwd_inner_seconds": 0.00012,
        "bwd_allreduce_seconds": 0.0079,
        "step_seconds": 0.00658,
    }
    assert log.values(3) == {
        "skipped_steps": 0,
        "learning_rate": 0.01,
        "samples_per_second": 693.3852139295626,
        "memory_allocated_bytes": 0.33 * 2**30,
        "max_memory_allocated_bytes": 0.33 * 2**30,
        "fwd_seconds": 0.00035,
        "bwd_seconds": 0.00912,
        "bwd_inner_seconds": 0.00011,
        "bwd_allreduce_seconds": 0.009,
        "step_seconds": 0.00177,
    }


def test_a_timer_of_micro_steps_names_no_step() -> None:
    log = read_log(READER, RECORDED / "micro_steps.txt")
    assert [(step, duration) for _, step, duration in log.steps()] == [(49, 1_514_500_000)]
    assert log.values(49)["samples_per_second"] == 83.73838805358588


def test_the_throughput_timer_names_the_step_it_is_for() -> None:
    log = read_log(READER, RECORDED / "timers.txt")
    assert [(step, duration) for _, step, duration in log.steps()] == [(34, 3_768 * MS)]
    assert log.values(33)["backward_allreduce_seconds"] == 0.1626
    assert log.values(34) == {"skipped_steps": 0, "learning_rate": 2.1731931451279077e-06}
    assert log.runs[0].configuration == {
        "gradient_accumulation_steps": 1,
        "gradient_predivide_factor": 1.0,
        "mics_hierarchial_params_gather": False,
    }


def test_groups_of_unequal_rates_are_distinguished(tmp_path: Path) -> None:
    log = read_text(READER, tmp_path, report(10, 0, "0.1, 0.2"))
    assert log.values(9) == {"skipped_steps": 0, "learning_rate_0": 0.1, "learning_rate_1": 0.2}


def test_a_clock_that_is_put_back_gives_no_duration(tmp_path: Path) -> None:
    assert read_text(READER, tmp_path, report(10, 30) + report(20, 10)).steps() == []


def test_an_engine_that_is_made_anew_begins_another_run(tmp_path: Path) -> None:
    log = read_text(READER, tmp_path, report(0, 0) + report(10, 10) + report(0, 20) + report(10, 40))
    assert [run.ended_ns - run.started_ns for run in log.runs] == [10 * SECOND, 20 * SECOND]  # type: ignore[operator]


def test_a_rate_that_is_no_number_is_skipped(tmp_path: Path) -> None:
    log = read_text(READER, tmp_path, report(10, 0, "0,1e") + report(20, 5))
    assert [skipped.line for skipped in log.report.quoted] == [1]
    assert log.report.quoted[0].reason == "'1e' is no number; expected one such as 1.5 or 1E-05"

"""Studies in Python: the same in the store, in a shared folder and through a server."""

import asyncio
import gc
import math
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tune.conftest import SPACE, Open

from crosswind import tune
from crosswind.data.schema.errors import ConflictError, InvalidInputError, NotFoundError, PausedError


def seconds(trial: tune.Trial) -> float:
    """An objective that is smallest, 1, at 32 and 4."""
    return 1 + abs(trial["batch"] - 32) + abs(trial["workers"] - 4)  # type: ignore[operator]


def test_three_lines_tune_a_program(open_study: Open) -> None:
    study = open_study("loader", SPACE, objective="seconds")
    study.optimize(seconds, trials=12)
    assert study.best.value == study.trials["value"].min()
    assert study.best.value == 1 + abs(study.best.configuration["batch"] - 32) + abs(  # type: ignore[operator]
        study.best.configuration["workers"] - 4  # type: ignore[operator]
    )
    assert list(study.trials.columns) == [
        "number",
        "trial_id",
        "state",
        "value",
        "batch",
        "workers",
        "run_id",
        "reason",
    ]
    assert list(study.trials["state"]) == ["done"] * 12


def test_a_value_is_the_users_own_where_larger_is_better(open_study: Open) -> None:
    study = open_study("loader", SPACE, objective="throughput", direction="maximise")
    for value in (3.0, np.float32(7.0), 5):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, value)
    assert study.best.value == 7.0
    assert list(study.trials["value"]) == [3.0, 7.0, 5.0]
    assert study.direction == "maximise"


def test_outcomes_are_stored_and_an_objective_may_be_an_expression_of_them(open_study: Open) -> None:
    study = open_study("loader", SPACE, objective="joules / batch")
    trial = study.ask()
    assert trial is not None
    study.tell(trial, {"joules": 128.0, "watts": 300.0})
    best = study.best
    assert best.value == 128.0 / trial["batch"]  # type: ignore[operator]
    assert best.outcomes == {"joules": 128.0, "watts": 300.0}


def test_trials_end_without_a_value_for_a_reason(open_study: Open) -> None:
    study = open_study("loader", SPACE)
    for state in ("failed", "infeasible", "pruned"):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, state=state, reason=f"it {state}")
    assert list(study.trials["state"]) == ["failed", "infeasible", "pruned"]
    assert list(study.trials["reason"]) == ["it failed", "it infeasible", "it pruned"]
    with pytest.raises(NotFoundError, match="no trial with a value yet"):
        _ = study.best


def test_the_budget_ends_a_loop_and_asking(open_study: Open) -> None:
    study = open_study("loader", SPACE, trials=5)
    study.optimize(seconds, parallel=2)
    assert len(study.trials) == 5
    assert study.ask() is None


def test_parallel_trials_are_other_ones_and_none_is_lost(open_study: Open) -> None:
    study = open_study("loader", SPACE)
    barrier = threading.Barrier(2)

    def together(trial: tune.Trial) -> float:
        barrier.wait(20)
        return seconds(trial)

    study.optimize(together, trials=8, parallel=2)
    rows = study.trials
    assert list(rows["state"]) == ["done"] * 8
    assert len(rows[["batch", "workers"]].drop_duplicates()) == 8


def test_coroutines_run_beside_each_other(open_study: Open) -> None:
    study = open_study("loader", SPACE)
    running, most = 0, 0

    async def objective(trial: tune.Trial) -> float:
        nonlocal running, most
        running += 1
        most = max(most, running)
        while most < 3:
            await asyncio.sleep(0.01)
        running -= 1
        return seconds(trial)

    asyncio.run(study.optimize_async(objective, trials=6, parallel=3))
    assert most == 3
    assert list(study.trials["state"]) == ["done"] * 6


@pytest.mark.parametrize("parallel", [1, 2])
def test_an_exception_fails_its_trial_and_is_raised_unless_it_may_be_passed_over(
    open_study: Open, parallel: int
) -> None:
    study = open_study("loader", SPACE)

    def broken(trial: tune.Trial) -> float:
        raise MemoryError(f"no room for {trial['batch']}")

    study.optimize(broken, trials=3, parallel=parallel, catch=(MemoryError,))
    assert list(study.trials["state"]) == ["failed"] * 3
    assert study.trials["reason"][0] == f"MemoryError: no room for {study.trials['batch'][0]}"
    with pytest.raises(MemoryError, match="no room"):
        study.optimize(broken, trials=30, parallel=parallel)
    assert 4 <= len(study.trials) <= 3 + parallel


def test_what_an_objective_raises_may_be_a_verdict(open_study: Open) -> None:
    study = open_study("loader", SPACE)

    def judging(trial: tune.Trial) -> float:
        raise tune.TrialPruned if trial["batch"] == 8 else tune.TrialInfeasible("too large")

    study.optimize(judging, trials=20)
    rows = study.trials
    assert set(rows.loc[rows["batch"] == 8, "state"]) == {"pruned"}
    assert set(rows.loc[rows["batch"] > 8, "state"]) == {"infeasible"}
    assert set(rows.loc[rows["batch"] > 8, "reason"]) == {"too large"}


def test_nan_fails_a_trial_and_no_number_at_all_ends_the_loop(open_study: Open) -> None:
    study = open_study("loader", SPACE)
    study.optimize(lambda trial: math.nan, trials=2)
    assert list(study.trials["state"]) == ["failed"] * 2
    assert study.trials["reason"][0] == "value is nan, expected a finite number"
    with pytest.raises(InvalidInputError, match="the objective returned None, expected a number or a mapping"):
        study.optimize(lambda trial: None, trials=5)  # type: ignore[arg-type,return-value]
    assert len(study.trials) == 3


@pytest.mark.parametrize("parallel", [1, 2])
def test_ctrl_c_gives_the_trial_back(open_study: Open, parallel: int) -> None:
    study = open_study("loader", SPACE)

    def interrupted(trial: tune.Trial) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study.optimize(interrupted, trials=5, parallel=parallel)
    rows = study.trials
    assert set(rows["state"]) == {"released"}
    trial = study.ask()
    assert trial is not None
    assert trial.trial_id in set(rows["trial_id"])


def test_closing_gives_back_what_was_not_told(open_study: Open) -> None:
    study = open_study("loader", SPACE)
    trial = study.ask()
    study.close()
    again = open_study("loader")
    assert list(again.trials["state"]) == ["released"]
    del trial
    gc.collect()


def test_a_configuration_of_ones_own_comes_first_and_a_budget_grows(open_study: Open) -> None:
    study = open_study("loader", SPACE, trials=1)
    study.enqueue({"batch": 64, "workers": 8})
    study.optimize(seconds)
    assert study.best.configuration == {"batch": 64, "workers": 8}
    with pytest.raises(ConflictError):
        study.enqueue({"batch": 8, "workers": 0})
    study.extend(trials=2)
    with pytest.raises(InvalidInputError, match="batch"):
        study.enqueue({"batch": 9, "workers": 0})
    study.optimize(seconds)
    assert list(study.trials["state"]) == ["done"] * 3
    with pytest.raises(InvalidInputError):
        study.extend(hours=1)


def test_a_value_that_cannot_be_judged_is_refused_with_what_is_missing(open_study: Open) -> None:
    study = open_study("loader", SPACE, objective=["seconds", "maximise accuracy"])
    trial = study.ask()
    assert trial is not None
    with pytest.raises(
        InvalidInputError, match=r"value is 1\.0, expected a mapping of the outcomes that give seconds, "
    ):
        study.tell(trial, 1.0)
    with pytest.raises(
        InvalidInputError, match=r"objective seconds is not among .* \(joules\): expected it in the mapping"
    ):
        study.tell(trial, {"joules": 1.0})
    study.tell(trial, {"seconds": 1.0, "accuracy": 0.9})
    assert study.front[0].outcomes["accuracy"] == 0.9


def test_a_closed_study_hands_out_nothing(open_study: Open) -> None:
    study = open_study("loader", SPACE)
    study.close()
    with pytest.raises(InvalidInputError, match="study 'loader' is closed, expected an open one"):
        study.ask()
    assert len(open_study("loader").trials) == 0


def test_a_lease_is_renewed_while_a_trial_runs_and_lost_without(open_study: Open) -> None:
    study = open_study("loader", SPACE, lease=0.4)
    trial = study.ask()
    assert trial is not None
    time.sleep(1.0)
    other = open_study("loader").ask()
    assert other is not None
    assert other.trial_id != trial.trial_id
    study.tell(trial, 1.0)


def test_the_end_of_a_trial_that_somebody_else_has_is_refused(open_study: Open) -> None:
    study = open_study("loader", SPACE, lease=0.2)
    trial = study.ask()
    assert trial is not None
    study._beats.let_go(trial)
    time.sleep(0.3)
    other = open_study("loader").ask()
    assert other is not None
    assert other.trial_id == trial.trial_id
    open_study("loader").tell(other, 1.0)
    with pytest.raises(ConflictError, match=r"done with objective 1\.0, expected that again, not 2\.0"):
        study.tell(trial, 2.0)


def test_a_name_stands_for_one_search(open_study: Open) -> None:
    open_study("loader", SPACE, objective="seconds")
    assert open_study("loader", SPACE).space == open_study("loader").space
    with pytest.raises(ConflictError, match=r"is there with another space: batch is .*values.* there, and .* here"):
        open_study("loader", {**SPACE, "batch": [8, 16]})
    with pytest.raises(ConflictError, match="is there with objective 'seconds', expected that, not 'joules'"):
        open_study("loader", SPACE, objective="joules")
    with pytest.raises(ConflictError, match="is there with direction 'minimise', expected that, not 'maximise'"):
        open_study("loader", SPACE, direction="maximise")
    with pytest.raises(InvalidInputError, match="direction is 'up', expected minimise or maximise"):
        open_study("loader", direction="up")
    with pytest.raises(ConflictError, match="is taken"):
        open_study("loader", SPACE, load_if_exists=False)


@pytest.mark.parametrize(
    "place",
    ["server", *(pytest.param(place, marks=pytest.mark.thorough) for place in ("home", "folder"))],
    indirect=True,
)
def test_job_scripts_work_on_the_same_study_at_the_same_time(open_study: Open, place: dict[str, Any]) -> None:
    study = open_study("loader", SPACE, objective="seconds", trials=10)
    [(kind, address)] = place.items()
    where = [] if kind == "home" else [f"--{kind}", str(address)]
    program = "print('seconds=' + str(1 + abs({batch} - 32) + abs({workers} - 4)))"
    command = [sys.executable, "-m", "crosswind.cli.main", "tune", "exec", "loader", *where, "--trials", "3"]
    command += ["--no-ingest", "--believe", "--no-agent", "--objective-pattern", r"seconds=(\S+)"]
    environment = None if kind != "home" else {**os.environ, "CROSSWIND_HOME": str(address)}
    with subprocess.Popen([*command, "--", sys.executable, "-c", program], env=environment) as script:
        while len(study.trials) == 0:
            time.sleep(0.05)
        study.optimize(seconds, trials=5)
        assert script.wait(60) == 0
    rows = study.trials
    assert list(rows["state"]) == ["done"] * 8
    assert len(rows[["batch", "workers"]].drop_duplicates()) == 8
    assert (rows["value"] == 1 + (rows["batch"] - 32).abs() + (rows["workers"] - 4).abs()).all()


def test_wrong_words_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="server is 'http://a', expected none beside folder"):
        tune.study("s", SPACE, server="http://a", folder=tmp_path)
    with pytest.raises(InvalidInputError, match="there is no field 'objektive'"):
        tune.study("s", SPACE, objektive="loss")
    with tune.study("s", SPACE) as study:
        trial = study.ask()
        assert trial is not None
        with pytest.raises(InvalidInputError, match="value is None and state is None, expected one of them"):
            study.tell(trial)
        with pytest.raises(InvalidInputError, match="state is 'broken', expected failed or infeasible or pruned"):
            study.tell(trial, state="broken")
        with pytest.raises(InvalidInputError, match="value is 'fast', expected a finite number"):
            study.tell(trial, "fast")  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError, match="trials is 0, expected 1 or more"):
            study.optimize(seconds, trials=0)
        with pytest.raises(InvalidInputError, match="parallel is 0, expected 1 or more"):
            study.optimize(seconds, trials=1, parallel=0)
        with pytest.raises(InvalidInputError, match="has no budget: expected trials=N or timeout=SECONDS"):
            study.optimize(seconds)
        study.tell(trial, 1.0)


def test_a_timeout_ends_a_loop(tmp_path: Path) -> None:
    with tune.study("s", SPACE) as study:
        study.optimize(lambda trial: time.sleep(0.1) or 1.0, timeout=0.3)
        assert 1 <= len(study.trials) <= 4


def test_a_loop_waits_while_its_study_is_paused_and_ends_once_it_is_stopped(open_study: Open) -> None:
    study, begun = open_study("loader", SPACE, objective="seconds", trials=20), threading.Event()

    def objective(trial: tune.Trial) -> float:
        begun.set()
        time.sleep(0.02)
        return seconds(trial)

    study.pause()
    with pytest.raises(PausedError, match="'loader' is paused"):
        study.ask()
    loop = threading.Thread(target=study.optimize, args=(objective,), kwargs={"parallel": 2})
    loop.start()
    assert not begun.wait(0.3)
    study.resume()
    assert begun.wait(30)
    study.stop()
    loop.join(30)
    assert not loop.is_alive()
    assert study.ask() is None
    assert set(study.trials["state"]) == {"done"}
    assert 0 < len(study.trials) < 20


def test_a_pause_outlasts_no_timeout(tmp_path: Path) -> None:
    with tune.study("loader", SPACE, objective="seconds", folder=tmp_path) as study:
        study.pause()
        study.optimize(seconds, timeout=0.3)
        assert study.trials.empty


def test_the_import_waits_until_tune_is_named() -> None:
    code = (
        "import sys, crosswind as c; print(*('crosswind.tune' in sys.modules, c.tune.study and 'numpy' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]

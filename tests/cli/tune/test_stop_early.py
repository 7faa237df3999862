"""A trial whose recorded steps are surely slower than the best one's is stopped; others run to their end."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TRAIN = """
import sys, time
import crosswind

with crosswind.run(workload="made-up") as run:
    for _ in run.steps(range(int(sys.argv[1]))):
        time.sleep(float(sys.argv[2]))
"""
SPACE = {"pace": {"kind": "ordinal", "values": [1, 2, 3]}}
Done = "subprocess.CompletedProcess[str]"
Tune = Callable[..., Done]


@pytest.fixture
def tune(tmp_path: Path) -> Tune:
    """Runs `crosswind tune` on studies in a folder."""
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "space.json").write_text(json.dumps(SPACE))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CROSSWIND_", "SLURM_"))}
    here = {"CROSSWIND_HOME": str(tmp_path / "home"), "CROSSWIND_TUNE_FOLDER": str(tmp_path / "studies")}

    def run(*words: str) -> Done:
        command = [sys.executable, "-m", "crosswind.cli.main", "tune", *words]
        there = {"cwd": tmp_path, "env": kept | here}
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **there)

    return run


def evaluate(tune: Tune, *, steps: int, seconds: float) -> Done:
    quiet = ("--no-agent", "--no-inject", "--no-ingest", "--stop-early")
    return tune("exec", "study", *quiet, "--", sys.executable, "train.py", str(steps), str(seconds))


@pytest.mark.thorough
def test_a_trial_that_is_surely_worse_is_stopped_and_pruned(tune: Tune) -> None:
    assert tune("create", "study", "space.json").returncode == 0
    first = evaluate(tune, steps=20, seconds=0.02)
    assert first.returncode == 0, first.stderr
    second = evaluate(tune, steps=400, seconds=0.2)
    assert second.returncode == 3, second.stderr
    assert "pruned: stopped after " in second.stderr
    assert "the chance to beat the best trial is" in second.stderr
    third = evaluate(tune, steps=20, seconds=0.01)
    assert third.returncode == 0, third.stderr
    trials = json.loads(tune("status", "study", "--json").stdout)["trials"]
    assert [record["trial"]["state"] for record in trials] == ["done", "pruned", "done"]


def test_an_objective_that_steps_do_not_tell_is_refused_and_the_trial_given_back(tune: Tune) -> None:
    assert tune("create", "study", "space.json", "--objective", "energy_joules").returncode == 0
    done = evaluate(tune, steps=3, seconds=0.01)
    assert done.returncode == 2
    assert "--stop-early: step times do not tell this study's objective" in done.stderr
    [trial] = json.loads(tune("status", "study", "--json").stdout)["trials"]
    assert trial["trial"]["state"] == "released"

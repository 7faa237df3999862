"""Intermediate values of trials, from Python and from scripts."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tests.tune.conftest import SPACE, Open

from crosswind import tune
from crosswind.cli.main import main
from crosswind.data.schema.errors import InvalidInputError


def accuracy(trial: tune.Trial) -> float:
    """A training of nine epochs that stops when it should; it ends at the batch, in percent."""
    for epoch in range(1, 10):
        trial.report(trial["batch"] * epoch / 900, epoch)  # type: ignore[operator]
        if trial.should_stop():
            raise tune.TrialPruned
    return trial["batch"] / 100  # type: ignore[operator]


def test_trials_behind_the_others_stop_early(open_study: Open) -> None:
    study = open_study("net", SPACE, objective="accuracy", direction="maximise", stop_early="asha")
    study.optimize(accuracy, trials=12)
    rows, reports = study.trials, study.reports
    assert set(rows["state"]) == {"done", "pruned"}
    assert study.best.value == rows["batch"].max() / 100
    assert len(reports) < 12 * 9
    first = reports[reports["trial_id"] == rows["trial_id"][0]]
    assert list(first["step"]) == list(range(1, 10))
    assert first["value"].iloc[-1] == pytest.approx(rows["value"][0])
    assert "is not among the best third of" in rows.loc[rows["state"] == "pruned", "reason"].iloc[0]


def test_reports_that_nobody_asked_about_come_with_the_result(open_study: Open) -> None:
    study = open_study("net", SPACE)
    trial = study.ask()
    assert trial is not None
    trial.report(0.5, 0)
    trial.report(value=0.25, step=1)
    trial.report(0.125, 1)
    assert len(study.reports) == 0
    study.tell(trial, 0.125)
    assert study.reports[["step", "value"]].to_numpy().tolist() == [[0, 0.5], [1, 0.125]]


def test_nan_and_a_lost_lease_are_reasons_to_stop(open_study: Open) -> None:
    study = open_study("net", SPACE)
    trial, other = study.ask(), study.ask()
    assert trial is not None
    assert other is not None
    trial.report(math.nan, 3)
    assert trial.should_prune()
    assert trial.why_stop == "at step 3 its value is nan"
    study.release(other)
    other.report(1.0, 0)
    assert other.should_stop()
    assert "expected leased" in other.why_stop
    with pytest.raises(InvalidInputError, match="step is -1, expected a whole number from 0"):
        trial.report(1.0, -1)
    study.tell(trial, state="pruned")


def test_a_rule_is_refused_by_name_when_it_is_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="stop_early is 'mean', expected median, asha, hyperband, none"):
        tune.study("net", SPACE, stop_early="mean")


def test_a_script_reports_and_hears_when_to_stop(
    open_study: Open, place: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [(kind, address)] = place.items()
    if kind == "home":
        monkeypatch.setenv("CROSSWIND_HOME", str(address))
    where = [] if kind == "home" else [f"--{kind}", str(address)]
    study = open_study("net", SPACE, direction="maximise", stop_early="asha")

    def script(trial: tune.Trial, *words: str) -> int:
        return main(["tune", "report", "net", trial.trial_id, *words, *where])

    good, bad = study.ask(), study.ask()
    assert good is not None
    assert bad is not None
    assert script(good, "--step", "1", "0.9") == 0
    assert script(bad, "--step", "1", "0.7") == 3
    assert "its value, 0.7, is not among the best third of 2 trials" in capsys.readouterr().err
    assert script(bad, "--step", "2", "0.95", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"stop": False, "reason": None}
    assert script(good, "--step", "2", "nan") == 3
    assert script(good, "--step", "-1", "0.5") == 2
    assert "--step is -1, expected 0 or more" in capsys.readouterr().err
    assert script(good, "--step", "3", "0.5", "--owner", "mallory") not in (0, 3)
    assert list(study.reports["value"]) == [0.9, 0.7, 0.95]

"""Answers of a study in a shared folder about itself: from a study file to its best configuration."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from crosswind.cli.main import main

STUDY = """
name: ddp
objective: {objective}
direction: {direction}
unit: s
budget: {{trials: 9}}
parameters:
  threads: {{kind: ordinal, values: [1, 2, 4]}}
  batch: {{kind: ordinal, values: [8, 16, 32]}}
constraints: ["threads * batch <= 64"]
"""
Tune = Callable[..., str]


@pytest.fixture
def tune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tune:
    """Runs one action on studies in a folder; what it printed."""
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CROSSWIND_TUNE_FOLDER", str(tmp_path / "studies"))

    def run(*words: str, code: int = 0) -> str:
        assert main(["tune", *words]) == code
        return capsys.readouterr().out

    return run


def searched(tune: Tune, folder: Path, *, trials: int, direction: str = "minimise") -> None:
    """A study of so many finished trials: more threads and larger batches take longer."""
    path = folder / "ddp.yaml"
    path.write_text(STUDY.format(objective="step_p50_seconds", direction=direction))
    tune("create", str(path))
    for _ in range(trials):
        [suggestion] = json.loads(tune("next", "ddp", "--json"))
        configuration = suggestion["configuration"]
        assert configuration["threads"] * configuration["batch"] <= 64
        tune("tell", "ddp", suggestion["trial_id"], str(configuration["threads"] + configuration["batch"] / 100))


def test_the_best_configuration_is_told_with_how_sure_that_is(tune: Tune, tmp_path: Path) -> None:
    searched(tune, tmp_path, trials=8)
    said = tune("best", "ddp")
    assert said.startswith("step_p50_seconds 1.08 s (trial ")
    assert "threads = 1\nbatch = 8\n" in said
    assert "without noise, and is the best of those measured with probability " in said
    answer = json.loads(tune("best", "ddp", "--json"))["answer"]
    assert answer["configuration"] == {"threads": 1, "batch": 8}
    assert answer["low"] < answer["objective"] < answer["high"]
    assert yaml.safe_load(tune("best", "ddp", "--format", "yaml")) == {"threads": 1, "batch": 8}
    assert "export CROSSWIND_PARAM_BATCH=8\n" in tune("best", "ddp", "--format", "env")


def test_of_what_is_made_larger_the_largest_is_best(tune: Tune, tmp_path: Path) -> None:
    searched(tune, tmp_path, trials=8, direction="maximise")
    best = json.loads(tune("best", "ddp", "--json"))
    assert (best["configuration"], best["objective"]) == ({"threads": 4, "batch": 16}, 4.16)
    assert best["answer"]["low"] < 4.16 < best["answer"]["high"]


def test_few_trials_tell_no_interval_and_none_tell_nothing(tune: Tune, tmp_path: Path) -> None:
    searched(tune, tmp_path, trials=0)
    tune("best", "ddp", code=2)
    searched_once = json.loads(tune("next", "ddp", "--json"))[0]["trial_id"]
    tune("tell", "ddp", searched_once, "2.5")
    assert "how sure that is can be estimated from 5 finished trials on" in tune("best", "ddp")
    assert json.loads(tune("best", "ddp", "--json"))["answer"] is None


def test_a_budget_ends_a_study_and_export_has_every_trial(tune: Tune, tmp_path: Path) -> None:
    searched(tune, tmp_path, trials=8)
    tune("next", "ddp", code=4)  # nine combinations, of which one is too large
    rows = list(csv.DictReader(io.StringIO(tune("export", "ddp"))))
    assert len(rows) == 8
    assert {row["state"] for row in rows} == {"done"}
    assert min(float(row["step_p50_seconds"]) for row in rows) == 1.08
    assert "8 of 8 trials done, of a budget of 9; best 1.08 s: threads=1 batch=8" in tune("status", "ddp")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("constraints: [threads > 9]", "threads > 9"),
        ("parameters: {a: {kind: int, low: 9, high: 1}}", "low is 9"),
        ("budjet: 3", "budjet"),
        ("direction: sideways", "sideways"),
    ],
)
def test_a_study_file_that_cannot_be_is_refused_by_field(
    tune: Tune, tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, message: str
) -> None:
    path = tmp_path / "bad.yaml"
    field = line.partition(":")[0]
    text = STUDY.format(objective="step_p50_seconds", direction="minimise")
    kept = yaml.safe_load(text) | yaml.safe_load(line)
    path.write_text(yaml.safe_dump(kept))
    assert main(["tune", "create", str(path)]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "bad.yaml" in said or field in said
    assert not (tmp_path / "studies").exists() or not any((tmp_path / "studies").iterdir())


def told_with_power(tune: Tune, folder: Path, more: str) -> None:
    """Nine finished trials: more threads take less time and more power."""
    path = folder / "ddp.yaml"
    path.write_text(STUDY.format(objective="step_p50_seconds", direction="minimise") + more)
    tune("create", str(path))
    for _ in range(8):
        [suggestion] = json.loads(tune("next", "ddp", "--json"))
        threads = suggestion["configuration"]["threads"]
        seconds, power = 1 / threads + suggestion["configuration"]["batch"] / 100, 100 * threads
        tune("tell", "ddp", suggestion["trial_id"], str(seconds), "--outcome", f"power_watts={power}")


def test_the_best_within_a_limit_is_told_with_what_exceeds_it(tune: Tune, tmp_path: Path) -> None:
    told_with_power(tune, tmp_path, 'limits: ["power_watts <= 250"]\n')
    said = tune("best", "ddp")
    assert "threads = 2\nbatch = 8\n" in said
    assert "2 finished trials exceed a limit: none of them is the best" in said
    answer = json.loads(tune("best", "ddp", "--json"))["answer"]
    assert answer["configuration"]["threads"] < 4
    assert json.loads(tune("status", "ddp", "--json"))["outside"] == 2


def test_of_several_objectives_all_that_no_other_beats_are_told(tune: Tune, tmp_path: Path) -> None:
    path = tmp_path / "ddp.yaml"
    study = STUDY.format(objective="[step_p50_seconds, power_watts]", direction="minimise")
    path.write_text("\n".join(line for line in study.splitlines() if not line.startswith("direction")))
    tune("create", str(path))
    for _ in range(8):
        [suggestion] = json.loads(tune("next", "ddp", "--json"))
        threads = suggestion["configuration"]["threads"]
        seconds = 1 / threads + suggestion["configuration"]["batch"] / 100
        tune("tell", "ddp", suggestion["trial_id"], str(seconds), "--outcome", f"power_watts={100 * threads}")
    said = tune("best", "ddp")
    assert "of these no other is better in every objective:" in said
    assert len(json.loads(tune("status", "ddp", "--json"))["front"]) == 3  # the smallest batch of every thread count


def test_a_study_that_is_not_here_is_looked_for_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    assert main(["tune", "status", "nosuch"]) == 2
    where = f"the catalog of {tmp_path / 'home'}; --server URL and --folder DIR ask elsewhere"
    assert capsys.readouterr().err == f"crosswind: study 'nosuch' is not in {where}\n"

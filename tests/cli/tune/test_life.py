"""Studies as a whole on the command line, in a shared folder and in the local store: from list to delete."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from crosswind.cli.main import main

STUDY = """
name: ddp
objective: samples_per_second
direction: maximise
unit: 1/s
budget: {trials: 4}
start: {threads: 2, batch: 8}
parameters:
  threads: {kind: ordinal, values: [1, 2, 4]}
  batch: {kind: int, low: 8, high: 16}
  algo: {kind: categorical, values: [ring, "4"], when: "threads > 2"}
constraints: ["threads * batch <= 60"]
"""
Tune = Callable[..., str]


@pytest.fixture(params=["store", pytest.param("folder", marks=pytest.mark.thorough)])
def tune(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Tune:
    """Runs one action; what it printed, or complained where it failed."""
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    if request.param == "folder":
        monkeypatch.setenv("CROSSWIND_TUNE_FOLDER", str(tmp_path / "studies"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ddp.yaml").write_text(STUDY)

    def run(*words: str, code: int | None = 0) -> str:
        ended = main(["tune", *words])
        assert code is None or ended == code
        said = capsys.readouterr()
        return said.err if code else said.out

    return run


def next_of(tune: Tune) -> tuple[str, dict[str, object]]:
    [suggestion] = json.loads(tune("next", "ddp", "--json"))
    return suggestion["trial_id"], suggestion["configuration"]


def test_a_study_is_listed_and_shown_in_its_own_direction(tune: Tune) -> None:
    assert "there is no study in the " in tune("list")
    tune("create", "ddp.yaml")
    trial_id, configuration = next_of(tune)
    assert configuration == {"threads": 2, "batch": 8}
    tune("tell", "ddp", trial_id, "24")
    listed = tune("list")
    assert "maximise samples_per_second" in listed
    assert "1 done" in listed
    assert "1 of 4 trials" in listed
    assert "24 1/s" in listed
    assert "threads=2 batch=8" in listed
    [study] = json.loads(tune("list", "--json"))["studies"]
    assert (study["name"], study["trials"]["done"], study["best_objective"]) == ("ddp", 1, 24)
    shown = tune("show", "ddp")
    assert "constraint: threads * batch <= 60" in shown
    assert "ring 4" in shown
    assert "threads > 2" in shown
    assert "best: 24 1/s: threads=2 batch=8" in shown
    assert json.loads(tune("show", "ddp", "--json"))["records"][0]["trial"]["trial_id"] == trial_id


@pytest.mark.parametrize(
    "words",
    [("show", "x\udcff"), ("tell", "ddp", "t\udcff", "1"), ("rename", "ddp", "\udcff"), ("enqueue", "ddp", "x=\udcff")],
)
def test_bytes_that_are_no_text_are_refused(tune: Tune, words: tuple[str, ...]) -> None:
    tune("create", "ddp.yaml")
    assert "udcff', expected UTF-8" in tune(*words, code=2)


def test_a_configuration_is_enqueued_by_words_and_by_file(tune: Tune, tmp_path: Path) -> None:
    tune("create", "ddp.yaml")
    next_of(tune)
    (tmp_path / "mine.toml").write_text("threads = 1\nbatch = 9\n")
    tune("enqueue", "ddp", "threads=4", "batch=8", "algo=4", "--config", "mine.toml")
    assert next_of(tune)[1] == {"threads": 1, "batch": 9}
    assert next_of(tune)[1] == {"threads": 4, "batch": 8, "algo": "4"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("threads=1",), "parameter batch is missing"),
        (("threads=1", "batch=9", "batch=10"), "batch stands twice"),
        (("threads=1", "batch"), "'batch': expected NAME=VALUE"),
        (("threads=1", "batch=many"), "parameter batch is 'many', expected a whole number"),
        (("threads=1", "batch=9", "algo=ring"), "applies only when threads > 2"),
        (("threads=4", "batch=16", "algo=ring"), "does not meet 'threads * batch <= 60'"),
        (("threads=1", "batch=9", "x=1"), "parameter x is unknown"),
        ((), "expected NAME=VALUE ... or --config FILE"),
        (("--config", "none.toml"), "none.toml"),
    ],
)
def test_what_cannot_be_tried_is_not_enqueued(tune: Tune, words: tuple[str, ...], message: str) -> None:
    tune("create", "ddp.yaml")
    assert message in tune("enqueue", "ddp", *words, code=75 if "none.toml" in words else 2)
    assert len(json.loads(tune("status", "ddp", "--json"))["trials"]) == 1


def test_a_failed_trial_is_retried_and_a_budget_extended(tune: Tune) -> None:
    tune("create", "ddp.yaml", "--trials", "1")
    trial_id, configuration = next_of(tune)
    tune("tell", "ddp", trial_id, "--failed", "disk full")
    tune("next", "ddp", code=4)
    assert "budget of 1 trials, of which 0 are left, expected 1: extend it first" in tune(
        "retry", "ddp", trial_id, code=2
    )
    assert "1 of 2 trials" in tune("extend", "ddp", "--trials", "1")
    assert "waiting" in tune("retry", "ddp", trial_id)
    again, same = next_of(tune)
    assert (again != trial_id, same) == (True, configuration)
    assert "no budget of hours" in tune("extend", "ddp", "--hours", "1", code=2)


def test_an_uncharged_failure_leaves_the_budget_alone(tune: Tune) -> None:
    tune("create", "ddp.yaml", "--trials", "1")
    trial_id, _ = next_of(tune)
    assert "--uncharged" in tune("tell", "ddp", trial_id, "1.0", "--uncharged", code=2)
    tune("tell", "ddp", trial_id, "--failed", "typo", "--uncharged")
    assert "0 of 1 trials" in tune("list")
    next_of(tune)


def test_a_study_is_paused_goes_on_and_is_stopped(tune: Tune) -> None:
    tune("create", "ddp.yaml")
    trial_id, _ = next_of(tune)
    said = tune("pause", "ddp")
    assert said == "study ddp is paused: it hands out no trial until `crosswind tune resume`, 1 trial still running\n"
    assert "is paused: it hands out no trial until somebody resumes it" in tune("next", "ddp", code=75)
    assert "ddp (paused)" in tune("list")
    assert "it is paused" in tune("show", "ddp")
    assert "the study is paused: crosswind tune resume ddp goes on" in tune("status", "ddp")
    tune("tell", "ddp", trial_id, "24")
    assert tune("resume", "ddp") == "study ddp hands out trials\n"
    trial_id, _ = next_of(tune)
    assert json.loads(tune("stop", "ddp", "--json"))["state"] == "stopped"
    said = tune("next", "ddp", code=4)
    assert "it was stopped (1 still running); crosswind tune resume ddp goes on" in said
    tune("tell", "ddp", trial_id, "20")
    assert json.loads(tune("status", "ddp", "--json"))["state"] == "stopped"
    assert "is stopped, expected running" in tune("pause", "ddp", code=2)
    tune("create", "--if-absent", "ddp.yaml")


def test_a_study_is_renamed_and_deleted_when_nothing_runs(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    tune("create", "ddp.yaml")
    trial_id, _ = next_of(tune)
    assert "1 trial is being evaluated" in tune("rename", "ddp", "new", code=2)
    assert "1 trial is being evaluated" in tune("delete", "ddp", "--yes", code=2)
    tune("tell", "ddp", trial_id, "1.0")
    assert "study ddp is now called new" in tune("rename", "ddp", "new")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert "study new has 1 trials, expected --yes to delete them" in tune("delete", "new", code=2)
    assert "is deleted" in tune("delete", "new", "--yes")
    assert "new" in tune("status", "new", code=2)
    tune("create", "ddp.yaml")


def test_on_a_terminal_deleting_is_asked_for(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    tune("create", "ddp.yaml")
    for typed, code in (("no\n", 1), ("y\n", 0)):
        terminal = io.StringIO(typed)
        monkeypatch.setattr(terminal, "isatty", lambda: True)
        monkeypatch.setattr("sys.stdin", terminal)
        tune("delete", "ddp", code=code)
    tune("status", "ddp", code=2)


def test_the_same_study_is_created_once_and_another_of_its_name_refused(tune: Tune, tmp_path: Path) -> None:
    assert "exists" not in tune("create", "--if-absent", "ddp.yaml")
    tune("extend", "ddp", "--trials", "3")
    assert "study ddp exists already" in tune("create", "--if-absent", "ddp.yaml")
    assert "is taken" in tune("create", "ddp.yaml", code=2)
    for old, new, message in (
        ("high: 16", "high: 17", "parameter batch is "),
        ("maximise", "minimise", "direction is "),
        ("<= 60", "<= 61", "constraints is "),
        ("trials: 4", "trials: 40", "budget of trials is 7, not 40"),
        ("batch: 8}", "batch: 9}", "start is "),
        ("unit: 1/s", "unit: GB/s", 'unit is "1/s", not "GB/s"'),
    ):
        (tmp_path / "other.yaml").write_text(STUDY.replace(old, new))
        assert message in tune("create", "--if-absent", "other.yaml", code=2)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ("start: {threads: 2}", "start: configuration 1: parameter batch is missing"),
        ("start: [{threads: 2, batch: 8}, {threads: 2, batch: 8}]", "repeats configuration 1"),
        ("start: fast", "start is 'fast', expected a configuration"),
        ("start: {threads: 4, batch: 8}", "parameter algo is missing, expected one of 'ring', '4' when threads > 2"),
    ],
)
def test_a_start_that_cannot_be_tried_is_refused_by_file(tune: Tune, tmp_path: Path, start: str, message: str) -> None:
    (tmp_path / "bad.yaml").write_text(STUDY.replace("start: {threads: 2, batch: 8}", start))
    complaint = tune("create", "bad.yaml", code=2)
    assert message in complaint
    assert "bad.yaml" in complaint


def test_a_study_that_stops_by_itself_says_why(tune: Tune, tmp_path: Path) -> None:
    (tmp_path / "auto.yaml").write_text(
        "name: auto\nobjective: seconds\nstop: auto\nbudget: {trials: 60}\n"
        "parameters: {x: {kind: int, low: 0, high: 60}}\n"
    )
    tune("create", "auto.yaml")
    for number in range(60):
        said = tune("next", "auto", "--json", code=0 if number < 12 else None)
        suggested = json.loads(said)
        if not suggested:
            break
        [suggestion] = suggested
        noise = 1 + 0.03 * ((number * 7) % 5 - 2) / 2
        seconds = 1 + ((suggestion["configuration"]["x"] - 30) / 30) ** 2
        tune("tell", "auto", suggestion["trial_id"], str(seconds * noise))
    assert 12 <= number < 40
    complaint = tune("next", "auto", code=4)
    assert "the next trial is expected to gain " in complaint
    assert "less than the noise of " in complaint
    status = json.loads(tune("status", "auto", "--json"))
    assert status["enough"] in complaint
    assert "no more trials are begun: the next trial" in tune("status", "auto")
    tune("enqueue", "auto", "x=60")
    [enqueued] = json.loads(tune("next", "auto", "--json"))
    assert enqueued["configuration"] == {"x": 60}

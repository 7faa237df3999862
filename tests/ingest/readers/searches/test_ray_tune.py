"""Ray Tune's experiments. Recorded: ray 2.60.0, ASHA, one error; without pickled objects, hosts and processes."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.trial import History, TrialState
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.formats import reader_for
from crosswind.ingest.readers.searches.ray_tune import RayTuneReader

QUICK = RECORDINGS / "ray_tune/quick"
DONE, PRUNED, FAILED = TrialState.DONE, TrialState.PRUNED, TrialState.FAILED


def read(path: Path) -> tuple[list[History], Report]:
    report = Report(str(path), "ray_tune")
    return list(RayTuneReader().read(path, report, Context("lab"))), report


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(QUICK, tmp_path / "quick"))


def change(folder: Path, edit: Callable[[dict[str, Any], dict[str, Any]], object]) -> None:
    """Change the two parts of every trial in the state of the experiment."""
    [path] = folder.glob("experiment_state-*.json")
    state = json.loads(path.read_text())
    for entry in state["trial_data"]:
        parts = [json.loads(text) for text in entry]
        edit(*parts)
        entry[:] = [json.dumps(part) for part in parts]
    path.write_text(json.dumps(state))


def test_an_experiment_is_a_study_of_the_parameters_that_were_tuned() -> None:
    [history], report = read(QUICK)
    assert (history.study.objective, history.study.unit) == ("-accuracy", "")
    assert set(history.study.space) == {"lr", "model/width", "model/drop", "kernel"}
    assert history.study.space["model/drop"] == {"kind": "ordinal", "values": [0.25, 0.5]}
    assert [trial.state for trial in history.trials] == [DONE, DONE, PRUNED, DONE, PRUNED, FAILED, PRUNED, PRUNED]
    assert [trial.objective for trial in history.trials if trial.state is DONE] == [-0.685977, -0.777311, -0.860426]
    assert history.trials[0].configuration == {
        "lr": 4.555575091584902e-05,
        "model/width": 98,
        "model/drop": 0.25,
        "kernel": "b",
    }
    assert report.notes == [
        "4 trials were stopped early: pruned",
        "accuracy is to be maximised: stored with the sign turned",
        f"study {history.study.name}: 8 trials",
    ]


def test_the_state_file_alone_is_recognised_and_read_alike() -> None:
    [path] = QUICK.glob("experiment_state-*.json")
    assert reader_for(path).name == "ray_tune"
    assert read(path)[0] == read(QUICK)[0]


def test_of_several_states_the_last_counts(copy: Path) -> None:
    (copy / "experiment_state-2026-11-24_00-00-00.json").write_text('{"trial_data": []}')
    assert read(copy)[0] == read(QUICK)[0]


def test_a_trial_that_ended_by_itself_is_complete_however_short_it_was(copy: Path) -> None:
    log = copy / "train_9bbe5_00002/result.json"
    log.write_text(log.read_text().replace('"done": true', '"done": false'))
    [history], _ = read(copy)
    assert (history.trials[2].state, history.trials[2].objective) == (DONE, -0.300552)


def test_a_trial_that_was_stopped_because_it_was_good_is_complete(copy: Path) -> None:
    change(
        copy,
        lambda _, outcome: (
            outcome["last_result"].update(accuracy=0.99)
            if outcome["last_result"].get("training_iteration") == 2
            else None
        ),
    )
    [history], _ = read(copy)
    assert (history.trials[7].state, history.trials[7].objective) == (DONE, -0.99)


def test_trials_that_go_on_are_left_out_and_those_without_a_number_failed(copy: Path) -> None:
    def edit(trial: dict[str, Any], outcome: dict[str, Any]) -> None:
        if trial["trial_id"].endswith("0"):
            trial["status"] = "RUNNING"
        if trial["trial_id"].endswith("1"):
            outcome["last_result"]["accuracy"] = float("nan")

    change(copy, edit)
    [history], report = read(copy)
    assert [trial.state for trial in history.trials[:2]] == [FAILED, PRUNED]
    assert report.notes[:2] == [
        "1 trials have not ended: left out",
        "1 trials ended without a finite objective: failed",
    ]


def test_a_trial_without_a_parameter_that_others_have_is_skipped(copy: Path) -> None:
    change(copy, lambda trial, _: trial["evaluated_params"].pop("lr") if trial["trial_id"].endswith("3") else None)
    [history], report = read(copy)
    assert len(history.trials) == 7
    assert [skipped.reason for skipped in report.quoted] == ["trial 9bbe5_00003: has no value of lr, which others have"]


def test_a_trial_that_is_not_understood_is_skipped(copy: Path) -> None:
    change(copy, lambda trial, _: trial.pop("status") if trial["trial_id"].endswith("3") else None)
    [history], report = read(copy)
    assert len(history.trials) == 7
    assert [skipped.reason for skipped in report.quoted] == [
        "trial 3 of the state is not understood: KeyError('status')"
    ]


def test_without_a_mode_or_a_metric_an_experiment_is_refused(copy: Path) -> None:
    (copy / "tuner.pkl").write_bytes(b"\x80\x05junk")
    with pytest.raises(MalformedError, match=r"no tuner.pkl beside it says whether accuracy is to be small or large"):
        read(copy)
    [path] = copy.glob("experiment_state-*.json")
    path.write_text(path.read_text().replace('"_metric": "accuracy"', '"_metric": null'))
    with pytest.raises(MalformedError, match=r"metric is None; expected a name, as in TuneConfig"):
        read(copy)


def test_a_pickle_is_never_loaded(copy: Path) -> None:
    (copy / "tuner.pkl").write_bytes(b"cos\nsystem\n(S'touch " + str(copy / "loaded").encode() + b"'\ntR.")
    with pytest.raises(MalformedError, match=r"tuner\.pkl"):
        read(copy)
    assert not (copy / "loaded").exists()

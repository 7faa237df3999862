"""Studies in other tuners' formats, read back by our readers; tests/samplers asks the tuners themselves."""

import json
from pathlib import Path

import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration, History, Study, Trial, TrialRecord, TrialState
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.formats import reader_for
from crosswind.models.tuner.exports.optuna_journal import journal_of
from crosswind.models.tuner.exports.ray_points import points_of
from crosswind.models.tuner.exports.t4 import results_of

SPACE = {
    "batch": {"kind": "int", "low": 1, "high": 64, "log": True},
    "lr": {"kind": "float", "low": 1e-5, "high": 0.1, "log": True},
    "layers": {"kind": "int", "low": 2, "high": 6, "log": False, "step": 2},
    "drop": {"kind": "ordinal", "values": [0.0, 0.1, 0.2, 0.3]},
    "bucket": {"kind": "ordinal", "values": [1, 5, 25]},
    "mode": {"kind": "categorical", "values": ["fast", "slow", 3]},
    "pin": {"kind": "boolean"},
}
FIRST: Configuration = {"batch": 8, "lr": 0.01, "layers": 4, "drop": 0.3, "bucket": 25, "mode": "slow", "pin": True}
ENDS = [
    (TrialState.DONE, 0.5),
    (TrialState.DONE, 0.25),
    (TrialState.PRUNED, None),
    (TrialState.FAILED, None),
    (TrialState.INFEASIBLE, None),
    (TrialState.LEASED, None),
    (TrialState.WAITING, None),
]


def study(**fields: object) -> Study:
    return Study("s1", "ddp", SPACE, "loss", "", 0, 10**18, **fields)  # type: ignore[arg-type]


def records(sign: int = 1) -> list[TrialRecord]:
    return [
        TrialRecord(
            Trial(
                {**FIRST, "batch": 2**place, "mode": ["fast", "slow", 3][place % 3]},
                state,
                value and sign * value,
                f"t{place}",
            ),
            "s1",
            reason="no room" if state is TrialState.FAILED else None,
        )
        for place, (state, value) in enumerate(ENDS)
    ]


def read(text: str, name: str, tmp_path: Path) -> History:
    path = tmp_path / name
    path.write_text(text)
    reader = reader_for(path)
    report = Report(name, reader.name)
    [history] = reader.read(path, report, Context("lab"))
    assert isinstance(history, History)
    assert report.skipped == 0
    return history


@pytest.mark.parametrize("direction", [None, "maximise"])
@pytest.mark.parametrize(("write", "name"), [(journal_of, "ddp.log"), (results_of, "ddp.json")])
def test_what_is_exported_is_imported_as_it_was(
    write: object, name: str, direction: str | None, tmp_path: Path
) -> None:
    ours = study(direction=direction)
    kept = records(-1 if direction else 1)
    history = read(write(ours, kept), name, tmp_path)  # type: ignore[operator]
    ended = [record.trial for record in kept[:5]]
    assert [(trial.configuration, trial.state, trial.objective) for trial in history.trials] == [
        (trial.configuration, trial.state, trial.objective) for trial in ended
    ]
    assert history.study.objective == ("-loss" if direction else "loss")
    assert history.study.name.startswith("ddp-")


def test_the_space_of_a_journal_is_the_study_s_but_for_lists_without_a_step(tmp_path: Path) -> None:
    space = read(journal_of(study(), records()), "ddp.log", tmp_path).study.space
    assert space == {**SPACE, "bucket": {"kind": "categorical", "values": [1, 5, 25]}}


def test_open_trials_are_running_or_enqueued() -> None:
    operations = [json.loads(line) for line in journal_of(study(), records()).splitlines()]
    running, waiting = operations[-2:]
    assert (running["state"], running["params"]["batch"]) == (0, 32.0)
    assert (waiting["state"], waiting["params"], waiting["system_attrs"]["fixed_params"]["batch"]) == (4, {}, 64)
    assert "datetime_complete" not in running


def test_an_imported_study_that_was_maximised_is_exported_as_such(tmp_path: Path) -> None:
    history = read(results_of(study(direction="maximise"), records(-1)), "ddp.json", tmp_path)
    again = [TrialRecord(trial, history.study.study_id) for trial in history.trials]
    points = json.loads(points_of(history.study, again))
    assert (points["metric"], points["mode"], points["evaluated_rewards"]) == ("loss", "max", [0.5, 0.25])
    assert points["points_to_evaluate"][0] == {**FIRST, "batch": 1, "mode": "fast"}
    create = json.loads(journal_of(history.study, again).splitlines()[0])
    assert create["directions"] == [2]


def test_several_objectives_go_to_optuna_alone() -> None:
    ours = study(objectives=("minimise loss", "maximise samples / seconds"))
    [done, *_] = records()
    both = TrialRecord(done.trial, "s1", outcomes={"samples": 6.0, "seconds": 2.0})
    operations = [json.loads(line) for line in journal_of(ours, [both, done]).splitlines()]
    assert operations[0]["directions"] == [1, 2]
    assert operations[1]["system_attr"]["study:metric_names"] == ["loss", "samples / seconds"]
    assert (operations[2]["state"], operations[2]["values"]) == (1, [0.5, 3.0])
    assert (operations[3]["state"], operations[3]["values"]) == (3, None)  # an outcome is missing
    for write, name in ((results_of, "t4"), (points_of, "ray")):
        with pytest.raises(InvalidInputError, match=f"study ddp has 2 objectives, expected one for the format {name}"):
            write(ours, [both])

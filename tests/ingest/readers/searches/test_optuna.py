"""Optuna's storages. Recorded: optuna 5.0.0, the same searches in SQLite and in a journal; optuna 2.10.1."""

import json
import sqlite3
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.trial import History, TrialState
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.searches.optuna_distribution import distribution_of, domain_of
from crosswind.ingest.readers.searches.optuna_journal import OptunaJournalReader
from crosswind.ingest.readers.searches.optuna_sqlite import OptunaReader

DATABASE, JOURNAL = RECORDINGS / "optuna/optuna.db", RECORDINGS / "optuna_journal/journal.log"
OLD = DATABASE.with_name("optuna-2.10.db")
BOTH = pytest.mark.parametrize("path", [DATABASE, JOURNAL], ids=["sqlite", "journal"])
SPACE = {
    "workers": {"kind": "int", "low": 1, "high": 8, "log": False},
    "lr": {"kind": "float", "low": 1e-05, "high": 0.1, "log": True},
    "bucket": {"kind": "categorical", "values": ["small", "large"]},
    "accumulate": {"kind": "int", "low": 2, "high": 8, "log": False, "step": 2},
    "drop": {"kind": "ordinal", "values": [0.0, 0.25, 0.5]},
    "pin": {"kind": "boolean"},
}


def read(path: Path) -> tuple[list[History], Report]:
    reader = OptunaReader() if path.suffix == ".db" else OptunaJournalReader()
    report = Report(str(path), reader.name)
    return list(reader.read(path, report, Context("lab"))), report


@BOTH
def test_a_study_has_its_space_and_its_trials_in_order(path: Path) -> None:
    [history, _], _ = read(path)
    assert (history.study.objective, history.study.unit) == ("objective", "")
    assert history.study.name == f"step-time-{history.study.study_id[-6:]}"
    assert history.study.space == SPACE
    done, failed, pruned = TrialState.DONE, TrialState.FAILED, TrialState.PRUNED
    assert [trial.state for trial in history.trials] == [done, done, done, failed, done, pruned, done, done]
    assert history.trials[0].configuration == {
        "workers": 5,
        "lr": 0.006801289958688559,
        "bucket": "large",
        "accumulate": 8,
        "drop": 0.5,
        "pin": False,
    }
    assert [trial.objective for trial in history.trials] == [
        4.13259129047242,
        11.836760625397455,
        12.13541635196353,
        None,
        5.483003485172718,
        None,
        6.114845031245546,
        4.5536515590746856,
    ]
    assert [trial.trial_id for trial in history.trials] == sorted(trial.trial_id for trial in history.trials)


@BOTH
def test_what_is_maximised_is_stored_with_the_sign_turned(path: Path) -> None:
    [first, history], report = read(path)
    assert history.study.objective == "-tokens_per_second"
    assert [trial.objective for trial in history.trials] == [-700.0, -1600.0, -200.0, -600.0]
    assert report.notes[:4] == [
        f"study {first.study.name}: 8 trials",
        "study 'throughput': 1 trials have not ended: left out",
        "study 'throughput' is to be maximised: its objective is stored with the sign turned",
        f"study {history.study.name}: 4 trials",
    ]


@BOTH
def test_a_study_of_two_objectives_is_refused_and_the_others_are_read(path: Path) -> None:
    _, report = read(path)
    assert [(skipped.text, skipped.reason) for skipped in report.quoted] == [
        ("both", "study 'both' has 2 objectives; expected one")
    ]
    assert report.read == 12


def test_times_of_databases_have_no_zone_and_are_of_the_given_one() -> None:
    reader, report = OptunaReader(), Report(str(DATABASE), "optuna")
    [berlin, _] = reader.read(DATABASE, report, Context("lab", zone=ZoneInfo("Europe/Berlin")))
    [utc, _], _ = read(DATABASE)
    assert utc.study.created_ns - berlin.study.created_ns == 3600 * 10**9
    assert report.notes[-1] == "time_zone: 15 times have no zone and were read as Europe/Berlin"


def changed(tmp_path: Path, *statements: str) -> Path:
    path = tmp_path / "changed.db"
    path.write_bytes(DATABASE.read_bytes())
    database = sqlite3.connect(path)
    with database:
        for statement in statements:
            database.execute(statement)
    database.close()
    return path


def test_a_trial_that_lacks_a_parameter_is_skipped_because_its_space_is_another(tmp_path: Path) -> None:
    path = changed(tmp_path, "delete from trial_params where trial_id = 1 and param_name = 'lr'")
    [history, _], report = read(path)
    assert len(history.trials) == 7
    assert report.quoted[0].reason == "trial 0: has no value of lr, which others have"


def test_infinite_objectives_are_failures(tmp_path: Path) -> None:
    path = changed(tmp_path, "update trial_values set value_type = 'INF_POS', value = null where trial_id = 1")
    [history, _], report = read(path)
    assert (history.trials[0].state, history.trials[0].objective) == (TrialState.FAILED, None)
    assert "study 'step-time': 1 trials ended without a finite objective: failed" in report.notes


def test_storages_of_version_2_have_other_distributions_and_no_kinds_of_values() -> None:
    [history], report = read(OLD)
    assert history.study.space == {
        "lr": {"kind": "float", "low": 1e-05, "high": 0.1, "log": True},
        "u": {"kind": "float", "low": 0.0, "high": 1.0, "log": False},
        "q": {"kind": "ordinal", "values": [0.0, 0.25, 0.5, 0.75, 1.0]},
        "n": {"kind": "int", "low": 1, "high": 9, "log": False, "step": 2},
        "m": {"kind": "int", "low": 1, "high": 64, "log": True},
        "c": {"kind": "categorical", "values": ['"a"', "null", "3"]},
    }
    assert [trial.objective for trial in history.trials] == [
        -11.765807199764795,
        None,  # infinite
        -2.481062396032962,
        -8.68999606917219,
    ]
    assert report.notes[0] == "study 'old': 1 trials ended without a finite objective: failed"


def test_a_view_in_the_place_of_a_table_is_refused(tmp_path: Path) -> None:
    path = changed(tmp_path, "drop table trials", "create view trials as select 1 as trial_id")
    with pytest.raises(MalformedError, match="has no table trials"):
        read(path)


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.db"
    path.write_bytes(DATABASE.read_bytes()[:9000])
    with pytest.raises(MalformedError, match="SQLite says"):
        read(path)


def test_a_journal_that_grows_keeps_its_trials_and_gets_more(tmp_path: Path) -> None:
    lines = JOURNAL.read_text().splitlines(keepends=True)
    path = tmp_path / "journal.log"
    path.write_text("".join(lines[:30]) + lines[30][:40])
    [early], report = read(path)
    [whole, _], _ = read(JOURNAL)
    assert early.study == whole.study
    assert early.trials == whole.trials[: len(early.trials)] != ()
    assert report.quoted[0].line == 31


def test_operations_that_are_none_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "journal.log"
    bad = ["[]", "{", '{"op_code":4,"worker_id":"w","study_id":"x"}', '{"op_code":0,"worker_id":"w","study_name":1}']
    path.write_text(JOURNAL.read_text() + "\n".join(bad) + "\n")
    histories, report = read(path)
    assert [len(history.trials) for history in histories] == [8, 4]
    assert [skipped.reason.split(":")[0] for skipped in report.quoted[:4]] == [
        "no operation",
        "no JSON",
        "study_id is 'x'; expected a whole number",
        "expected study_name and directions",
    ]
    assert report.skipped == 5  # with the study of two objectives


def test_a_deleted_study_is_gone_and_an_ended_trial_does_not_change(tmp_path: Path) -> None:
    path = tmp_path / "journal.log"
    late = (
        '{"op_code":6,"worker_id":"w","trial_id":0,"state":1,"values":[0.0],"datetime_complete":"2026-01-01T00:00:00"}'
    )
    path.write_text(JOURNAL.read_text() + late + '\n{"op_code":1,"worker_id":"w","study_id":1}\n')
    [history], _ = read(path)
    assert history.trials[0].objective == 4.13259129047242


def journal_of(tmp_path: Path, *parameters: tuple[str, float]) -> Path:
    """A journal of trials with one parameter each: its distribution, and the stored value."""
    study = {"op_code": 0, "worker_id": "w", "study_name": "steps", "directions": [1]}
    lines: list[dict[str, object]] = [study]
    for number, (distribution, stored) in enumerate(parameters):
        lines.append(
            {"op_code": 4, "worker_id": "w", "study_id": 0, "datetime_start": f"2026-01-0{number + 1}T00:00:00"}
        )
        parameter = {"param_name": "x", "param_value_internal": stored, "distribution": distribution}
        lines.append({"op_code": 5, "worker_id": "w", "trial_id": number} | parameter)
        lines.append({"op_code": 6, "worker_id": "w", "trial_id": number, "state": 1, "values": [1.0]})
    path = tmp_path / "journal.log"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_stepped_values_are_those_of_the_list_however_their_sum_was_rounded(tmp_path: Path) -> None:
    tenths = distribution_json("FloatDistribution", low=0.1, high=0.7, log=False, step=0.1)
    stored = [0.3, 0.1 + 2 * 0.1, 0.7, 0.1 + 6 * 0.1, 0.35]  # by a grid, by a sampler, ..., by nobody
    [history], report = read(journal_of(tmp_path, *[(tenths, number) for number in stored]))
    assert history.study.space == {"x": {"kind": "ordinal", "values": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]}}
    assert [trial.configuration["x"] for trial in history.trials] == [0.3, 0.3, 0.7, 0.7]
    [skipped] = report.quoted
    assert skipped.reason == "trial 4: parameter value 0.35 is not 0.1 and a multiple of 0.1"


def test_a_trial_of_another_domain_is_skipped_and_the_report_names_the_parameter(tmp_path: Path) -> None:
    letters = distribution_json("CategoricalDistribution", choices=["a", "b"])
    real = distribution_json("FloatDistribution", low=0, high=1, log=False, step=None)
    [history], report = read(journal_of(tmp_path, (letters, 1), (real, 0.5)))
    assert [trial.configuration for trial in history.trials] == [{"x": "b"}]
    [skipped] = report.quoted
    assert skipped.reason == "trial 1: x is 0.5, of another domain than in the first trial"


def distribution_json(name: str, **attributes: object) -> str:
    return json.dumps({"name": name, "attributes": attributes})


@pytest.mark.parametrize(
    ("texts", "domain"),
    [
        (
            [
                distribution_json("FloatDistribution", low=0, high=1, log=False, step=None),
                distribution_json("UniformDistribution", low=-1, high=0.5),
            ],
            {"kind": "float", "low": -1.0, "high": 1.0, "log": False},
        ),
        (
            [distribution_json("DiscreteUniformDistribution", low=0, high=1, q=0.5)],
            {"kind": "ordinal", "values": [0.0, 0.5, 1.0]},
        ),
        (
            [distribution_json("IntDistribution", low=0, high=10**7, log=False, step=2)],
            {"kind": "int", "low": 0, "high": 10**7, "log": False, "step": 2},
        ),
        (
            [distribution_json("IntDistribution", low=low, high=9, log=False, step=2) for low in (1, 3)],
            {"kind": "int", "low": 1, "high": 9, "log": False, "step": 2},
        ),
        (
            [distribution_json("IntDistribution", low=low, high=low + 2, log=False, step=2) for low in (1, 2)],
            {"kind": "ordinal", "values": [1, 2, 3, 4]},
        ),
        (
            [distribution_json("CategoricalDistribution", choices=[None, "a", [1, 2]])],
            {"kind": "categorical", "values": ["null", '"a"', "[1, 2]"]},
        ),
        (
            [distribution_json("CategoricalDistribution", choices=[1, True])],
            {"kind": "categorical", "values": ["1", "true"]},
        ),
        ([distribution_json("CategoricalDistribution", choices=[16, 32])], {"kind": "categorical", "values": [16, 32]}),
    ],
)
def test_distributions_become_domains(texts: list[str], domain: dict[str, object]) -> None:
    assert domain_of([distribution_of(text) for text in texts]) == domain


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        distribution_json("NewDistribution", low=0, high=1),
        distribution_json("FloatDistribution", low=2, high=1),
        distribution_json("IntDistribution", low=0, high=1e300),
        distribution_json("FloatDistribution", low="0", high=1),
        distribution_json("CategoricalDistribution", choices=[]),
    ],
)
def test_what_is_no_distribution_is_refused(text: str) -> None:
    with pytest.raises(MalformedError):
        distribution_of(text)

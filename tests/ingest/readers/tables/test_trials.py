"""Tables of trials."""

from pathlib import Path

import pytest
from tests.ingest.readers.tables.reading import read

from crosswind.data.schema.trial import History, TrialState

MAP = """
table: trials
study: {value: allreduce}
objective: {column: t, name: step_p50_seconds, unit: ms}
parameters: [bucket, "al*"]
valid: ok
workload: {value: gpt}
"""
TABLE = "bucket,algo,t,ok\n1,ring,412,true\n4,ring,388,true\n4,tree,,false\n4,tree,x,true\n,tree,5,true\n"


def history(tmp_path: Path, text: str, table: str = TABLE) -> History:
    (tmp_path / "trials.csv").write_text(table)
    [record] = read(tmp_path / "trials.csv", text)[0]
    assert isinstance(record, History)
    return record


def test_rows_are_trials_of_a_study(tmp_path: Path) -> None:
    study = history(tmp_path, MAP)
    assert study.study.name.startswith("allreduce-")
    assert (study.study.objective, study.study.unit, study.study.workload) == ("step_p50_seconds", "s", "gpt")
    assert study.study.space["bucket"] == {"kind": "ordinal", "values": [1, 4]}
    assert [(dict(trial.configuration), trial.state, trial.objective) for trial in study.trials] == [
        ({"bucket": 1, "algo": "ring"}, TrialState.DONE, pytest.approx(0.412)),
        ({"bucket": 4, "algo": "ring"}, TrialState.DONE, pytest.approx(0.388)),
        ({"bucket": 4, "algo": "tree"}, TrialState.FAILED, None),
    ]
    _, report = read(tmp_path / "trials.csv", MAP)
    assert [(skipped.line, skipped.reason.split(";")[0]) for skipped in report.quoted] == [
        (5, "objective (column 't') is 'x'"),
        (6, "parameter bucket is not in it"),
    ]


def test_what_is_maximised_is_stored_with_its_sign_turned(tmp_path: Path) -> None:
    text = "table: trials\nobjective: throughput\ndirection: maximise\nparameters: [a]\n"
    study = history(tmp_path, text, "a,throughput\n1,10\n2,20\n")
    assert [trial.objective for trial in study.trials] == [-10.0, -20.0]
    assert study.study.is_maximised


def test_a_column_may_name_the_studies(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("s,a,y\none,1,10\ntwo,1,20\none,2,5\n")
    records, _ = read(tmp_path / "t.csv", "table: trials\nstudy: s\nobjective: y\nparameters: [a]\n")
    assert [len(record.trials) for record in records if isinstance(record, History)] == [2, 1]

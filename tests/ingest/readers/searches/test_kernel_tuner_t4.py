"""Results in the T4 format. Recorded: kernel_tuner 1.5.0 on a C function; three made-up errors by its own writer."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.trial import History, TrialState
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.searches.kernel_tuner_t4 import KernelTunerT4Reader

SCALE = RECORDINGS / "kernel_tuner_t4/scale-results.json"


def read(path: Path) -> tuple[list[History], Report]:
    report = Report(str(path), "kernel_tuner_t4")
    return list(KernelTunerT4Reader().read(path, report, Context("lab"))), report


def changed(tmp_path: Path, **fields: object) -> Path:
    """The recorded results, the first of them with other fields."""
    document: dict[str, Any] = json.loads(SCALE.read_text())
    document["results"][0] |= fields
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(document))
    return path


def test_results_are_a_study_with_its_failures() -> None:
    [history], report = read(SCALE)
    assert (history.study.objective, history.study.unit) == ("time", "ms")
    assert history.study.space == {
        "block": {"kind": "ordinal", "values": [1, 16, 64]},
        "rounds": {"kind": "ordinal", "values": [1, 2, 4]},
        "mode": {"kind": "categorical", "values": ["a", "b"]},
    }
    failed, infeasible = TrialState.FAILED, TrialState.INFEASIBLE
    assert [trial.state for trial in history.trials] == [TrialState.DONE] * 10 + [failed, failed, infeasible]
    assert history.trials[0].configuration == {"block": 1, "rounds": 1, "mode": "a"}
    assert history.trials[0].objective == 0.02736700015763442
    assert report.read == 13


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"invalidity": "melted"}, "result 0: invalidity is 'melted'; expected one of: correct, constraints"),
        ({"measurements": []}, "result 0: measurement time is None; expected a number"),
        ({"measurements": [{"name": "time", "value": "fast"}]}, "result 0: measurement time is 'fast'"),
        ({"configuration": {"block": 1, "rounds": [1], "mode": "a"}}, r"result 0: rounds is [1]; expected a number"),
        ({"configuration": {"block": 1}}, "result 0: rounds is None; expected a number"),
        ({"configuration": None}, "result 0: configuration is None; expected an object"),
    ],
)
def test_a_result_that_is_not_understood_is_skipped_with_the_reason(
    fields: dict[str, object], says: str, tmp_path: Path
) -> None:
    [history], report = read(changed(tmp_path, **fields))
    assert len(history.trials) == 12
    [skipped] = report.quoted
    assert skipped.reason.startswith(says)


def test_an_objective_of_unknown_direction_is_refused_unless_the_file_says_it(tmp_path: Path) -> None:
    document = json.loads(SCALE.read_text().replace('"time"', '"speed"'))
    path = tmp_path / "speed.json"
    path.write_text(json.dumps(document))
    with pytest.raises(MalformedError, match="objective 'speed' has no known direction"):
        read(path)
    path.write_text(json.dumps({**document, "metadata": {"direction": "maximise"}}))
    [history], _ = read(path)
    assert (history.study.objective, history.trials[0].objective) == ("-speed", -0.02736700015763442)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"results": {"configuration": 1, "invalidity": 2}}', "results is dict; expected a list"),
        ('[{"configuration": 1, "invalidity": 2}]', "list; expected an object"),
        (
            '{"results": [{"configuration": {"a": 1}, "invalidity": "correct", "objectives": ["a", "b"]}]}',
            "expected one name",
        ),
        ("{", "no JSON"),
    ],
)
def test_what_is_no_such_file_is_refused(content: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(MalformedError, match=says):
        read(path)

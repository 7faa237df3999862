"""Tables of configurations, as anybody may write them."""

from pathlib import Path

import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.trial import History, TrialState
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.searches.configurations import ConfigurationsReader, objective_of

RECORDED = RECORDINGS / "configurations/allreduce.csv"


def read(path: Path) -> tuple[list[History], Report]:
    report = Report(str(path), "configurations")
    return list(ConfigurationsReader().read(path, report, Context("lab"))), report


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "table.csv"
    path.write_text(text)
    return path


def test_a_table_is_a_study_named_after_its_file() -> None:
    [history], report = read(RECORDED)
    assert (history.study.objective, history.study.unit) == ("step_p50_seconds", "s")
    assert history.study.name == f"allreduce-{history.study.study_id[-6:]}"
    assert history.study.space == {
        "bucket_mb": {"kind": "ordinal", "values": [1, 4, 25, 100]},
        "algorithm": {"kind": "categorical", "values": ["ring", "tree"]},
        "overlap": {"kind": "boolean"},
        "lr": {"kind": "ordinal", "values": [0.05, 0.1]},
    }
    assert history.trials[0].configuration == {"bucket_mb": 1, "algorithm": "ring", "overlap": True, "lr": 0.1}
    done, failed, infeasible = TrialState.DONE, TrialState.FAILED, TrialState.INFEASIBLE
    assert [(trial.state, trial.objective) for trial in history.trials] == [
        (done, 0.412),
        (done, 0.388),
        (done, 0.431),
        (failed, None),
        (infeasible, None),
    ]
    assert (report.read, report.skipped, report.notes) == (5, 0, [f"study {history.study.name}: 5 trials"])


@pytest.mark.parametrize(
    ("header", "objective"),
    [
        ("objective", (1, "objective", "", 1)),
        ("objective [s]", (1, "objective", "s", 1)),
        ("objective:step time [ms]", (1, "step time", "ms", 1)),
        ("objective:energy[J]", (1, "energy", "J", 1)),
        ("maximise:throughput", (1, "throughput", "", -1)),
    ],
)
def test_the_header_says_what_the_objective_is(header: str, objective: tuple[int, str, str, int]) -> None:
    parsed = objective_of(["threads", header])
    assert parsed is not None
    assert (parsed.place, parsed.name, parsed.unit, parsed.sign) == objective


@pytest.mark.parametrize(
    "names",
    [
        ["threads", "time"],
        ["objective"],
        ["objective", "objective:time"],
        ["threads", "threads", "objective"],
        ["threads", "", "objective"],
        ["threads", "objectives"],
        ["threads", "Objective"],
    ],
)
def test_without_one_objective_and_parameters_of_different_names_it_is_no_such_table(names: list[str]) -> None:
    assert objective_of(names) is None


def test_what_is_to_be_maximised_is_stored_with_the_sign_turned(tmp_path: Path) -> None:
    [history], report = read(written(tmp_path, "threads,maximise:tokens/s\n1,10\n2,19.5\n"))
    assert history.study.objective == "-tokens/s"
    assert [trial.objective for trial in history.trials] == [-10.0, -19.5]
    assert report.notes[:1] == ["tokens/s is to be maximised: stored with the sign turned"]


def test_bad_lines_are_skipped_with_their_reason(tmp_path: Path) -> None:
    text = 'a,objective\n1,2\n"1,5",2\n1,"2,5"\n1\n,3\n1,fast\n1,1e999\n"1,2\n3,4\n5,6'
    [history], report = read(written(tmp_path, text))
    assert [(trial.configuration["a"], trial.objective) for trial in history.trials] == [(1, 2.0), (3, 4.0)]
    assert [(skipped.line, skipped.reason) for skipped in report.quoted] == [
        (3, "a is '1,5'; expected a value, numbers with a decimal point"),
        (4, "objective is '2,5'; expected a value, numbers with a decimal point"),
        (5, "1 cells; expected 2"),
        (6, "a is ''; expected a value, numbers with a decimal point"),
        (7, "objective is 'fast'; expected a number or one of: failed, infeasible, pruned"),
        (8, "objective is '1e999'; expected a number or one of: failed, infeasible, pruned"),
        (9, "no comma-separated values: unexpected end of data"),
        (11, "the last line has no line end: it may be cut short; end it, or ingest the file again when it grew"),
    ]


def test_a_column_with_one_word_among_its_numbers_is_of_texts_and_the_report_says_so(tmp_path: Path) -> None:
    [history], report = read(written(tmp_path, "a,objective\n1,2\nauto,3\n"))
    assert history.study.space == {"a": {"kind": "categorical", "values": ["1", "auto"]}}
    assert report.notes[:1] == ["a: 'auto' is no number, so that all of its values are texts"]


def test_many_different_numbers_are_a_range(tmp_path: Path) -> None:
    rows = "".join(f"{number},{number / 8},1\n" for number in range(101))
    [history], _ = read(written(tmp_path, "a,b,objective\n" + rows))
    assert history.study.space == {
        "a": {"kind": "int", "low": 0, "high": 100, "log": False},
        "b": {"kind": "float", "low": 0.0, "high": 12.5, "log": False},
    }


def test_a_table_that_grew_keeps_its_trials(tmp_path: Path) -> None:
    [before], _ = read(written(tmp_path, "a,objective\n1,2\n2,3\n"))
    [after], _ = read(written(tmp_path, "a,objective\n1,2\n2,3\n2,4\n"))
    assert after.trials[:2] == before.trials
    assert after.study == before.study


def test_a_table_without_an_objective_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MalformedError, match="one column `objective`"):
        read(written(tmp_path, "a,time\n1,2\n"))

"""Kernel Tuner's caches. Recorded: kernel_tuner 1.5.0 tuning a C function, to its end and interrupted by an error."""

import json
import re
from pathlib import Path

import pytest
from tests.ingest.trees import RECORDINGS

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.trial import History, TrialState
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.searches.kernel_tuner import KernelTunerReader

RECORDED = RECORDINGS / "kernel_tuner"
WHOLE, OPEN = RECORDED / "scale.json", RECORDED / "scale-open.json"
NAME = "scale-10000-6af4c3"


def read(path: Path) -> tuple[list[History], Report]:
    report = Report(str(path), "kernel_tuner")
    return list(KernelTunerReader().read(path, report, Context("lab"))), report


def rewritten(tmp_path: Path, **changes: object) -> Path:
    path = tmp_path / "cache.json"
    path.write_text(json.dumps(json.loads(WHOLE.read_text()) | changes))
    return path


def test_a_whole_cache_is_a_study_over_its_parameters_values() -> None:
    [history], report = read(WHOLE)
    assert (history.study.name, history.study.objective, history.study.unit) == (NAME, "time", "")
    assert history.study.created_ns == 1_795_299_277_000_000_000
    assert history.study.space == {
        "block": {"kind": "ordinal", "values": [1, 16, 64]},
        "rounds": {"kind": "ordinal", "values": [1, 2]},
        "mode": {"kind": "categorical", "values": ["a", "b"]},
    }
    assert len(history.trials) == 10
    assert history.trials[1].configuration == {"block": 1, "rounds": 1, "mode": "b"}
    assert history.trials[1].objective == 0.02835649996995926
    assert (report.read, report.skipped, report.notes) == (10, 0, [f"study {NAME}: 10 trials"])


def test_a_cache_that_was_never_closed_is_read_to_its_end() -> None:
    [history], report = read(OPEN)
    assert [trial.objective for trial in history.trials] == [
        0.025729000568389893,
        0.025574499741196632,
        0.04570950008928776,
        0.04574649967253208,
    ]
    assert report.notes[0] == "the cache is open: its run was interrupted or still goes on"
    assert report.skipped == 0


def test_lines_that_are_damaged_or_cut_short_cost_their_configuration_alone(tmp_path: Path) -> None:
    lines = OPEN.read_text().splitlines()
    path = tmp_path / "cache.json"
    path.write_text("\n".join([*lines[:-3], lines[-3].replace('"time"', "time"), lines[-2], lines[-1][:70]]))
    [history], report = read(path)
    assert [trial.objective for trial in history.trials] == [0.025729000568389893, 0.04570950008928776]
    reason = "no record of a configuration: the line is damaged or cut short"
    assert [(skipped.line, skipped.reason) for skipped in report.quoted] == [(31, reason), (33, reason)]


def test_the_last_line_of_a_closed_cache_is_read_although_another_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "cache.json"
    path.write_text(WHOLE.read_text().replace('"block": 16', '"block": '))
    [history], report = read(path)
    assert [trial.configuration["block"] for trial in history.trials] == [1, 1, 1, 1, 64, 64]
    assert report.skipped == 4


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("InvalidConfig", TrialState.INFEASIBLE),
        ("CompilationFailedConfig", TrialState.FAILED),
        ("RuntimeFailedConfig", TrialState.FAILED),
    ],
)
def test_failures_are_trials_without_an_objective(tmp_path: Path, word: str, state: TrialState) -> None:
    entry = {"block": 1, "rounds": 1, "mode": "a", "time": word}
    [history], _ = read(rewritten(tmp_path, cache={"1,1,a": entry}))
    assert [(trial.state, trial.objective) for trial in history.trials] == [(state, None)]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"time": "slow"}, "time is 'slow'; expected a number or one of: InvalidConfig"),
        ({"time": True}, "time is True; expected a number"),
        ({"time": None}, "time is None; expected a number"),
        ({"block": 5}, "'block' is 5; expected one of tune_params"),
        ({"mode": ["a"]}, r"'mode' is \['a'\]; expected one of tune_params"),
    ],
)
def test_records_that_are_not_understood_are_skipped(tmp_path: Path, changes: dict[str, object], reason: str) -> None:
    good = {"block": 1, "rounds": 1, "mode": "a", "time": 2.0}
    [history], report = read(rewritten(tmp_path, cache={"a": good | changes, "b": good, "c": 7}))
    assert [trial.objective for trial in history.trials] == [2.0]
    assert report.skipped == 2
    assert re.match(reason, report.quoted[1].reason)


def test_what_is_to_be_maximised_is_stored_with_the_sign_turned(tmp_path: Path) -> None:
    entry = {"block": 1, "rounds": 1, "mode": "a", "time": 2.0, "GFLOP/s": 8}
    [history], report = read(rewritten(tmp_path, cache={"a": entry}, objective="GFLOP/s"))
    assert (history.study.objective, history.trials[0].objective) == ("-GFLOP/s", -8.0)
    assert report.notes[:1] == ["GFLOP/s is to be maximised: stored with the sign turned"]


def test_a_device_reports_that_times_are_in_milliseconds(tmp_path: Path) -> None:
    [history], _ = read(rewritten(tmp_path, device_name="NVIDIA RTX A4000", problem_size=[4096, 4096]))
    assert history.study.unit == "ms"
    assert history.study.name.startswith("scale-NVIDIA_RTX_A4000-4096x4096-")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"objective": "beauty"}, "objective 'beauty' has no known direction; expected one of: time, energy"),
        ({"objective": ["time", "energy"]}, "has no known direction"),
        ({"tune_params": {"block": 1}}, "expected a list of scalars"),
        ({"tune_params_keys": []}, "expected a list and an object"),
        ({"cache": []}, "cache is list; expected an object"),
    ],
)
def test_what_is_no_search_is_refused(tmp_path: Path, changes: dict[str, object], reason: str) -> None:
    with pytest.raises(MalformedError, match=reason):
        read(rewritten(tmp_path, **changes))

"""Objectives as people see them: in the sign and the unit in which they were measured."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from crosswind.cli.main import main
from crosswind.data.schema.trial import Study, unit_of_objective

RATE = """
name: rate
objective: samples_per_second
direction: maximise
parameters: {batch: {kind: ordinal, values: [8, 16, 24]}}
"""
Tune = Callable[..., tuple[str, str]]


@pytest.fixture
def tune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Tune:
    """Runs one action on the study `rate` in a folder; what it printed on both outputs."""
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CROSSWIND_TUNE_FOLDER", str(tmp_path / "studies"))
    monkeypatch.chdir(tmp_path)

    def run(*words: str, code: int = 0) -> tuple[str, str]:
        assert main(["tune", *words]) == code
        return capfd.readouterr()

    Path("rate.yaml").write_text(RATE)
    run("create", "rate.yaml")
    return run


EXEC = (
    *("exec", "rate", "--no-agent", "--no-inject", "--no-ingest", "--objective-pattern", r"rate=(\S+)"),
    *("--", "echo", "rate={batch}"),
)


def test_what_is_maximised_is_printed_as_it_was_measured_everywhere(tune: Tune) -> None:
    said = [tune(*EXEC)[1]]
    said.append(tune("exec", "rate", "--json", *EXEC[2:])[0])
    batches = [trial["configuration"]["batch"] for trial in trials(tune)]
    assert f"done, objective {batches[0]}\n" in said[0]
    assert json.loads(said[1].splitlines()[-1])["objective"] == batches[1]
    [third] = json.loads(tune("next", "rate", "--json")[0])
    batches.append(third["configuration"]["batch"])
    reported = json.loads(tune("tell", "rate", third["trial_id"], str(batches[2]), "--json")[0])
    assert reported[0]["trial"]["objective"] == batches[2]
    assert [trial["objective"] for trial in trials(tune)] == batches
    status, best = (json.loads(tune(action, "rate", "--json")[0]) for action in ("status", "best"))
    assert status["best"]["objective"] == best["objective"] == best["trial"]["trial"]["objective"] == 24
    said += [tune("status", "rate")[0], tune("best", "rate")[0], tune("export", "rate")[0]]
    assert re.search(r"-(8|16|24)\b", "".join(said)) is None
    assert "; best 24: batch=24" in said[-3]


def trials(tune: Tune) -> list[dict[str, dict[str, int]]]:
    return [record["trial"] for record in json.loads(tune("status", "rate", "--json")[0])["trials"]]


def test_a_second_result_is_refused_with_numbers_as_they_were_measured(tune: Tune) -> None:
    [trial] = json.loads(tune("next", "rate", "--json")[0])
    tune("tell", "rate", trial["trial_id"], "24")
    complaint = tune("tell", "rate", trial["trial_id"], "25", code=2)[1]
    assert "is done with objective 24.0, expected that again, not 25.0" in complaint


def test_the_service_keeps_it_so_that_lower_is_better() -> None:
    study = Study("s", "rate", {}, "rate", "", 0, 0, direction="maximise")
    assert study.signed(24) == -24
    assert study.signed(study.signed(24)) == 24
    assert Study("s", "time", {}, "time", "", 0, 0).signed(24) == 24


@pytest.mark.parametrize(
    ("objective", "unit"),
    [
        ("step_p50_seconds", "s"),
        ("energy_joules", "J"),
        ("power_watts", "W"),
        ("memory_bytes", "B"),
        ("step_cov_ratio", ""),
        ("loss", ""),
        ("energy_joules / batch", ""),
        ("run_seconds * nodes", ""),
    ],
)
def test_the_unit_is_the_one_in_which_the_objective_s_name_ends(objective: str, unit: str) -> None:
    assert unit_of_objective(objective) == unit


def test_a_study_without_a_unit_prints_none_and_a_given_one_stays(tune: Tune) -> None:
    Path("s.json").write_text('{"batch": {"kind": "ordinal", "values": [8, 16]}}')
    made = {
        words: json.loads(tune("create", f"study{number}", "s.json", *words, "--json")[0])["unit"]
        for number, words in enumerate([(), ("--objective", "loss"), ("--objective", "loss", "--unit", "nats")])
    }
    assert list(made.values()) == ["s", "", "nats"]
    [trial] = json.loads(tune("next", "study1", "--json")[0])
    tune("tell", "study1", trial["trial_id"], "0.5")
    assert "; best 0.5: batch=" in tune("status", "study1")[0]

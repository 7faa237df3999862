"""Trials that a fault of the command ends: the budget does not count them, and a loop of them ends."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from crosswind.cli.main import main
from crosswind.cli.verbs.tune.execution.blame import fault_of_command

QUIET = ("--no-agent", "--no-inject", "--no-ingest")
LOSS = ("--objective-pattern", r"loss=(\S+)")
Tune = Callable[..., str]


@pytest.fixture
def tune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Tune:
    """Runs one action on a study of six trials in a folder; what it printed and complained."""
    for name in [name for name in os.environ if name.startswith(("CROSSWIND_", "SLURM_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CROSSWIND_TUNE_FOLDER", str(tmp_path / "studies"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.json").write_text(json.dumps({"x": {"kind": "int", "low": 1, "high": 50}}))

    def run(*words: str, code: int = 0) -> str:
        assert main(["tune", *words]) == code
        said = capfd.readouterr()
        return said.out + said.err

    run("create", "s", "space.json", "--objective", "loss", "--trials", "6")
    return run


def trials(tune: Tune) -> list[tuple[str, bool]]:
    records = json.loads(tune("status", "s", "--json"))["trials"]
    return [(record["trial"]["state"], record["charged"]) for record in records]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("bash", "-c", "trian {x}"), "exit code 127: a program that the command starts was not found"),
        (("bash", "-c", "/etc/passwd {x}"), "exit code 126: a program that the command starts cannot be executed"),
        (("python3", "trian.py", "{x}"), "trian.py is not there"),
        (("bash", "-c", "exit 2"), "--infeasible 2 if the configuration is to blame"),
        (("bash", "-c", "echo lost={x}"), "no trial of the study has had an objective yet"),
    ],
)
def test_a_typo_does_not_burn_the_budget(tune: Tune, command: tuple[str, ...], message: str) -> None:
    said = tune("exec", "s", *QUIET, *LOSS, "--trials", "6", "--", *command, code=2)
    assert message in said
    assert "the budget does not count it" in said
    assert "3 trials in a row: " in said
    assert trials(tune) == [("failed", False)] * 3
    tune("exec", "s", *QUIET, *LOSS, "--trials", "9", "--", "bash", "-c", "echo loss={x}")
    assert trials(tune)[3:] == [("done", True)] * 6


def test_a_typo_does_not_lose_the_start(tune: Tune, tmp_path: Path) -> None:
    start = {"objective": "loss", "parameters": {"x": {"kind": "int", "low": 1, "high": 50}}, "start": {"x": 7}}
    (tmp_path / "t.json").write_text(json.dumps(start))
    tune("create", "t.json")
    tune("exec", "t", *QUIET, *LOSS, "--trials", "2", "--", "python3", "trian.py", "{x}", code=2)
    assert "loss=7" in tune("exec", "t", *QUIET, *LOSS, "--", "bash", "-c", "echo loss={x}")


def test_what_a_configuration_does_is_counted(tune: Tune) -> None:
    tune("exec", "s", *QUIET, *LOSS, "--", "bash", "-c", "echo loss={x}")
    tune("exec", "s", *QUIET, *LOSS, "--", "bash", "-c", "exit 2", code=2)
    tune("exec", "s", *QUIET, *LOSS, "--", "bash", "-c", "echo lost={x}", code=1)
    tune("exec", "s", *QUIET, *LOSS, "--", "bash", "-c", "exit 9", code=9)
    tune("exec", "s", *QUIET, "--infeasible", "127", "--", "bash", "-c", "exit 127", code=127)
    assert trials(tune) == [("done", True), *[("failed", True)] * 3, ("infeasible", True)]


def test_a_program_that_took_steps_is_no_fault_of_the_command() -> None:
    judged = {"ever_measured": False, "infeasible": ()}
    for code in (2, 126, 127):
        assert fault_of_command(["./train"], code, has_steps=True, **judged) == ""
        assert fault_of_command(["./train"], code, has_steps=False, **judged) != ""
    for code in (0, 1, 137):
        assert fault_of_command(["./train"], code, has_steps=False, **judged) == ""
    assert fault_of_command(["torchrun", "no.py"], 1, has_steps=False, **judged) == "no.py is not there"
    assert fault_of_command(["python3", "-c", "import no.py"], 1, has_steps=False, **judged) == ""

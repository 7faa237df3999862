"""`crosswind sync slurm` on a machine where `sacct` is a script that answers."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crosswind.cli.main import main
from crosswind.data.store.store import Store

Ask = Callable[..., tuple[int, str, str]]
NOW = int(time.time())
LINES = f"""JobIDRaw|State|Start|End|JobName
7|COMPLETED|{NOW - 500}|{NOW - 400}|train
8|RUNNING|{NOW - 300}|Unknown|train
9|nonsense|{NOW - 300}|Unknown|train
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CROSSWIND_SYSTEM", "alps")
    for name in ("CROSSWIND_SPOOL", "CROSSWIND_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))  # a Slurm of this machine is none of ours
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def ask(home: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    def ask(*words: object) -> tuple[int, str, str]:
        code = main(["sync", *map(str, words)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return ask


def sacct(home: Path, script: str) -> None:
    """Puts a sacct on PATH."""
    path = home.parent / "bin" / "sacct"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def answering(home: Path) -> None:
    (home.parent / "accounts").write_text(LINES)
    sacct(home, f"/bin/cat {home.parent / 'accounts'}")


def stored(home: Path) -> list[tuple[str, str, str]]:
    with Store.open(home) as store:
        return sorted((job.system, job.job_id, job.state) for job in store.jobs.find(limit=9))


def test_what_sacct_knows_is_stored_once(ask: Ask, home: Path) -> None:
    answering(home)
    code, said, _ = ask("slurm", "--since", "now-2hours")
    assert code == 0
    first, line = said.splitlines()
    assert first.startswith("1 answers of Slurm about alps since 20")
    assert first.endswith(" UTC: 2 accounts of jobs, 2 new or changed")
    expected = "State 'nonsense'; expected a word such as COMPLETED or CANCELLED by 1000"
    assert line == f"  line 4 left out: {expected}: 9|nonsense|{NOW - 300}|Unknown|train"
    assert stored(home) == [("alps", "7", "COMPLETED"), ("alps", "8", "RUNNING")]
    answer = json.loads(ask("slurm", "--json")[1])
    assert (answer["questions"], answer["accounts"], answer["changed"], answer["skipped"]) == (1, 2, 0, 1)


def test_without_sacct_it_says_what_to_do(ask: Ask, home: Path) -> None:
    for words in (("slurm",), ("slurm", "--every", "60")):
        code, said, problem = ask(*words)
        assert (code, said) == (75, "")
        assert "sacct: no such program: run this where Slurm's commands are" in problem


def test_a_sacct_that_fails_is_to_be_asked_later(ask: Ask, home: Path) -> None:
    sacct(home, "echo 'sacct: error: slurmdbd is away' >&2; exit 1")
    code, said, problem = ask("slurm")
    assert (code, said) == (75, "")
    assert "sacct: exit code 1: sacct: error: slurmdbd is away" in problem
    assert stored(home) == []


def test_the_word_is_the_source_and_a_path_is_the_folder(ask: Ask, home: Path) -> None:
    (home.parent / "slurm").mkdir()
    answering(home)
    assert ask("./slurm")[1] == "0 spools: 0 batches taken (0 were there before), 0 wait\n"
    assert ask("slurm", "--since", "now-1hours")[1].startswith("1 answers of Slurm about alps")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("slurm", "spools"), "'spools' after slurm: expected no folder; for the folder slurm, say ./slurm"),
        (("slurm", "--every", "1"), "--every 1: expected 10 seconds or more for Slurm"),
        (("slurm", "--to", "http://127.0.0.1:1"), "--to: jobs are stored here"),
        (("slurm", "--since", "yesterday"), "--since 'yesterday': expected a time such as 90s"),
        (("slurm", "--since", "2999-01-01"), "--since '2999-01-01': expected a time between 2001 and now"),
        ((".", "--since", "2026-01-01"), "--since is for `crosswind sync slurm`"),
    ],
)
def test_what_makes_no_sense_is_refused(ask: Ask, words: tuple[str, ...], problem: str) -> None:
    code, said, complaint = ask(*words)
    assert (code, said) == (2, "")
    assert problem in complaint


@pytest.mark.thorough
def test_it_asks_again_and_again_until_it_is_asked_to_stop(home: Path) -> None:
    answering(home)
    words = ("sync", "slurm", "--every", "10", "--since", "now-1hours")
    command = [sys.executable, "-m", "crosswind.cli.main", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            first = process.stdout.readline()
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert first.endswith(": 2 accounts of jobs, 2 new or changed\n")


def test_asked_to_stop_it_does_not_wait_for_an_answer(home: Path) -> None:
    sacct(home, f"echo $$ > {home.parent}/pid; exec /bin/sleep 300")
    command = [sys.executable, "-m", "crosswind.cli.main", "sync", "slurm", "--every", "10"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            deadline = time.monotonic() + 30
            while not (home.parent / "pid").exists() or not (home.parent / "pid").read_text().strip():
                assert time.monotonic() < deadline
                time.sleep(0.05)
        finally:
            process.send_signal(signal.SIGTERM)
        said = process.stdout.read() if process.stdout else ""
        assert process.wait(20) == 0
    assert said == ""
    assert not Path(f"/proc/{(home.parent / 'pid').read_text().strip()}").exists()

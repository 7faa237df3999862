"""The first `crosswind predict` of a store says that it fits a model; later ones load nothing that learns."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.asking import Ask, asking

from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store

SECOND = 1_000_000_000
RUNS = 60
ASKED = ("predict", "--workload", "gpt", "--system", "lab", "--config", "batch=8", "--ranks", "2")
LISTED = """
import json, sys
from crosswind.cli.main import main
code = main(json.loads(sys.argv[1]))
print(json.dumps([code, sorted(sys.modules)]))
"""
LEARNS = {"xgboost", "sklearn", "scipy", "crosswind.models.next_run.fit"}
STORES = {"alembic", "crosswind.ingest.load.load"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Sixty runs of three cohorts, which are too few for surrogates: a fit takes a fraction of a second."""
    with Store.open(tmp_path / "home") as store, store.catalog.write() as session:
        session.runs.put_all(map(run_of, range(RUNS)))
    return tmp_path / "home"


def run_of(number: int) -> Run:
    started, batch = number * 1000 * SECOND, (8, 16, 32)[number % 3]
    named = (f"r{number}", "gpt", "lab", RunState.COMPLETED)
    ended = started + (10 * batch + number % 5) * SECOND
    return Run(*named, world_size=2, configuration={"batch": batch}, started_ns=started, ended_ns=ended)


@pytest.fixture
def verb(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    monkeypatch.delenv("CROSSWIND_SERVER", raising=False)
    monkeypatch.delenv("CROSSWIND_DATABASE", raising=False)
    monkeypatch.setenv("CROSSWIND_HOME", str(home))
    return asking(capsys)


def test_a_fit_is_announced_once(verb: Ask) -> None:
    code, said, complained = verb(*ASKED)
    assert (code, complained) == (0, f"crosswind: fitting a model of {RUNS} runs; it is kept for the next question\n")
    assert verb(*ASKED) == (0, said, "")


def test_the_announcement_leaves_json_alone(verb: Ask) -> None:
    _, said, complained = verb(*ASKED, "--json")
    assert json.loads(said)["cohort_runs"] == RUNS // 3
    assert "fitting a model" in complained


def test_a_kept_model_answers_without_loading_what_learns_or_stores(verb: Ask, home: Path) -> None:
    verb(*ASKED)
    done = process(home, "-c", LISTED, json.dumps(ASKED))
    code, loaded = json.loads(done.stdout.splitlines()[-1])
    assert (done.returncode, code) == (0, 0)
    assert (LEARNS | STORES) & set(loaded) == set()


def process(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CROSSWIND_")}
    environment = kept | {"CROSSWIND_HOME": str(home)}
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, env=environment)


def test_the_process_ends_at_once_with_all_said_and_its_exit_code(verb: Ask, home: Path) -> None:
    _, said, _ = verb(*ASKED)
    for words, code, expected in ((ASKED, 0, said), ((*ASKED, "--limit", "x"), 2, ""), (ASKED[:-2], 2, "")):
        done = process(home, "-m", "crosswind", *words)
        assert (done.returncode, done.stdout) == (code, expected)
        assert ("Traceback" in done.stderr, bool(done.stderr)) == (False, code != 0)


def test_a_reader_that_left_is_no_failure(verb: Ask, home: Path) -> None:
    verb(*ASKED)
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "crosswind", *ASKED]
    environment = os.environ | {"CROSSWIND_HOME": str(home)}
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, env=environment)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")

"""`crosswind lab`, where nothing is measured: its faults, its refusals, and its table of outcomes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.ingest.lab.traffic import in_a_lab

from crosswind.cli.main import main
from crosswind.cli.verbs.lab.leaving import leaves_in_order
from crosswind.cli.verbs.lab.outcome import LabOutcome, outcome_table, outcomes
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.injection import Injected
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store
from crosswind.ingest.lab.folders import MARKER, SCRATCH, Folders
from crosswind.ingest.lab.hosts.hosts import NAMESPACES
from crosswind.ingest.lab.injectors import INJECTORS
from crosswind.ingest.lab.plans.plan import Plan
from crosswind.ingest.lab.workers.crew import as_user

Ask = Callable[..., tuple[int, str, str]]
SECOND, MILLISECOND = 1_000_000_000, 1_000_000
PLAN = Plan("p", ())


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))

    def ask(*words: str) -> tuple[int, str, str]:
        code = main(["lab", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return ask


def test_every_fault_is_listed_with_its_unit_and_limits(ask: Ask) -> None:
    code, said, _ = ask("faults")
    lines = {line.split()[0]: line for line in said.splitlines()[1:]}
    assert code == 0
    assert lines.keys() == INJECTORS.keys()
    assert lines["rate_cap"].split()[1:4] == ["Mbit/s", "1", "100000"]
    faults = json.loads(ask("faults", "--json")[1])
    assert {"kind": "pause", "unit": "s", "limits": [0.001, 600.0]} in faults


def test_without_root_it_says_so() -> None:
    words = [sys.executable, "-m", "crosswind.cli.main", "lab", "run"]
    user = ["setpriv", *as_user("nobody")] if os.geteuid() == 0 else []
    done = subprocess.run([*user, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 75
    assert "run it as root" in done.stderr


def test_a_number_of_runs_that_is_none_is_refused(ask: Ask) -> None:
    assert ask("run", "--only", "0") == (2, "", "crosswind: --only 0: expected 1 or more\n")


@in_a_lab
def test_a_folder_that_only_has_the_name_of_a_labs_is_never_cleaned_away(ask: Ask, tmp_path: Path) -> None:
    for name in ("scratch", SCRATCH):
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.tex").write_text("years of work")
    code, _, complaint = ask("clean", "--store", str(tmp_path))
    assert (code, complaint) == (
        2,
        f"crosswind: {tmp_path / SCRATCH}: holds no {MARKER}, so it is not a laboratory's: move it away\n",
    )
    assert [(tmp_path / name / "thesis.tex").read_text() for name in ("scratch", SCRATCH)] == ["years of work"] * 2


@in_a_lab
def test_what_a_killed_lab_left_in_the_store_is_cleaned_away(ask: Ask, tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    folders.renew_scratch()
    answer = json.loads(ask("clean", "--store", str(tmp_path), "--json")[1])
    assert str(folders.scratch) in answer["removed"]
    assert not folders.scratch.exists()


@in_a_lab
def test_a_lab_that_is_asked_to_end_leaves_nothing_in_the_kernel(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    scratch = Folders(tmp_path).scratch
    words = [sys.executable, "-m", "crosswind.cli.main", "lab", "run", "--store", str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as lab:
        deadline = time.monotonic() + 60
        while not (scratch / "nobody" / "conditions").exists():
            assert lab.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert len(list(NAMESPACES.glob(f"cwlab-{lab.pid}-*"))) == 5
        lab.send_signal(signal.SIGTERM)
        assert lab.wait(60) == 128 + signal.SIGTERM
    assert not list(NAMESPACES.glob(f"cwlab-{lab.pid}-*"))
    assert not scratch.exists()


def test_a_lab_that_is_to_outlive_its_terminal_does() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup(1) does
    try:
        with leaves_in_order():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_nothing_can_be_exported_before_it_was_measured(ask: Ask, tmp_path: Path) -> None:
    code, _, complaint = ask("export", str(tmp_path / "samples"))
    assert code == 75
    assert "crosswind lab run --plan samples measures one" in complaint
    Store.open(tmp_path / "home" / "lab").close()
    code, _, complaint = ask("export", str(tmp_path / "samples"))
    assert code == 2
    assert "holds no runs of the lab" in complaint


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two healthy runs of 100 and 110 ms a step, and one of 100 that takes 300 while a fault lasts."""
    store = Store.open(tmp_path / "lab")
    for number, step_ms in enumerate(([100] * 20, [110] * 20, [100] * 10 + [300] * 10)):
        run_id, began = f"r{number}", number * 100 * SECOND
        tags = {"plan": "p", "position": f"{number:04d}"}
        run = Run(run_id, "toy", "lab", RunState.COMPLETED, 1, started_ns=began, ended_ns=began + SECOND, tags=tags)
        starts = [began + sum(step_ms[:step]) * MILLISECOND for step in range(20)]
        rows = {
            "ts_ns": starts,
            "run_id": [run_id] * 20,
            "rank": [0] * 20,
            "step": list(range(20)),
            "duration_seconds": [ms * MILLISECOND for ms in step_ms],
        }
        store.lake.append(run_id, to_table(STEP, rows))
        with store.catalog.write() as session:
            session.runs.merge(run)
            if number == 2:
                fault = Injected(run_id, "cpu_hog", 2, "processes", "lab-1", 0, starts[10], starts[-1])
                session.injections.put(fault)
    return store


def test_the_steps_within_a_fault_are_compared_with_healthy_runs_of_the_cohort(store: Store) -> None:
    compared = outcomes(store, PLAN)
    assert [(outcome.injected, outcome.nodes, outcome.step_seconds) for outcome in compared] == [
        ("none", (), pytest.approx(0.1)),
        ("none", (), pytest.approx(0.11)),
        ("cpu_hog 2 processes", ("lab-1",), pytest.approx(0.3)),
    ]
    assert [outcome.healthy_seconds for outcome in compared] == [pytest.approx(0.105)] * 3
    assert compared[2].ratio == pytest.approx(0.3 / 0.105)
    assert outcomes(store, Plan("another", ())) == []


def test_few_runs_are_printed_one_by_one_and_many_by_fault() -> None:
    one = LabOutcome("r1", "completed", "cpu_hog 2 processes", ("lab-1",), 0.1, 0.3)
    failed = LabOutcome("r2", "failed", "none", (), 0.1, None)
    first, second = outcome_table([one, failed]).splitlines()[1:]
    assert first.split() == ["r1", "cpu_hog", "2", "processes", "lab-1", "100", "ms", "300", "ms", "3.00"]
    assert "none (failed)" in second
    many = outcome_table([one] * 20 + [failed] + [LabOutcome("r3", "completed", "none", (), 0.1, 0.1)])
    assert [line.split() for line in many.splitlines()[1:]] == [
        ["cpu_hog", "2", "processes", "20", "3.00", "3.00", "3.00"],
        ["none", "1", "1.00", "1.00", "1.00"],
    ]

"""Interruptions of `crosswind tune exec`: at its start, or by a signal that program and starter get at once."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crosswind.cli.verbs.tune.execution.evaluation import Evaluation, Program
from crosswind.cli.verbs.tune.execution.watch import Watch, noted_signals
from crosswind.cli.verbs.tune.outbox import Outbox
from crosswind.data.schema.trial import Study, TrialState
from crosswind.models.tuner.service.folder import FolderStudyService
from crosswind.models.tuner.service.service import Lease, StudyStatus

SPACE = {"a": {"kind": "int", "low": 1, "high": 100}}
IN_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
STUDY = Study("S", "s", SPACE, "run_seconds", "s", 0, 0)


class Interrupting(FolderStudyService):
    """A service at which Ctrl-C arrives whenever it is asked for the best trial."""

    def status(self, study: str) -> StudyStatus:
        """Return nothing: the interrupt comes first."""
        raise KeyboardInterrupt


def test_a_trial_goes_back_where_ctrl_c_comes_before_its_program(tmp_path: Path) -> None:
    service = Interrupting(tmp_path / "studies")
    service.create(STUDY)
    holder = Lease("me", 60.0)
    [record] = service.suggest("s", 1, holder)
    outbox = Outbox.below(tmp_path, ("folder", ""))
    evaluation = Evaluation(service, STUDY, Program(("true",), tmp_path), holder, outbox, stops_early=True)
    with pytest.raises(KeyboardInterrupt):
        evaluation.evaluate(record)
    assert service.trial("s", record.trial_id).trial.state is TrialState.RELEASED


def watch() -> Watch:
    return Watch(lambda: None, 60.0, None, 60.0, lambda: None)


@pytest.mark.parametrize(
    ("program", "is_given_back"),
    [("exit 0", False), ("exit 1", True), ("kill -INT $$", True), ("exit 130", True)],
)
def test_a_program_that_the_signal_itself_ended_has_no_result(program: str, is_given_back: bool) -> None:
    """A key of the terminal reaches both at once, and the program may be dead before its starter hears of it."""
    with subprocess.Popen(["bash", "-c", program]) as process:
        process.wait()
        watched = watch()
        watched.started(process)
        watched.heard(signal.SIGINT)
    assert (watched.preempted_by == signal.SIGINT) is is_given_back


def test_a_signal_from_before_the_program_reaches_it() -> None:
    watched = watch()
    watched.heard(signal.SIGTERM)
    with subprocess.Popen(["sleep", "60"]) as process:
        watched.started(process)
    assert process.returncode == -signal.SIGTERM


def test_the_first_signal_is_noted_and_the_second_acts() -> None:
    with noted_signals() as numbers:
        signal.raise_signal(signal.SIGINT)
        assert numbers == [signal.SIGINT]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_in_a_terminal_gives_the_trial_back(tmp_path: Path) -> None:
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("CROSSWIND_", "SLURM_"))}
    environment = kept | {"CROSSWIND_HOME": str(tmp_path / "home"), "CROSSWIND_TUNE_FOLDER": str(tmp_path / "studies")}
    service = FolderStudyService(tmp_path / "studies")
    service.create(STUDY)
    tune = [sys.executable, "-m", "crosswind.cli.main", "tune", "exec", "s", "--no-agent", "--no-ingest", "--"]
    command = [sys.executable, "-c", IN_TERMINAL, *tune, "bash", "-c", "touch running; sleep 60"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, **pipes) as process:  # type: ignore[call-overload]
        deadline = time.monotonic() + 60
        while not (tmp_path / "running").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.stdin.write(b"\x03")
        process.stdin.flush()
        assert process.wait() == 75
    [record] = service.trials("s")
    assert (record.trial.state, record.reason) == (TrialState.RELEASED, None)

"""`crosswind run -- CMD`: a program's run, recorded from outside; its output, signals and exit code pass untouched."""

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from crosswind.data.errors import ConflictError, InvalidInputError, MalformedError, ProjectError, UnavailableError
from crosswind.data.run import RunState, new_ulid
from crosswind.ingest.agent import run_agent
from crosswind.ingest.agent_settings import AgentSettings
from crosswind.ingest.probe.place import Place, node_name, system_name
from crosswind.ingest.records import run_of, workload_name
from crosswind.ingest.spool import SpoolWriter

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT)
FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
NEVER_STARTED = 127  # as shells say it
logger = logging.getLogger("crosswind")
TAIL_SECONDS = 0.2  # a last sweep after the program's end


@dataclass(frozen=True)
class Launch:
    """What is to be run and how it is recorded.

    `agent_seconds` None leaves sampling to an agent that is there; with `log` the program's output goes to that file.
    """

    command: tuple[str, ...]
    spool: Path
    workload: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    agent_seconds: float | None = 1.0
    log: Path | None = None


@dataclass(frozen=True)
class Outcome:
    """How the program ended; a signal gives 128 + its number, as shells do."""

    run_id: str
    exit_code: int
    seconds: float


def launch(wanted: Launch) -> Outcome:
    """Runs the program to its end and records it in the spool.

    Raises: InvalidInputError when there is no such program, UnavailableError when the spool does not take records.
    """
    if not wanted.command:
        raise InvalidInputError("run: expected a program after --, as in crosswind run -- torchrun train.py")
    run_id, begin = new_ulid(), time.time_ns()
    record = _record(wanted, run_id)
    _require_acceptable(record)
    with SpoolWriter(wanted.spool, f"{run_id}-wrapper") as writer, _sampling(wanted):
        writer.append_record("run", record | {"state": RunState.RUNNING, "started_ns": begin})
        writer.flush()
        try:
            exit_code = _run(wanted, run_id)
        except InvalidInputError:
            _note_end(writer, record, NEVER_STARTED)
            raise
        _note_end(writer, record, exit_code)
    return Outcome(run_id, exit_code, (time.time_ns() - begin) * 1e-9)


def _note_end(writer: SpoolWriter, record: Mapping[str, Any], exit_code: int) -> None:
    """Writes how the program ended; its exit code is the answer whatever the disk says."""
    state = RunState.COMPLETED if exit_code == 0 else RunState.FAILED
    try:
        writer.append_record("run", {**record, "ended_ns": time.time_ns(), "exit_code": exit_code, "state": state})
        writer.close()
    except UnavailableError as error:
        logger.warning("how this run ended is not recorded: %s", error)


def _record(wanted: Launch, run_id: str) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "workload": wanted.workload or workload_name(_text(Path(wanted.command[0]).name)),
        "system": system_name(),
        "job_id": Place.from_environment().job_id,
        "nodes": [node_name()],
        "command": [_text(word) for word in wanted.command],
        "tags": dict(wanted.tags),
    }


def _require_acceptable(record: Mapping[str, Any]) -> None:
    try:
        run_of({name: value for name, value in record.items() if value is not None} | {"state": RunState.RUNNING.value})
    except MalformedError as error:
        raise InvalidInputError(f"run: {error}") from error


def _text(word: str) -> str:
    """A word of a command line as text, which its bytes need not be."""
    return os.fsencode(word).decode("utf-8", "replace")


def _run(wanted: Launch, run_id: str) -> int:
    environment = os.environ | {"CROSSWIND_RUN_ID": run_id, "CROSSWIND_SPOOL": str(wanted.spool)}
    if wanted.workload:
        environment["CROSSWIND_WORKLOAD"] = wanted.workload
    with wanted.log.open("wb") if wanted.log else nullcontext() as log, _passing_on() as passed_on:
        try:
            process = subprocess.Popen(wanted.command, env=environment, stdout=log, stderr=log)
        except (OSError, ValueError) as error:
            raise InvalidInputError(f"run: {wanted.command[0]!r} cannot be started: {error}") from error
        passed_on.to(process)
        code = process.wait()
    return 128 - code if code < 0 else code


class _PassedOn:
    """Signals on their way to the program; those that came before it was there are kept for it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []

    def take(self, number: int, _frame: FrameType | None = None) -> None:
        """Passes a signal on, unless the terminal has sent it to the program, too."""
        if number in FROM_TERMINAL and _in_foreground():
            return
        if self._process is None:
            self._early.append(number)
        else:
            self._process.send_signal(number)

    def to(self, process: "subprocess.Popen[bytes]") -> None:
        """This is the program."""
        self._process = process
        for number in self._early:
            process.send_signal(number)


@contextmanager
def _passing_on() -> Iterator[_PassedOn]:
    passed_on = _PassedOn()
    if threading.current_thread() is not threading.main_thread():
        yield passed_on
        return
    heard = [number for number in PASSED_ON if signal.getsignal(number) is not signal.SIG_IGN]  # nohup stays nohup
    before = {number: signal.signal(number, passed_on.take) for number in heard}
    try:
        yield passed_on
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    """Whether a key of the terminal, such as Ctrl-C, signals this process and the program alike."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


@contextmanager
def _sampling(wanted: Launch) -> Iterator[None]:
    """An agent beside the program, unless another one samples this node into the same spool."""
    if wanted.agent_seconds is None:
        yield
        return
    settings = AgentSettings(wanted.spool, wanted.agent_seconds, run_directory=wanted.spool, node=node_name())
    stop = threading.Event()
    thread = threading.Thread(target=_sample, args=(settings, stop), name="crosswind-agent", daemon=True)
    thread.start()
    try:
        yield
    finally:
        time.sleep(TAIL_SECONDS)
        stop.set()
        thread.join()


def _sample(settings: AgentSettings, stop: threading.Event) -> None:
    try:
        run_agent(settings, stop)
    except ConflictError:
        logger.info("another agent samples this node into %s", settings.spool)
    except ProjectError as error:
        logger.warning("no node samples of this run: %s", error)

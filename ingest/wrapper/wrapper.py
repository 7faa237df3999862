"""`crosswind run -- CMD`: recording a program from outside; its output, signals and exit code pass unchanged."""

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from crosswind.data.schema.errors import (
    ConflictError,
    InvalidInputError,
    MalformedError,
    ProjectError,
    UnavailableError,
)
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.run import RunState, new_ulid
from crosswind.data.schema.trial import Configuration
from crosswind.ingest.agent.agent import run_agent
from crosswind.ingest.agent.settings import AgentSettings
from crosswind.ingest.injected import injected
from crosswind.ingest.kernel.node_facts import node_facts
from crosswind.ingest.probe.place import Place, node_name, system_name
from crosswind.ingest.reader.step_lines import line_pattern
from crosswind.ingest.spool.records import run_of, workload_name
from crosswind.ingest.spool.spool import SpoolWriter
from crosswind.ingest.wrapper.watched_output import watched_output

PASSED_ON = (
    *(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT),
    *(signal.SIGTSTP, signal.SIGCONT),
)
FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGCONT)
STOPS = (signal.SIGTSTP, signal.SIGCONT)
NEVER_STARTED = 127  # as shells say it
logger = logging.getLogger("crosswind")
TAIL_SECONDS = 0.2  # a last sweep after the program's end


@dataclass(frozen=True)
class Launch:
    """The program to run, and how it is recorded.

    With `agent_seconds` None an existing agent does the sampling; with `log` the program's output goes to that file.
    With `injects`, unchanged Python ranks that train are recorded; `step_lines` names or describes the lines of the
    output that report steps. The program also sees `environment`; the run is recorded with
    `configuration`, under `run_id` if that is given. `on_start` is called with the process, `on_signal` with every
    signal that arrives for it.
    """

    command: tuple[str, ...]
    spool: Path
    workload: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    agent_seconds: float | None = 1.0
    log: Path | None = None
    injects: bool = True
    step_lines: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    configuration: Configuration = field(default_factory=dict)
    run_id: str | None = None
    on_start: Callable[["subprocess.Popen[bytes]"], None] | None = None
    on_signal: Callable[[int], None] | None = None


@dataclass(frozen=True)
class Outcome:
    """The end of a program; a signal gives 128 + its number, as shells do."""

    run_id: str
    exit_code: int
    seconds: float


def launch(wanted: Launch) -> Outcome:
    """Run the program to its end and record it in the spool.

    Raises: InvalidInputError when there is no such program, UnavailableError when the spool does not take records.
    """
    if not wanted.command:
        raise InvalidInputError("run: expected a program after --, as in crosswind run -- torchrun train.py")
    if wanted.step_lines is not None:
        line_pattern(wanted.step_lines)
    run_id, begin = wanted.run_id or new_ulid(), time.time_ns()
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
    """Record how the program ended; its exit code is returned even if the disk refuses."""
    state = RunState.COMPLETED if exit_code == 0 else RunState.FAILED
    try:
        writer.append_record("run", {**record, "ended_ns": time.time_ns(), "exit_code": exit_code, "state": state})
        writer.close()
    except UnavailableError as error:
        logger.warning("the end of this run is not recorded: %s", error)


def _record(wanted: Launch, run_id: str) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "workload": wanted.workload or workload_name(_text(Path(wanted.command[0]).name)),
        "system": system_name(),
        "job_id": Place.from_environment().job_id,
        "nodes": [node_name()],
        "command": [_text(word) for word in wanted.command],
        "tags": dict(wanted.tags),
        "facts": Facts.of_valid(node_facts()).given,
    } | ({"configuration": dict(wanted.configuration)} if wanted.configuration else {})


def _require_acceptable(record: Mapping[str, Any]) -> None:
    try:
        run_of({name: value for name, value in record.items() if value is not None} | {"state": RunState.RUNNING.value})
    except MalformedError as error:
        raise InvalidInputError(f"run: {error}") from error


def _text(word: str) -> str:
    """Return a word of a command line as text, which its bytes need not be."""
    return os.fsencode(word).decode("utf-8", "replace")


def _run(wanted: Launch, run_id: str) -> int:
    with wanted.log.open("wb") if wanted.log else nullcontext() as log, _passing_on(wanted.on_signal) as passed_on:
        ends = (log.fileno(), log.fileno()) if log else (1, 2)
        lines = (wanted.spool, run_id, wanted.step_lines) if wanted.step_lines is not None else None
        with watched_output(ends, lines) if lines else nullcontext() as output:
            stdout, stderr = output.ends if output else (log, log)
            try:
                process = subprocess.Popen(
                    wanted.command, env=_environment(wanted, run_id), stdout=stdout, stderr=stderr
                )
            except (OSError, ValueError) as error:
                raise InvalidInputError(f"run: {wanted.command[0]!r} cannot be started: {error}") from error
            passed_on.to(process)
            if wanted.on_start:
                wanted.on_start(process)
            if output:
                output.let_go()
            code = process.wait()
            if output:
                passed_on.instead(output.give_up)
                output.drain()
    return 128 - code if code < 0 else code


def _environment(wanted: Launch, run_id: str) -> dict[str, str]:
    variables = {"CROSSWIND_RUN_ID": run_id, "CROSSWIND_SPOOL": str(wanted.spool)}
    if wanted.workload:
        variables["CROSSWIND_WORKLOAD"] = wanted.workload
    seen = os.environ | wanted.environment
    return seen | variables | (injected(seen) if wanted.injects else {"CROSSWIND_INJECT": "0"})


class _PassedOn:
    """Signals for the program; those that came before its start are kept for it."""

    def __init__(self, on_signal: Callable[[int], None] | None) -> None:
        self._on_signal = on_signal
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._otherwise: Callable[[int], None] | None = None

    def take(self, number: int, _frame: FrameType | None = None) -> None:
        """Pass a signal on, unless the terminal has sent it to the program, too."""
        if self._on_signal:
            self._on_signal(number)
        if self._otherwise and number not in STOPS:
            self._otherwise(number)
        elif number not in FROM_TERMINAL or not _in_foreground():
            self._pass_on(number)
        if number == signal.SIGTSTP:
            self._stop_here()

    def instead(self, action: Callable[[int], None]) -> None:
        """Call this from now on for signals that would end the program: it is over."""
        self._otherwise = action

    def _pass_on(self, number: int) -> None:
        if self._process is None:
            self._early.append(number)
        else:
            self._process.send_signal(number)

    def _stop_here(self) -> None:
        """Stop as a process without a handler of SIGTSTP does, until it is continued."""
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self.take)

    def to(self, process: "subprocess.Popen[bytes]") -> None:
        """Send the signals to this program."""
        self._process = process
        for number in self._early:
            process.send_signal(number)


@contextmanager
def _passing_on(on_signal: Callable[[int], None] | None) -> Iterator[_PassedOn]:
    passed_on = _PassedOn(on_signal)
    if threading.current_thread() is not threading.main_thread():
        yield passed_on
        return
    taken = [number for number in PASSED_ON if signal.getsignal(number) is not signal.SIG_IGN]  # nohup stays nohup
    before = {number: signal.signal(number, passed_on.take) for number in taken}
    try:
        yield passed_on
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    """Return whether a key of the terminal, such as Ctrl-C, signals this process and the program alike."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


@contextmanager
def _sampling(wanted: Launch) -> Iterator[None]:
    """Run an agent next to the program, unless another one samples this node into the same spool."""
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

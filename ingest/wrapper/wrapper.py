"""`crosswind run -- CMD`: recording a program from outside; its output, signals and exit code pass unchanged."""

import json
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
from crosswind.data.schema.redaction import redacted
from crosswind.data.schema.run import RunState, new_ulid
from crosswind.data.schema.trial import Configuration
from crosswind.ingest.agent.agent import run_agent
from crosswind.ingest.agent.settings import AgentSettings
from crosswind.ingest.capture.plan import FOLDER, folder_of
from crosswind.ingest.capture.planner import Planner, planning
from crosswind.ingest.capture.sending import Sending
from crosswind.ingest.capture.stored import Stored, stored
from crosswind.ingest.capture.wanted import Wanted
from crosswind.ingest.injected import injected
from crosswind.ingest.kernel.node_facts import node_facts
from crosswind.ingest.probe.identity import CONFIGURATION
from crosswind.ingest.probe.place import job_id, node_name, owner, system_name
from crosswind.ingest.reader.step_lines import line_pattern
from crosswind.ingest.spool.records import run_of, workload_name
from crosswind.ingest.spool.spool import SpoolWriter
from crosswind.ingest.wrapper.commit import CommitLookup
from crosswind.ingest.wrapper.defining import Rule
from crosswind.ingest.wrapper.described import Described, described
from crosswind.ingest.wrapper.ending import Ending, Watched, ending_of
from crosswind.ingest.wrapper.orphans import ended_with_us
from crosswind.ingest.wrapper.watched_output import watched_output

PASSED_ON = (
    *(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT),
    *(signal.SIGTSTP, signal.SIGCONT),
)
FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGCONT)
STOPS = (signal.SIGTSTP, signal.SIGCONT)
TO_STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
KINETO_LOG, KINETO_QUIET = "KINETO_LOG_LEVEL", "6"  # the profiler writes a line to stdout at its start and its stop
NEVER_STARTED = 127  # as shells say it
logger = logging.getLogger("crosswind")
COMMIT_SECONDS = 0.1  # for which the end of a short program waits for git
LAST_ANSWERS_SECONDS = 0.05  # for which the end of a job waits for slow sources of samples


@dataclass(frozen=True)
class Launch:
    """The program to run, and how it is recorded.

    With `agent_seconds` None an existing agent does the sampling; with `log` the program's output goes to that file.
    With `injects`, unchanged Python ranks that train are recorded; `step_lines` names or describes the lines of the
    output that report steps. The program also sees `environment`; the run is recorded with
    `configuration`, to which `rule` adds arguments of the command, under `run_id` if that is given. `on_start` is
    called with the process, `on_signal` with every signal that arrives for it. Where this process is killed, the
    program ends within `orphan_seconds`; with None it goes on. `captures` are traced, and kept in a folder of
    `traces`, named by the run.
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
    rule: Rule | None = None  # without one, the configuration is all there is
    run_id: str | None = None
    on_start: Callable[["subprocess.Popen[bytes]"], None] | None = None
    on_signal: Callable[[int], None] | None = None
    orphan_seconds: float | None = None
    captures: Wanted | None = None
    traces: Path = Path("traces")


@dataclass(frozen=True)
class Outcome:
    """The end of a program; a signal gives 128 + its number, as shells do."""

    run_id: str
    exit_code: int
    seconds: float
    state: RunState = RunState.COMPLETED
    failure: str | None = None  # one sentence
    no_steps: str | None = None  # why none were recorded, and what to do
    traces: str | None = None  # those that were captured, and the command that shows or stores them


def launch(wanted: Launch) -> Outcome:
    """Run the program to its end and record it in the spool.

    Raises: InvalidInputError when there is no such program, UnavailableError when the spool does not take records.
    """
    if not wanted.command:
        raise InvalidInputError("run: expected a program after --, as in crosswind run -- torchrun train.py")
    if wanted.step_lines is not None:
        line_pattern(wanted.step_lines)
    run_id, begin = wanted.run_id or new_ulid(), time.time_ns()
    facts = described(wanted.command, rule=wanted.rule, given=wanted.configuration)
    record = _record(wanted, run_id, facts)
    _require_acceptable(record)
    with SpoolWriter(wanted.spool, f"{run_id}-wrapper") as writer, _sampling(wanted):
        begun = record | {"state": RunState.RUNNING, "started_ns": begin}
        writer.append_record("run", begun)
        writer.seal()  # it is stored while the run goes on
        writer.append_record("run", begun)  # in a file of its own: if we are killed, it says that nobody ended the run
        writer.flush()
        commit = CommitLookup(facts.folder)
        try:
            with (
                ended_with_us(run_id, wanted.orphan_seconds),
                planning(wanted.spool, run_id, wanted.captures) as planner,
            ):
                exit_code, stopped_ns = _run(wanted, run_id, facts.configuration)
        except InvalidInputError:
            _note_end(writer, record, Ending(RunState.FAILED), NEVER_STARTED)
            raise
        ending = ending_of(wanted.spool, run_id, exit_code, stopped_ns=stopped_ns, watched=_watched(wanted))
        kept = _traces(planner, wanted) if planner else Stored()
        record["tags"] |= commit.facts(COMMIT_SECONDS) | kept.tags
        traces = Sending(writer, run_id, begin, time.time_ns()).send(kept.files)
        _note_end(writer, record, ending, exit_code)
    seconds = (time.time_ns() - begin) * 1e-9
    return Outcome(run_id, exit_code, seconds, ending.state, ending.failure_words, ending.no_steps, traces)


def _traces(planner: Planner, wanted: Launch) -> Stored:
    """Keep the run's traces in the store's folder."""
    try:
        kept = wanted.traces / planner.run_id
        return stored(planner.folder, kept, planner.why, planner.wanted.budget.size_bytes)
    except OSError as error:
        logger.warning("the traces of this run stay in %s: %s", planner.folder, error)
        return Stored()


def _note_end(writer: SpoolWriter, record: Mapping[str, Any], ending: Ending, exit_code: int) -> None:
    """Record how the program ended; its exit code is returned even if the disk refuses."""
    ended = {"ended_ns": time.time_ns(), "exit_code": exit_code, "state": ending.state}
    try:
        writer.append_record("run", {**record, **ended, "tags": record["tags"] | ending.tags})
        writer.close()
    except UnavailableError as error:
        logger.warning("the end of this run is not recorded: %s", error)


def _record(wanted: Launch, run_id: str, facts: Described) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "workload": wanted.workload or workload_name(facts.name),
        "system": system_name(),
        "job_id": job_id(),
        **owner(),
        "nodes": [node_name()],
        "command": facts.command,
        "tags": {**facts.tags, **{name: redacted(value) for name, value in wanted.tags.items()}},
        "facts": Facts.of_valid(node_facts()).given,
    } | ({"configuration": dict(facts.configuration)} if facts.configuration else {})


def _watched(wanted: Launch) -> Watched:
    return Watched(wanted.command, injects=wanted.injects, reads_lines=wanted.step_lines is not None)


def _require_acceptable(record: Mapping[str, Any]) -> None:
    try:
        run_of({name: value for name, value in record.items() if value is not None} | {"state": RunState.RUNNING.value})
    except MalformedError as error:
        raise InvalidInputError(f"run: {error}") from error


def _run(wanted: Launch, run_id: str, configuration: Configuration) -> tuple[int, int | None]:
    """Return the program's exit code, and the time of a signal to end, UTC ns; None without one."""
    with wanted.log.open("wb") if wanted.log else nullcontext() as log, _passing_on(wanted.on_signal) as passed_on:
        ends = (log.fileno(), log.fileno()) if log else (1, 2)
        lines = (wanted.spool, run_id, wanted.step_lines) if wanted.step_lines is not None else None
        with watched_output(ends, lines) if lines else nullcontext() as output:
            stdout, stderr = output.ends if output else (log, log)
            try:
                process = subprocess.Popen(
                    wanted.command, env=_environment(wanted, run_id, configuration), stdout=stdout, stderr=stderr
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
    return 128 - code if code < 0 else code, passed_on.stopped_ns


def _environment(wanted: Launch, run_id: str, configuration: Configuration) -> dict[str, str]:
    variables = {"CROSSWIND_RUN_ID": run_id, "CROSSWIND_SPOOL": str(wanted.spool)}
    if wanted.workload:
        variables["CROSSWIND_WORKLOAD"] = wanted.workload
    if wanted.captures:
        variables[FOLDER] = str(folder_of(wanted.spool, run_id))
        variables |= {} if KINETO_LOG in os.environ else {KINETO_LOG: KINETO_QUIET}
    if configuration:
        variables[CONFIGURATION] = json.dumps(dict(configuration))
    seen = os.environ | wanted.environment
    return seen | variables | (injected(seen) if wanted.injects else {"CROSSWIND_INJECT": "0"})


class _PassedOn:
    """Signals for the program; those that came before its start are kept for it."""

    def __init__(self, on_signal: Callable[[int], None] | None) -> None:
        self._on_signal = on_signal
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._otherwise: Callable[[int], None] | None = None
        self.stopped_ns: int | None = None

    def take(self, number: int, _frame: FrameType | None = None) -> None:
        """Pass a signal on, unless the terminal has sent it to the program, too: one that was there by then."""
        if number in TO_STOP and self.stopped_ns is None:
            self.stopped_ns = time.time_ns()
        if self._on_signal:
            self._on_signal(number)
        if self._otherwise and number not in STOPS:
            self._otherwise(number)
        elif self._process is None or number not in FROM_TERMINAL or not _in_foreground():
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
    settings = AgentSettings(
        wanted.spool,
        wanted.agent_seconds,
        run_directory=wanted.spool,
        node=node_name(),
        last_answers_seconds=LAST_ANSWERS_SECONDS,
    )
    stop = threading.Event()
    thread = threading.Thread(target=_sample, args=(settings, stop), name="crosswind-agent", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()  # which takes a last sweep
        thread.join()


def _sample(settings: AgentSettings, stop: threading.Event) -> None:
    try:
        run_agent(settings, stop)
    except ConflictError:
        logger.info("another agent samples this node into %s", settings.spool)
    except ProjectError as error:
        logger.warning("no node samples of this run: %s", error)

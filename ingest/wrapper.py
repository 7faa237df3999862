"""`crosswind run -- CMD`: a program's run, recorded from outside; its output, signals and exit code pass untouched."""

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from crosswind.data.errors import ConflictError, InvalidInputError, ProjectError
from crosswind.data.run import RunState, new_ulid
from crosswind.ingest.agent import AgentSettings, run_agent
from crosswind.ingest.probe.place import Place, node_name, system_name
from crosswind.ingest.spool import SpoolWriter

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT)
logger = logging.getLogger("crosswind")
TAIL_SECONDS = 0.2  # a last sweep after the program's end


@dataclass(frozen=True)
class Launch:
    """What is to be run and how it is recorded; `agent_seconds` None leaves sampling to an agent that is there."""

    command: tuple[str, ...]
    spool: Path
    workload: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    agent_seconds: float | None = 1.0
    quiet: bool = False


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
    run_id = new_ulid()
    with SpoolWriter(wanted.spool, f"{run_id}-wrapper") as writer, _sampling(wanted):
        begin = time.time_ns()
        record = _record(wanted, run_id)
        writer.append_record("run", record | {"state": RunState.RUNNING, "started_ns": begin})
        writer.flush()
        exit_code = _run(wanted, run_id)
        ended = {"ended_ns": time.time_ns(), "exit_code": exit_code}
        state = RunState.COMPLETED if exit_code == 0 else RunState.FAILED
        writer.append_record("run", record | ended | {"state": state})
    return Outcome(run_id, exit_code, (time.time_ns() - begin) * 1e-9)


def _record(wanted: Launch, run_id: str) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "workload": wanted.workload or Path(wanted.command[0]).name,
        "system": system_name(),
        "job_id": Place.from_environment().job_id,
        "nodes": [node_name()],
        "command": list(wanted.command),
        "tags": dict(wanted.tags),
    }


def _run(wanted: Launch, run_id: str) -> int:
    environment = os.environ | {"CROSSWIND_RUN_ID": run_id, "CROSSWIND_SPOOL": str(wanted.spool)}
    if wanted.workload:
        environment["CROSSWIND_WORKLOAD"] = wanted.workload
    output = subprocess.DEVNULL if wanted.quiet else None
    try:
        process = subprocess.Popen(wanted.command, env=environment, stdout=output)
    except OSError as error:
        raise InvalidInputError(f"run: {wanted.command[0]!r} cannot be started: {error.strerror}") from error
    with _passing_on(process):
        code = process.wait()
    return 128 - code if code < 0 else code


@contextmanager
def _passing_on(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    def pass_on(number: int, _frame: FrameType | None) -> None:
        process.send_signal(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, pass_on) for number in PASSED_ON}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _sampling(wanted: Launch) -> Iterator[None]:
    """An agent beside the program, unless another one samples this node into the same spool."""
    if wanted.agent_seconds is None:
        yield
        return
    stop = threading.Event()
    thread = threading.Thread(target=_sample, args=(wanted, stop), name="crosswind-agent", daemon=True)
    thread.start()
    try:
        yield
    finally:
        time.sleep(TAIL_SECONDS)
        stop.set()
        thread.join()


def _sample(wanted: Launch, stop: threading.Event) -> None:
    settings = AgentSettings(wanted.spool, wanted.agent_seconds or 1.0, run_directory=wanted.spool, node=node_name())
    try:
        run_agent(settings, stop)
    except ConflictError:
        logger.info("another agent samples this node into %s", wanted.spool)
    except ProjectError as error:
        logger.warning("no node samples of this run: %s", error)

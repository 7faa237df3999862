"""A pause of the rank for a time."""

import os
import select
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.lab.hosts import companion
from crosswind.ingest.lab.hosts.companion import Companion
from crosswind.ingest.lab.hosts.names import PROC
from crosswind.ingest.lab.injectors.injector import Target

STOP_SECONDS = 5.0  # a process in a system call that cannot be interrupted stops after it


class Pause:
    """A process next to the rank stops it and lets it go on, even if the lab has died by then."""

    kind: ClassVar[str] = "pause"
    unit: ClassVar[str] = "s"
    limits: ClassVar[tuple[float, float]] = (0.001, 600.0)

    def __init__(self) -> None:
        self._companion: Companion | None = None

    def start(self, target: Target, strength: float) -> int:
        """Stop the rank; it goes on by itself after this time. Raises: UnavailableError."""
        if self._companion is None:
            if not target.pids:
                raise UnavailableError(f"rank {target.rank}: none of its processes is known")
            self._companion = companion.start(pause, target.pids, strength)
        return time.time_ns()

    def stop(self) -> int:
        """Let the rank go on if it has not yet. Return when it did."""
        if self._companion is None:
            return time.time_ns()
        words = self._companion.release()
        self._companion = None
        return int(words) if words.strip().isdigit() else time.time_ns()


def pause(pids: list[int], seconds: float) -> None:
    """Stop these processes until the time is over or this process is released. Report when they went on."""
    processes = [os.pidfd_open(pid) for pid in pids]
    try:
        for process in processes:
            signal.pidfd_send_signal(process, signal.SIGSTOP)
        _wait_until_stopped(pids)
        companion.say_ready()
        select.select(companion.leash(), [], [], seconds)
    finally:
        for process in processes:
            with suppress(ProcessLookupError):  # it has been killed meanwhile
                signal.pidfd_send_signal(process, signal.SIGCONT)
    os.write(1, b"%d\n" % time.time_ns())


def _wait_until_stopped(pids: list[int]) -> None:
    deadline = time.monotonic() + STOP_SECONDS
    while not all(map(_is_stopped, pids)):
        if time.monotonic() > deadline:
            raise UnavailableError(f"processes {pids}: not stopped after {STOP_SECONDS:g} s")
        time.sleep(0.0005)


def _is_stopped(pid: int) -> bool:
    """Return whether every thread is stopped. Source: proc_pid_stat(5)."""
    return all(_state(thread) in "TtZX" for thread in (PROC / str(pid)).glob("task/*"))


def _state(thread: Path) -> str:
    try:
        return (thread / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"

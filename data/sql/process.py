"""Processes that run statements, as the server sees them: each runs one, and a server keeps the next one ready."""

import os
import subprocess
import sys
import threading
from contextlib import suppress
from typing import BinaryIO, cast

from crosswind.data.sql.stop import Stop

KEPT = ("LANG", "LC_ALL", "PYTHONPATH", "LD_LIBRARY_PATH")  # of the environment, which holds secrets
COMMAND = (sys.executable, "-P", "-m", "crosswind.data.sql.worker")
ENDING_SECONDS = 0.05  # that a process has, after its answer
IDLE_SECONDS = 120.0  # for which the next process is kept


class SqlProcess:
    """One process, ready for a question: `source` is the pipe to it, `answer` the one from it.

    Raises: OSError when made, where none can be started.
    """

    def __init__(self) -> None:
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        few_threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
        self._process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment | few_threads,
            cwd="/",
            start_new_session=True,  # a Ctrl-C in the terminal is the server's
        )
        self.source = cast(BinaryIO, self._process.stdin)
        self.answer = cast(BinaryIO, self._process.stdout)

    @property
    def pid(self) -> int:
        """Return its number."""
        return self._process.pid

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def is_alive(self) -> bool:
        """Return whether it has not ended yet."""
        return self._process.poll() is None

    def close(self) -> int:
        """End it, wait for that, and return its exit status; below 0 the signal that ended it."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(ENDING_SECONDS)
        self._process.kill()
        status = self._process.wait()
        for pipe in (self.source, self.answer):
            with suppress(OSError):
                pipe.close()
        return status


class SqlProcesses:
    """Gives out processes. One that `keeps` starts the next one beforehand, and ends it when nobody asks for long."""

    def __init__(self, *, keeps: bool = False) -> None:
        self._keeps = keeps
        self._lock = threading.Lock()
        self._next: SqlProcess | None = None
        self._timer: threading.Timer | None = None

    def take(self, stop: Stop) -> SqlProcess:
        """Return a process that nobody used, and that ends when the statement is stopped. Raises: OSError."""
        with self._lock:
            ready, self._next = self._next, None
        if ready is not None and not ready.is_alive():
            ready.close()
            ready = None
        process = ready or SqlProcess()
        stop.add(process.kill)
        return process

    def prepare(self) -> None:
        """Start the next process, if it is to be kept. Raises: OSError."""
        if not self._keeps:
            return
        fresh = SqlProcess()
        with self._lock:
            is_wanted = self._next is None
            if is_wanted:
                self._next = fresh
            if self._timer is not None:
                self._timer.cancel()
            self._timer = threading.Timer(IDLE_SECONDS, self.close)
            self._timer.daemon = True
            self._timer.start()
        if not is_wanted:
            fresh.close()

    def close(self) -> None:
        """End the process that is kept."""
        with self._lock:
            ready, self._next = self._next, None
            if self._timer is not None:
                self._timer.cancel()
        if ready is not None:
            ready.kill()
            ready.close()

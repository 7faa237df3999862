"""Servers in processes of their own, on one PostgreSQL catalog and one lake, that tests kill."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx2
import pytest
from tests.conftest import free_port

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class ServerProcess:
    """`crosswind serve` at a port of its own, started again whenever it was killed."""

    def __init__(self, home: Path, database: str, *words: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.kills = 0
        self.peak_bytes = 0
        self.cpu_seconds = 0.0
        self._words = words
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CROSSWIND_")}
        own = {"CROSSWIND_HOME": str(home), "CROSSWIND_DATABASE": database, "OMP_NUM_THREADS": "1"}
        self._environment = kept | own

    @property
    def pid(self) -> int:
        """Return the id of its process."""
        return self._process.pid

    def start(self) -> None:
        """Start it; it may not answer yet."""
        command = [sys.executable, "-m", "crosswind.cli.main", "serve", "--port", str(self.port), "--json"]
        self._process = subprocess.Popen(
            [*command, *self._words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self._environment
        )

    def await_ready(self) -> None:
        """Return once it answers."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.1)
        pytest.fail("it does not listen")

    def client(self) -> httpx2.Client:
        """Return a client of it."""
        return httpx2.Client(base_url=self.url, timeout=30)

    def kill(self) -> None:
        """Kill it as the kernel does for lack of memory, and note what it used."""
        self.note_use()
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self.kills += 1

    def note_use(self) -> None:
        """Note the largest size so far, and add what it has computed. Source: proc_pid_status(5), proc_pid_stat(5)."""
        if self.is_running:
            status = Path(f"/proc/{self.pid}/status").read_text()
            self.peak_bytes = max(self.peak_bytes, int(status.partition("VmHWM:")[2].split()[0]) * 1024)
            ticks = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
            self.cpu_seconds += sum(map(int, ticks)) / TICKS_PER_SECOND

    @property
    def is_running(self) -> bool:
        """Return whether its process is there."""
        return self._process.poll() is None

    def restart(self) -> None:
        """Start it again, unless it still runs: it ends by itself where it starts while the catalog is away."""
        if not self.is_running:
            self.start()


@contextmanager
def serving_all(*servers: ServerProcess) -> Iterator[None]:
    """Have servers answer within, and killed in the end."""
    with ExitStack() as stack:
        for server in servers:
            server.start()
            stack.callback(server.kill)
        for server in servers:
            server.await_ready()
        yield

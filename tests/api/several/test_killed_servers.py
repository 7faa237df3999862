"""A fleet ships to two servers on one PostgreSQL catalog and one lake, which are killed again and again."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from tests.api.several.fleet import COUNTERS, Fleet
from tests.conftest import free_port
from tests.postgres import Postgres, postgres

from crosswind.data.store.store import Store

AGENTS = int(os.environ.get("SOAK_AGENTS", "1000"))
MEMORY_BYTES = 600e6
KILL_SECONDS = 20.0
SECONDS = float(os.environ.get("SOAK_SECONDS", "60"))  # `make soak` gives ten minutes


class Served:
    """`crosswind serve` at a port of its own, started again whenever it was killed."""

    def __init__(self, home: Path, database: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.kills = 0
        self.peak_bytes = 0
        self._environment = {"CROSSWIND_HOME": str(home), "CROSSWIND_DATABASE": database, "OMP_NUM_THREADS": "1"}

    def start(self) -> None:
        """Start it; it may not answer yet."""
        command = [sys.executable, "-m", "crosswind.cli.main", "serve", "--port", str(self.port), "--json"]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CROSSWIND_")}
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=kept | self._environment
        )

    def await_ready(self) -> None:
        """Return once it answers."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.1)
        pytest.fail("it does not listen")

    def kill(self) -> None:
        """Kill it as the kernel does for lack of memory, and note how much it had."""
        self.note_memory()
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self.kills += 1

    def note_memory(self) -> None:
        """Note the largest size so far. Source: proc_pid_status(5)."""
        if self.is_running:
            status = Path(f"/proc/{self._process.pid}/status").read_text()
            self.peak_bytes = max(self.peak_bytes, int(status.partition("VmHWM:")[2].split()[0]) * 1024)

    @property
    def is_running(self) -> bool:
        """Return whether its process is there."""
        return self._process.poll() is None

    def restart(self) -> None:
        """Start it again, unless it still runs: it ends by itself where it starts while the catalog is away."""
        if not self.is_running:
            self.start()


@contextmanager
def two_servers(home: Path, database: str) -> Iterator[list[Served]]:
    servers = [Served(home, database) for _ in range(2)]
    with ExitStack() as stack:
        for server in servers:
            server.start()
            stack.callback(server.kill)
        for server in servers:
            server.await_ready()
        yield servers


def disturb(servers: list[Served], database: Postgres, seconds: float, over: threading.Event) -> int:
    """Kill each server every 20 s, ten after the other, and restart PostgreSQL twice; return how often it was."""
    began, turn, restarts = time.monotonic(), 0, 0
    while not over.wait(KILL_SECONDS / 2) and time.monotonic() - began < seconds:
        if time.monotonic() - began > seconds * (restarts + 1) / 3 and restarts < 2:
            database.stop()
            database.start()
            restarts += 1
        server = servers[turn % 2]
        if server.is_running:
            server.kill()
        for one in servers:
            one.restart()
        turn += 1
    return restarts


@pytest.mark.thorough
@pytest.mark.host
def test_nothing_acknowledged_is_lost_or_doubled(tmp_path: Path) -> None:
    over, restarts = threading.Event(), []
    with postgres(free_port()) as database:
        url = f"{database.url}/postgres"
        Store.open(tmp_path / "home", database=url).close()
        with two_servers(tmp_path / "home", url) as servers:
            fleet = Fleet(tmp_path / "fleet", AGENTS, [server.url for server in servers])
            disturbing = threading.Thread(target=lambda: restarts.append(disturb(servers, database, SECONDS, over)))
            disturbing.start()
            try:
                waiting = fleet.run(SECONDS, over)
            finally:
                over.set()
                disturbing.join()
        with Store.open(tmp_path / "home", database=url) as store, store.lake.connect() as connection:
            stored = connection.execute("select node, ts_ns from load order by all").fetchall()
        rejected = list((tmp_path / "fleet").glob("*/*.rejected"))
    peaks = [server.peak_bytes // 1_000_000 for server in servers]
    report = f"{len(stored)} rows of {COUNTERS} values, kills {[server.kills for server in servers]}, peaks {peaks} MB"
    sys.stdout.write(f"{report}, {fleet.sweeps / SECONDS:.2f} sweeps a second of each agent\n")
    assert (waiting, rejected, restarts) == (0, [], [2])
    assert stored == fleet.written()
    assert all(server.kills >= 2 and server.peak_bytes < MEMORY_BYTES for server in servers)

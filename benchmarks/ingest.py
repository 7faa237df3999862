"""Segments over HTTP into the lake: values a second of the server's processor time, many clients at once."""

import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.segments import VALUES, write_segment
from crosswind.data.store import Store
from crosswind.ingest.ship.shipper import Shipper

CLIENTS = 8
MINUTES = 8  # segments of each client; the first is not measured: it defines the sets
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        nodes = [f"node{number}" for number in range(CLIENTS)]
        with _server(folder / "home") as (url, pid):
            _ship(_written(folder / "first", nodes, range(1)), url)
            spools = _written(folder / "rest", nodes, range(1, MINUTES))
            began, busy = time.perf_counter(), cpu_seconds(pid)
            shippers = _ship(spools, url)
            seconds, busy = time.perf_counter() - began, cpu_seconds(pid) - busy
        stored = _stored(folder / "home")
    values = CLIENTS * (MINUTES - 1) * VALUES
    if stored != CLIENTS * MINUTES:
        raise SystemExit(f"{stored} batches are stored, expected {CLIENTS * MINUTES}")
    figures = {
        "values": values,
        "values_per_second": round(values / seconds),
        "values_per_server_cpu_second": round(values / busy),
        "server_cpu_milliseconds_per_segment": round(busy / (CLIENTS * (MINUTES - 1)) * 1e3, 1),
        "sent_bytes_per_value": round(sum(each.shipped.sent_bytes for each in shippers) / values, 2),
        "clients": CLIENTS,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
    }
    for figure, value in figures.items():
        print(f"{figure:<40} {value}")
    print(json.dumps(figures))


@contextmanager
def _server(home: Path) -> Iterator[tuple[str, int]]:
    """A real `crosswind serve` over a store; where it answers, and its pid."""
    command = [sys.executable, "-m", "crosswind.cli.main", "serve", "--port", "0", "--json"]
    environment = {**os.environ, "CROSSWIND_HOME": str(home)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout
        try:
            yield json.loads(process.stdout.readline())["url"], process.pid
        finally:
            process.terminate()


def _written(folder: Path, nodes: list[str], minutes: range) -> list[Path]:
    for node in nodes:
        for minute in minutes:
            write_segment(folder / node, node, minute)
    return [folder / node for node in nodes]


def _ship(spools: list[Path], url: str) -> list[Shipper]:
    shippers = [Shipper(spool, url) for spool in spools]
    threads = [threading.Thread(target=shipper.ship_all) for shipper in shippers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return shippers


def cpu_seconds(pid: int) -> float:
    """Processor time of a process, in user and kernel mode. Source: proc_pid_stat(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def _stored(home: Path) -> int:
    with Store.open(home) as store, store.catalog.read() as session:
        return session.ingested().batches


if __name__ == "__main__":
    main()

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
from crosswind.data.store.store import Store
from crosswind.ingest.ship.client import Client
from crosswind.ingest.ship.pack import pack, packings
from crosswind.ingest.ship.shipper import MEDIA, PATH
from crosswind.ingest.spool.spool import batch_id

Request = tuple[bytes, dict[str, str]]

CLIENTS = 8
MINUTES = 8  # segments of each client; the first is not measured: it defines the sets
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first, rest = _packed(folder / "first", range(1)), _packed(folder / "rest", range(1, MINUTES))
        with server(folder / "home") as (url, pid):
            _send(first, url)
            began, busy = time.perf_counter(), cpu_seconds(pid)
            _send(rest, url)
            seconds, busy = time.perf_counter() - began, cpu_seconds(pid) - busy
        stored = _stored(folder / "home")
    if stored != CLIENTS * MINUTES:
        raise SystemExit(f"{stored} batches are stored, expected {CLIENTS * MINUTES}")
    segments = CLIENTS * (MINUTES - 1)
    values = segments * VALUES
    figures = {
        "values": values,
        "values_per_second": round(values / seconds),
        "values_per_server_cpu_second": round(values / busy),
        "server_cpu_milliseconds_per_segment": round(busy / segments * 1e3, 1),
        "sent_bytes_per_value": round(sum(len(body) for requests in rest for body, _ in requests) / values, 2),
        "clients": CLIENTS,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
    }
    for figure, value in figures.items():
        print(f"{figure:<40} {value}")
    print(json.dumps(figures))


@contextmanager
def server(home: Path) -> Iterator[tuple[str, int]]:
    """A real `crosswind serve` over a store; where it answers, and its pid."""
    command = [sys.executable, "-m", "crosswind.cli.main", "serve", "--port", "0", "--json"]
    environment = {**os.environ, "CROSSWIND_HOME": str(home)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout
        try:
            yield json.loads(process.stdout.readline())["url"], process.pid
        finally:
            process.terminate()


def _packed(folder: Path, minutes: range) -> list[list[Request]]:
    """For each client what it will send, packed beforehand: its processor time is not the server's."""
    coding = packings()[0]
    requests: list[list[Request]] = []
    for number in range(CLIENTS):
        paths = [write_segment(folder / str(number), f"node{number}", minute) for minute in minutes]
        headers = [
            {"Content-Type": MEDIA, "Crosswind-Batch": batch_id(path), "Crosswind-Segment": path.name}
            | {"Content-Encoding": coding}
            for path in paths
        ]
        bodies = [pack(path.read_bytes(), coding) for path in paths]
        requests.append(list(zip(bodies, headers, strict=True)))
    return requests


def _send(requests: list[list[Request]], url: str) -> None:
    threads = [threading.Thread(target=_send_one, args=(client_requests, url)) for client_requests in requests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _send_one(requests: list[Request], url: str) -> None:
    client = Client(url, None)
    for body, headers in requests:
        answer = client.post(PATH, body, headers)
        assert answer.status == 201, answer
    client.close()


def cpu_seconds(pid: int) -> float:
    """Processor time of a process, in user and kernel mode. Source: proc_pid_stat(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def peak_bytes(pid: int) -> int:
    """The largest resident size of a process so far. Source: proc_pid_status(5)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def _stored(home: Path) -> int:
    with Store.open(home) as store, store.catalog.read() as session:
        return session.ingested().batches


if __name__ == "__main__":
    main()

"""Ingest by 1, 2 and 4 servers of one PostgreSQL and one lake: processor time a value."""

import os
import shutil
import statistics
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.cluster.parts import postgres, server
from benchmarks.ingest import TICKS_PER_SECOND, Request, cpu_seconds, peak_bytes
from benchmarks.segments import VALUES, write_segment
from crosswind.data.store.store import Store
from crosswind.ingest.ship.client import Client
from crosswind.ingest.ship.pack import pack, packings
from crosswind.ingest.ship.shipper import MEDIA, PATH
from crosswind.ingest.spool.spool import batch_id

SERVERS = (1, 2, 4)
CLIENTS = 8
MINUTES = int(os.environ.get("CROSSWIND_BENCH_MINUTES", "6"))  # segments of each client; the first is not measured
ROUNDS = int(os.environ.get("CROSSWIND_BENCH_ROUNDS", "3"))  # of which the median counts
TOKEN = "bench" * 8
Row = dict[str, float]


def figures(folder: Path) -> dict[str, object]:
    """Return values a second of processor time of the servers, of PostgreSQL, and both relative to one server."""
    requests = [_packed(folder / "spool", number) for number in range(CLIENTS)]
    rows: dict[int, list[Row]] = {count: [] for count in SERVERS}
    for turn in range(ROUNDS):  # in turns, so that what else the machine does meets all alike
        for count in SERVERS:
            rows[count].append(_round(folder / f"round-{turn}-{count}", count, requests))
    middle = {count: _middle(some) for count, some in rows.items()}
    alone = middle[1]
    answer: dict[str, object] = {}
    for count, row in middle.items():
        answer |= {f"ingest_{count}_servers_{name}": round(value, 3) for name, value in row.items()}
        relative = row["server_cpu_nanoseconds_a_value"] / alone["server_cpu_nanoseconds_a_value"]
        answer[f"ingest_{count}_servers_relative"] = round(relative, 3)
    return answer


def _middle(rows: list[Row]) -> Row:
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}


def _round(folder: Path, count: int, requests: list[list[Request]]) -> Row:
    home = folder / "store"
    with ExitStack() as kept:
        database, postmaster = kept.enter_context(postgres(folder / "postgres"))
        environment = {"CROSSWIND_HOME": str(home), "CROSSWIND_DATABASE": database, "CROSSWIND_TOKEN": TOKEN}
        servers = [kept.enter_context(server(folder / f"server-{place}", environment)) for place in range(count)]
        urls, pids = [f"http://127.0.0.1:{port}" for port, _ in servers], [pid for _, pid in servers]
        _send([one[:1] for one in requests], urls)  # it defines the sets
        began, busy, base = time.perf_counter(), sum(map(cpu_seconds, pids)), tree_seconds(postmaster)
        _send([one[1:] for one in requests], urls)
        seconds, busy = time.perf_counter() - began, sum(map(cpu_seconds, pids)) - busy
        base = tree_seconds(postmaster) - base
        peak = max(map(peak_bytes, pids))
        _check(home, database)
    shutil.rmtree(folder)
    values = CLIENTS * (MINUTES - 1) * VALUES
    return {
        "values_a_second": values / seconds,
        "values_a_server_cpu_second": values / busy,
        "server_cpu_nanoseconds_a_value": busy / values * 1e9,
        "postgres_cpu_nanoseconds_a_value": base / values * 1e9,
        "peak_megabytes": peak / 1e6,
    }


def _check(home: Path, database: str) -> None:
    with Store.open(home, database=database) as store, store.catalog.read() as session:
        stored = session.ingested().batches
    if stored != CLIENTS * MINUTES:
        raise SystemExit(f"{stored} batches are stored, expected {CLIENTS * MINUTES}")


def tree_seconds(pid: int) -> float:
    """Processor time of a process, of its children, and of those that ended. Source: proc_pid_stat(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ended = (int(fields[13]) + int(fields[14])) / TICKS_PER_SECOND
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return cpu_seconds(pid) + ended + sum(cpu_seconds(int(child)) for child in children)


def _packed(spool: Path, number: int) -> list[Request]:
    coding = packings()[0]
    paths = [write_segment(spool / str(number), f"node{number}", minute) for minute in range(MINUTES)]
    common = {"Content-Type": MEDIA, "Content-Encoding": coding}
    heads = [{"Crosswind-Batch": batch_id(path), "Crosswind-Segment": path.name} | common for path in paths]
    return [(pack(path.read_bytes(), coding), head) for path, head in zip(paths, heads, strict=True)]


def _send(requests: list[list[Request]], urls: list[str]) -> None:
    """Send what each client has to its server, all clients at once."""
    refused: list[str] = []
    places = [(some, urls[place % len(urls)], refused) for place, some in enumerate(requests)]
    threads = [threading.Thread(target=_send_one, args=place) for place in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if refused:
        raise SystemExit(f"{len(refused)} batches were refused: {refused[0]}")


def _send_one(requests: list[Request], url: str, refused: list[str]) -> None:
    client = Client(url, TOKEN)
    for body, headers in requests:
        answer = client.post(PATH, body, headers)
        if answer.status != 201:
            refused.append(str(answer))
    client.close()

"""Ingest by 1, 2 and 4 servers of one PostgreSQL and one lake: processor time a value.

Each server has 8 clients, as a server is added where there is more to do; and once two servers share these 8. What
waits in a server is stored together, so servers with less to do cost more a value.
"""

import os
import shutil
import statistics
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from benchmarks.cluster.parts import KEYS, lake_address, object_store, postgres, server
from benchmarks.ingest import TICKS_PER_SECOND, Request, cpu_seconds, peak_bytes
from benchmarks.segments import START_NS, VALUES, write_segment
from crosswind.client.installed_store import open_store
from crosswind.data.lake.compaction import compact
from crosswind.data.lake.survey import survey
from crosswind.data.store.store import Store
from crosswind.ingest.ship.client import Client
from crosswind.ingest.ship.pack import pack, packings
from crosswind.ingest.ship.shipper import MEDIA, PATH
from crosswind.ingest.spool.spool import batch_id
from crosswind.settings import Settings

CLIENTS = 8  # of one server
MINUTES = int(os.environ.get("CROSSWIND_BENCH_MINUTES", "6"))  # segments of each client; the first is not measured
ROUNDS = int(os.environ.get("CROSSWIND_BENCH_ROUNDS", "3"))  # of which the median counts
LATER_NS = 400 * 86_400 * 10**9
TOKEN = "bench" * 8
Row = dict[str, float]


@dataclass(frozen=True)
class Case:
    """So many servers, whose lake is in a folder or in an object store; `is_shared`: the clients of one for all."""

    servers: int
    in_s3: bool = False
    is_shared: bool = False

    def __str__(self) -> str:
        return f"{self.servers}_servers{'_s3' if self.in_s3 else ''}{'_sharing' if self.is_shared else ''}"

    @property
    def clients(self) -> int:
        """Return the number of clients of all servers."""
        return CLIENTS if self.is_shared else self.servers * CLIENTS


CASES = (ALONE := Case(1), Case(2), Case(4), Case(2, is_shared=True), Case(2, in_s3=True))


def figures(folder: Path) -> dict[str, object]:
    """Return processor time of the servers and of PostgreSQL a value, relative to one server, and bytes a value."""
    requests = [_packed(folder / "spool", number) for number in range(max(case.clients for case in CASES))]
    rows: dict[Case, list[Row]] = {case: [] for case in CASES}
    for turn in range(ROUNDS):  # in turns, so that what else the machine does meets all alike
        for case in CASES:
            rows[case].append(_round(folder / f"round-{turn}-{case}", case, requests[: case.clients]))
    middle = {case: _middle(some) for case, some in rows.items()}
    alone = middle[ALONE]["server_cpu_nanoseconds_a_value"]
    answer: dict[str, object] = {}
    for case, row in middle.items():
        answer |= {f"ingest_{case}_{name}": round(value, 3) for name, value in row.items()}
        answer[f"ingest_{case}_relative"] = round(row["server_cpu_nanoseconds_a_value"] / alone, 3)
    return answer


def _middle(rows: list[Row]) -> Row:
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}


def _round(folder: Path, case: Case, requests: list[list[Request]]) -> Row:
    home = folder / "store"
    with ExitStack() as kept:
        database, postmaster = kept.enter_context(postgres(folder / "postgres"))
        environment = {"CROSSWIND_HOME": str(home), "CROSSWIND_DATABASE": database, "CROSSWIND_TOKEN": TOKEN}
        if case.in_s3:
            environment |= {"CROSSWIND_LAKE": lake_address(kept.enter_context(object_store(folder / "s3"))), **KEYS}
        running, places = kept.enter_context(ExitStack()), range(case.servers)
        servers = [running.enter_context(server(folder / f"server-{place}", environment)) for place in places]
        urls, pids = [f"http://127.0.0.1:{port}" for port, _ in servers], [pid for _, pid in servers]
        _send([one[:1] for one in requests], urls)  # it defines the sets
        began, busy, base = time.perf_counter(), sum(map(cpu_seconds, pids)), tree_seconds(postmaster)
        _send([one[1:] for one in requests], urls)
        seconds, busy = time.perf_counter() - began, sum(map(cpu_seconds, pids)) - busy
        base = tree_seconds(postmaster) - base
        peak = max(map(peak_bytes, pids))
        running.close()  # they would compact as well
        stored = _stored(environment, case.clients)
    shutil.rmtree(folder)
    values = case.clients * (MINUTES - 1) * VALUES
    return stored | {
        "values_a_second": values / seconds,
        "server_cpu_nanoseconds_a_value": busy / values * 1e9,
        "postgres_cpu_nanoseconds_a_value": base / values * 1e9,
        "peak_megabytes": peak / 1e6,
    }


def _stored(environment: dict[str, str], clients: int) -> Row:
    """Compact what is stored; return bytes a value, and what compaction costs. Raises: SystemExit, if batches lack."""
    with mock.patch.dict(os.environ, environment), open_store(Settings.from_environment()) as store:
        with store.catalog.read() as session:
            stored = session.ingested().batches
        if stored != clients * MINUTES:
            raise SystemExit(f"{stored} batches are stored, expected {clients * MINUTES}")
        values, begin = clients * MINUTES * VALUES, time.process_time()
        files, before = _size(store)
        compact(store.lake, settle_seconds=-1, now_ns=START_NS + LATER_NS)
        took = time.process_time() - begin
        _, after = _size(store)
    sizes = {"bytes_a_value_as_they_came": before / values, "bytes_a_value": after / values, "files": files}
    return sizes | {"compaction_cpu_nanoseconds_a_value": took / values * 1e9, "batches": stored}


def _size(store: Store) -> tuple[int, int]:
    answer = survey(store.lake)
    if answer.problems:
        raise SystemExit(str(answer.problems[0]))
    return sum(one.files for one in answer.sets), sum(one.bytes for one in answer.sets)


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

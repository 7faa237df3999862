"""1,000 agents, each on its own connection, send a batch at the same moment: is all stored, how soon, at what cost?

Once with the batches of one sweep (1000 values of 15 metric sets), once with those of a minute. CPU seconds are the
server's; waits are from the moment when all begin to the last byte of an answer.
"""

import asyncio
import json
import os
import resource
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from benchmarks.ingest import cpu_seconds, peak_bytes, server
from benchmarks.saturated import request
from benchmarks.segments import VALUES, write_segment
from crosswind.data.store.store import Store
from crosswind.ingest.ship.pack import pack, packings
from crosswind.ingest.ship.shipper import MEDIA, PATH
from crosswind.ingest.spool.spool import batch_id

AGENTS = int(os.environ.get("CROSSWIND_BENCH_AGENTS", "1000"))
FORMS = {"sweep": 1, "minute": 60}


def main() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    figures: dict[str, float] = {"agents": AGENTS}
    for form, sweeps in FORMS.items():
        figures |= {f"{form}_{name}": value for name, value in _figures(sweeps).items()}
    for figure, value in figures.items():
        print(f"{figure:<40} {value}")
    print(json.dumps(figures))


def _figures(sweeps: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        home = Path(name) / "home"
        first, *rest = (_packed(Path(name), number, sweeps) for number in range(AGENTS + 1))
        with server(home) as (url, pid):
            port = urlsplit(url).port or 0
            asyncio.run(_send_all(port, [first]))  # it defines the sets
            busy = cpu_seconds(pid)
            waits = asyncio.run(_send_all(port, rest))
            busy, peak = cpu_seconds(pid) - busy, peak_bytes(pid)
        with Store.open(home) as store, store.catalog.read() as session:
            stored = session.ingested().batches
    if stored != AGENTS + 1:
        raise SystemExit(f"{stored} batches are stored, expected {AGENTS + 1}")
    return {
        "values_per_batch": VALUES // 60 * sweeps,
        "p50_seconds": round(float(np.median(waits)), 2),
        "p99_seconds": round(float(np.quantile(waits, 0.99)), 2),
        "server_cpu_milliseconds_per_batch": round(busy / AGENTS * 1e3, 2),
        "server_peak_megabytes": round(peak / 1e6),
    }


def _packed(folder: Path, number: int, sweeps: int) -> bytes:
    """The request of one agent; who packs it is not the server."""
    path = write_segment(folder / str(number), f"node{number}", 0, sweeps)
    coding = packings()[0]
    headers = {"Crosswind-Batch": batch_id(path), "Crosswind-Segment": path.name, "Content-Encoding": coding}
    return request("POST", PATH, pack(path.read_bytes(), coding), headers | {"Content-Type": MEDIA})


async def _send_all(port: int, requests: list[bytes]) -> list[float]:
    opened = await asyncio.gather(*(asyncio.open_connection("127.0.0.1", port) for _ in requests))
    began = time.perf_counter()
    return list(await asyncio.gather(*(_send(*one, body, began) for one, body in zip(opened, requests, strict=True))))


async def _send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes, began: float) -> float:
    writer.write(body)
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 201 " not in head.partition(b"\r\n")[0]:
        raise SystemExit(f"{head!r} {await reader.read(500)!r}")
    waited = time.perf_counter() - began
    writer.close()
    return waited


if __name__ == "__main__":
    main()

"""Prometheus' remote-write into the lake: samples a second of the server's processor time, many senders at once."""

import json
import os
import platform
import struct
import tempfile
import threading
import time
from pathlib import Path

import pyarrow as pa

from benchmarks.ingest import cpu_seconds, server
from crosswind.data.store.store import Store
from crosswind.ingest.ship.client import Client

PATH = "/v1/ingest/prometheus"
HEADERS = {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy"}
SENDERS = 8  # of one Prometheus, that share its series among them
SAMPLES = 500_000
SIZES = (2_000, 10_000)  # samples of a request: what Prometheus sends, and what docs/readers/prometheus.md asks for
BEGAN_MS = 1_790_000_000_000


def main() -> None:
    figures: dict[str, object] = {}
    for size in SIZES:
        with tempfile.TemporaryDirectory() as name, server(Path(name)) as (url, pid):
            rounds = SAMPLES // size // SENDERS
            _send(url, [[_request(sender, 0, size)] for sender in range(SENDERS)])  # the series become known
            bodies = [[_request(sender, turn, size) for turn in range(1, rounds + 1)] for sender in range(SENDERS)]
            began, busy = time.perf_counter(), cpu_seconds(pid)
            _send(url, bodies)
            seconds, busy = time.perf_counter() - began, cpu_seconds(pid) - busy
            samples = rounds * SENDERS * size
            figures[f"samples_per_server_cpu_second_{size}"] = round(samples / busy)
            figures[f"samples_per_second_{size}"] = round(samples / seconds)
            stored = _stored(Path(name))
        if stored != samples + SENDERS * size:
            raise SystemExit(f"{stored} samples are stored, expected {samples + SENDERS * size}")
    figures["machine"] = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    for figure, value in figures.items():
        print(f"{figure:<40} {value}")
    print(json.dumps(figures))


def _send(url: str, bodies: list[list[bytes]]) -> None:
    threads = [threading.Thread(target=_send_one, args=(url, sender_bodies)) for sender_bodies in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _send_one(url: str, bodies: list[bytes]) -> None:
    client = Client(url, None)
    for body in bodies:
        answer = client.post(PATH, body, HEADERS)
        assert answer.status == 204, answer
    client.close()


def _request(sender: int, turn: int, size: int) -> bytes:
    """Return what a sender sends of its series at one time."""
    ms = BEGAN_MS + 15_000 * turn
    series = (_series(sender, number, (number * 7 + 1500 * turn) / 100, ms) for number in range(size))
    packed: bytes = pa.compress(b"".join(series), codec="snappy", asbytes=True)
    return packed


def _series(sender: int, number: int, value: float, ms: int) -> bytes:
    labels = {
        "__name__": f"node_metric_{number % 300}_seconds_total",
        "cpu": str(number % 64),
        "instance": f"node{sender:02d}{number // 1000:03d}:9100",
        "job": "node",
        "mode": f"mode{number}",
    }
    named = (_field(1, _field(1, name.encode()) + _field(2, text.encode())) for name, text in labels.items())
    sample = _field(2, b"\x09" + struct.pack("<d", value) + b"\x10" + _varint(ms))
    return _field(1, b"".join(named) + sample)


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + _varint(number >> 7)


def _stored(home: Path) -> int:
    with Store.open(home) as store:
        return int(store.lake.frame("select count(*) as rows from series")["rows"][0])


if __name__ == "__main__":
    main()

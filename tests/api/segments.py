"""Sealed segments for tests, and what a sender says of them."""

import json
import struct
import zlib
from pathlib import Path

from crosswind.data.schema.metric import NODE_KEYS, Column, Kind, MetricSet
from crosswind.data.store.store import Store
from crosswind.ingest.spool.segment import SweepRows
from crosswind.ingest.spool.spool import SpoolWriter, batch_id, sealed_segments

HEAT = MetricSet("heat", "a sensor", (*NODE_KEYS, Column("heat_celsius", "heat", Kind.GAUGE, scale=0.1)))
MEDIA = "application/vnd.crosswind.segment"


def segment(spool: Path, origin: str = "agent.n1", first: int = 0, rows: int = 3) -> Path:
    """A segment of so many rows, numbered from `first` on by their time."""
    with SpoolWriter(spool, origin) as writer:
        numbers = list(range(first, first + rows))
        columns = {"ts_ns": numbers, "node": [origin] * rows, "device": ["cpu0"] * rows, "heat_celsius": numbers}
        writer.append_rows(HEAT, columns)
    return sealed_segments(spool)[-1]


def sweeps(spool: Path, node: str, count: int = 3) -> Path:
    """A segment of so many sweeps of a node, as its agent writes them."""
    with SpoolWriter(spool, f"agent.{node}") as writer:
        for ts_ns in range(count):
            writer.append_sweep([SweepRows(HEAT, ts_ns, ts_ns, node, "boot", [["cpu0", 7]])])
    return sealed_segments(spool)[-1]


def frames(*values: object) -> bytes:
    """The content of a segment that says these values."""
    payloads = [json.dumps(value).encode() for value in values]
    return b"".join(struct.pack("<II", len(payload), zlib.crc32(payload)) + payload for payload in payloads)


def headers_of(path: Path, coding: str = "identity") -> dict[str, str]:
    """Return the headers that the sender of a segment gives it."""
    said = {"Crosswind-Batch": batch_id(path), "Crosswind-Segment": path.name}
    return {**said, "Content-Type": MEDIA, "Content-Encoding": coding}


def stored_rows(home: Path) -> list[tuple[str, int]]:
    """Node and time of every stored row, sorted; doubled rows are there twice."""
    with Store.open(home) as store, store.lake.connect() as connection:
        if "heat" not in store.lake.sets():
            return []
        return connection.execute("select node, ts_ns from heat order by all").fetchall()

"""Segments as an agent on a GPU node would write them: a minute of 15 metric sets, 1000 values a sweep."""

import random
from collections.abc import Iterator
from pathlib import Path

from crosswind.data.schema.metric import NODE_KEYS, Column, Kind, MetricSet
from crosswind.ingest.spool.spool import SpoolWriter, SweepRows, sealed_segments

SWEEPS = 60
START_NS = 1_767_323_040_000_000_000
SHAPES = {  # devices and columns of each set
    name: (devices, columns)
    for name, devices, columns in (
        *(("cpu", 33, 10), ("memory", 2, 30), ("vmstat", 1, 60), ("pressure", 3, 4), ("process", 8, 14)),
        *(("network", 4, 24), ("rdma", 2, 40), ("disk", 4, 15), ("gpu", 4, 25), ("power", 6, 3), ("sensor", 10, 2)),
        *(("filesystem", 3, 8), ("interrupt", 1, 20), ("fabric", 2, 6), ("loop", 1, 10)),
    )
}
VALUES = SWEEPS * sum(devices * columns for devices, columns in SHAPES.values())


def sets() -> Iterator[tuple[MetricSet, int]]:
    """The metric sets, and how many devices each has."""
    for name, (devices, columns) in SHAPES.items():
        own = tuple(
            Column(f"{name}_{number}_gauge", "a gauge", dtype="float64")
            if number % 5 == 4
            else Column(f"{name}_{number}_total", "a counter", Kind.COUNTER)
            for number in range(columns)
        )
        yield MetricSet(name, name, (*NODE_KEYS, *own)), devices


def write_segment(spool: Path, node: str, minute: int, sweeps: int = SWEEPS) -> Path:
    """One sealed segment of a node's minute, or of its first so many sweeps."""
    chance = random.Random(f"{node} {minute}")
    node_sets = [(metric_set, devices, _counters(metric_set, devices, chance)) for metric_set, devices in sets()]
    with SpoolWriter(spool, f"agent.{node}", segment_bytes=64 * 1024 * 1024) as writer:
        for sweep in range(sweeps):
            ts_ns = START_NS + (minute * SWEEPS + sweep) * 1_000_000_000
            sweep_rows = [
                SweepRows(metric_set, ts_ns, ts_ns - START_NS, node, "6f1d3c0a-boot", _rows(counters, chance))
                for metric_set, _, counters in node_sets
            ]
            writer.append_sweep(sweep_rows)
    return sealed_segments(spool)[-1]


def _counters(metric_set: MetricSet, devices: int, chance: random.Random) -> list[list[int | float | str]]:
    own = metric_set.columns[len(NODE_KEYS) :]
    return [
        [f"{metric_set.name}{device}", *(0.5 if c.dtype == "float64" else chance.randrange(10**11) for c in own)]
        for device in range(devices)
    ]


def _rows(counters: list[list[int | float | str]], chance: random.Random) -> list[list[int | float | str]]:
    for row in counters:
        for place, value in enumerate(row):
            if isinstance(value, float):
                row[place] = round(chance.random(), 3)
            elif isinstance(value, int) and chance.random() < 0.6:
                row[place] = value + chance.randrange(100_000)
    return [list(row) for row in counters]

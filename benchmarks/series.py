"""Series out of the lake: processor time and files by question, and the same with more days in the store.

`python -m benchmarks.series --full` has 1,000 nodes; without it, as in `make bench`, 100.
"""

import argparse
import json
import os
import platform
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from crosswind.data.lake.compaction import compact
from crosswind.data.lake.lake import arrow_schema
from crosswind.data.schema.metric import Column, Kind, MetricSet, with_node_keys
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.series_question import SeriesQuestion, Statistic
from crosswind.data.schema.steps import STEP
from crosswind.data.store.metrics.series import series
from crosswind.data.store.store import Store

NODES, QUICK = 1000, 10
METRICS, APART_SECONDS, HOUR = 100, 10, 3600
DAYS = 5  # more, with as many samples each
RANKS, STEPS, STEP_SECONDS = 64, 10_000, 0.3
SECOND, DAY = 10**9, 86_400 * 10**9
BEGAN_NS = 1_767_312_000 * SECOND
TOGETHER = 10  # nodes whose samples arrive in one file
REPEATS = 5
METER = with_node_keys(
    MetricSet(
        "meter",
        "counters and gauges",
        tuple(
            Column(f"m{number}_total", "counter", Kind.COUNTER, unit="bytes")
            if number % 2
            else Column(f"m{number}", "gauge", unit="watts")
            for number in range(METRICS)
        ),
    )
)
LAST_HOUR = {"from_ns": BEGAN_NS, "to_ns": BEGAN_NS + HOUR * SECOND}
QUESTIONS = {
    "gauge of a node": SeriesQuestion(("meter.m2",), nodes=("n0007",), **LAST_HOUR),
    "counter of a node": SeriesQuestion(("meter.m3_total",), nodes=("n0007",), **LAST_HOUR),
    "20 gauges of a node": SeriesQuestion(
        tuple(f"meter.m{2 * number}" for number in range(20)), nodes=("n0007",), **LAST_HOUR
    ),
    "20 counters of a node": SeriesQuestion(
        tuple(f"meter.m{2 * number + 1}_total" for number in range(20)), nodes=("n0007",), **LAST_HOUR
    ),
    "gauge of all nodes, 100 shown": SeriesQuestion(("meter.m2",), points=60, **LAST_HOUR),
    "counter of all nodes as one": SeriesQuestion(("meter.m3_total",), by=(), points=60, **LAST_HOUR),
    "steps of a run by rank": SeriesQuestion(("step.duration_seconds",), runs=("r1",), by=("rank",)),
    "p99 of a run's steps": SeriesQuestion(("step.comm_seconds",), runs=("r1",), by=(), statistics=(Statistic.P99,)),
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.series", description=__doc__)
    parser.add_argument("--full", action="store_true", help="1,000 nodes: a minute, and 400 MB of disk")
    nodes = NODES if parser.parse_args(arguments or []).full else NODES // QUICK
    figures: dict[str, object] = {"nodes": nodes, "metrics": METRICS, "ranks": RANKS, "steps": STEPS}
    with tempfile.TemporaryDirectory(prefix="crosswind-bench-") as name, Store.open(Path(name) / "store") as store:
        record(store)
        sample(store, nodes, BEGAN_NS)
        alone = measured(store)
        for day in range(1, DAYS + 1):
            sample(store, nodes, BEGAN_NS - day * DAY)
        later = measured(store)
        files = len(store.lake.parts("meter")), len(store.lake.parts("meter", (BEGAN_NS, BEGAN_NS + HOUR * SECOND)))
    print(f"{'question':32} {'CPU, 1 hour':>12} {f'{DAYS + 1} days':>10}")
    for question, milliseconds in alone.items():
        print(f"{question:32} {milliseconds:9.0f} ms {later[question]:7.0f} ms")
        key = question.replace(" ", "_").replace(",", "").replace("'", "")
        figures |= {f"{key}_ms": round(milliseconds, 1), f"{key}_more_days_ms": round(later[question], 1)}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"files: {files[0]} stored, {files[1]} opened; the process had {peak:.0f} MiB at most, generating included")
    machine = {"machine": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()}
    print(json.dumps({**figures, "files_stored": files[0], "files_opened": files[1], **machine}))


def measured(store: Store) -> dict[str, float]:
    """Return by question milliseconds of processor time, the least of some repeats."""
    return {name: min(_milliseconds(store, question) for _ in range(REPEATS)) for name, question in QUESTIONS.items()}


def _milliseconds(store: Store, question: SeriesQuestion) -> float:
    begin = time.process_time()
    answer = series(store, question)
    taken = time.process_time() - begin
    assert answer.series, question
    return 1000 * taken


def sample(store: Store, nodes: int, began_ns: int) -> None:
    """Store an hour of all metrics of all nodes, compacted as after a day."""
    for first in range(0, nodes, TOGETHER):
        store.lake.append(f"h{began_ns}-{first}", _samples(first, began_ns))
    compact(store.lake, settle_seconds=0, now_ns=began_ns + 3 * DAY)


def _samples(first: int, began_ns: int) -> pa.Table:
    sweeps = HOUR // APART_SECONDS
    names = np.repeat([f"n{first + number:04}" for number in range(TOGETHER)], sweeps)
    times = np.tile(began_ns + np.arange(sweeps) * APART_SECONDS * SECOND, TOGETHER)
    random = np.random.default_rng(first)
    columns = {"ts_ns": times, "mono_ns": times - began_ns, "node": names, "boot_id": names}
    columns["device"] = np.full(len(names), "d0")
    for column in METER.columns[5:]:
        values = random.integers(0, 1000, (TOGETHER, sweeps))
        columns[column.name] = (values.cumsum(axis=1) if column.kind is Kind.COUNTER else values).ravel()
    schema = arrow_schema(METER)
    return pa.table([pa.array(columns[name], schema.field(name).type) for name in schema.names], schema=schema)


def record(store: Store) -> None:
    """Store a run of 64 ranks x 10,000 steps."""
    ended_ns = BEGAN_NS + round(STEPS * STEP_SECONDS * SECOND)
    with store.catalog.write() as session:
        session.runs.merge(Run("r1", "gpt", "lab", RunState.COMPLETED, started_ns=BEGAN_NS, ended_ns=ended_ns))
    schema, count = arrow_schema(STEP), RANKS * STEPS
    steps = np.repeat(np.arange(STEPS), RANKS)
    columns = {"ts_ns": BEGAN_NS + (steps * STEP_SECONDS * SECOND).astype(np.int64), "step": steps}
    columns |= {"run_id": np.full(count, "r1"), "rank": np.tile(np.arange(RANKS), STEPS)}
    random = np.random.default_rng(0)
    for name in ("duration_seconds", "input_seconds", "compute_seconds", "comm_seconds"):
        columns[name] = (random.gamma(100, 0.003, count) * SECOND).astype(np.int64)
    arrays = [_array(columns.get(field.name), field, count) for field in schema]
    store.lake.append("steps", pa.table(arrays, schema=schema))
    compact(store.lake, settle_seconds=0, now_ns=BEGAN_NS + 3 * DAY)


def _array(values: np.ndarray | None, field: pa.Field, count: int) -> pa.Array:
    return pa.nulls(count, field.type) if values is None else pa.array(values, field.type)


if __name__ == "__main__":
    main(sys.argv[1:])

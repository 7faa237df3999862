"""Explaining a long run of many ranks, beside a notebook that reads the same rows and looks at step times alone.

A run of 64 ranks on 16 nodes and 10 000 steps, three others of its cohort of that size, and the counters of every node
and rank once a second, over 100 metrics. Rank 5 of the run asked about computes 20 % longer in its second half.
"""

import json
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset

from crosswind.data.lake.lake import arrow_schema
from crosswind.data.schema.metric import Kind, MetricSet, with_node_keys
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store
from crosswind.ingest.collectors.cpu import CPU
from crosswind.ingest.collectors.memory import MEMORY
from crosswind.ingest.collectors.network import NETWORK
from crosswind.ingest.collectors.process import PROCESS
from crosswind.ingest.collectors.protocol import PROTOCOL
from crosswind.models.explain.explain import explain_run

RANKS, NODES, STEPS, RUNS = 64, 16, 10_000, 4
SECOND = 1_000_000_000
STEP_NS = 280_000_000
BEGAN_NS = 1_767_225_600 * SECOND
ASKED, SLOW_RANK = "run-3", 5
OF_NODES = {"cpu": (CPU, "cpu"), "memory": (MEMORY, "all"), "network": (NETWORK, "eth0"), "protocol": (PROTOCOL, "tcp")}


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="crosswind-bench-") as folder, Store.open(Path(folder) / "home") as store:
        metrics = _fill(store)
        ours = [_cpu(lambda: explain_run(store, ASKED)) for _ in range(3)]
        theirs = [_cpu(lambda: _by_step_time(Path(folder) / "home")) for _ in range(3)]
        explanation = explain_run(store, ASKED)
    print(explanation.sentence)
    figures = {
        "ranks": RANKS,
        "steps": STEPS,
        "metrics": metrics,
        "explain_cpu_seconds": round(min(cpu for cpu, _ in ours), 2),
        "explain_wall_seconds": round(min(wall for _, wall in ours), 2),
        "step_times_in_pandas_cpu_seconds": round(min(cpu for cpu, _ in theirs), 2),
        "culprit_is_right": explanation.culprit_rank == SLOW_RANK,
    }
    for name, value in figures.items():
        print(f"{name:<36} {value}")
    print(json.dumps(figures | {"machine": f"{platform.machine()}, Python {platform.python_version()}"}))


def _cpu(action: Callable[[], object]) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    action()
    return time.process_time() - cpu, time.perf_counter() - wall


def _by_step_time(home: Path) -> pd.Series:
    """Return the mean step time of every run as a notebook has it: by the slowest rank of every step."""
    [root] = home.glob("lake/set=step")
    table = pyarrow.dataset.dataset(root).to_table(columns=["run_id", "rank", "step", "duration_seconds"])
    slowest: pd.Series = (
        table.to_pandas().groupby(["run_id", "step"])["duration_seconds"].max().groupby("run_id").mean()
    )
    return slowest


def _fill(store: Store) -> int:
    """The runs, one after the other, with their steps and counters; how many metrics there are."""
    nodes = [f"n{number:02}" for number in range(NODES)]
    random = np.random.default_rng(1)
    for number in range(RUNS):
        run_id, began = f"run-{number}", BEGAN_NS + number * 2 * STEPS * STEP_NS
        ended = began + STEPS * STEP_NS
        named = (run_id, "benchmark", "cluster", RunState.COMPLETED)
        with store.catalog.write() as session:
            session.runs.merge(Run(*named, world_size=RANKS, nodes=tuple(nodes), started_ns=began, ended_ns=ended))
            for rank in range(RANKS):
                session.ranks.merge(Rank(run_id, rank, nodes[rank % NODES], 1000 * number + rank, began))
        store.lake.append(f"steps-{number}", _steps(random, run_id, began))
        for name, (metric_set, device) in OF_NODES.items():
            store.lake.append(f"{name}-{number}", _samples(random, metric_set, [(n, device) for n in nodes], began))
        ranks = [(nodes[rank % NODES], str(1000 * number + rank)) for rank in range(RANKS)]
        store.lake.append(f"process-{number}", _samples(random, PROCESS, ranks, began))
    return sum(len(metric_set.columns) for metric_set in (PROCESS, *(of_node for of_node, _ in OF_NODES.values())))


def _steps(random: np.random.Generator, run_id: str, began: int) -> pa.Table:
    shape = (STEPS, RANKS)
    compute = (0.2 * SECOND * random.lognormal(0, 0.03, shape)).astype("int64")
    user = compute - random.integers(0, 5_000_000, shape)
    if run_id == ASKED:
        more = compute[STEPS // 2 :, SLOW_RANK] // 5
        compute[STEPS // 2 :, SLOW_RANK] += more
        user[STEPS // 2 :, SLOW_RANK] += more
    reading = (0.002 * SECOND * random.lognormal(0, 0.5, shape)).astype("int64")
    end = (compute + reading).max(axis=1, keepdims=True) + np.int64(0.04 * SECOND)
    number = np.arange(STEPS)[:, None] + np.zeros((1, RANKS), "int64")
    columns = {
        "ts_ns": began + number * np.int64(STEP_NS) + random.integers(0, 50_000, shape),
        "rank": np.zeros((STEPS, 1), "int64") + np.arange(RANKS),
        "step": number,
        "duration_seconds": end + np.zeros(shape, "int64"),
        "input_seconds": reading,
        "compute_seconds": compute,
        "comm_seconds": end - compute - reading,
        "checkpoint_seconds": np.zeros(shape, "int64"),
        "other_seconds": np.zeros(shape, "int64"),
        "tail_seconds": random.integers(1_000_000, 1_100_000, shape),
        "cpu_user_seconds": user,
        "cpu_system_seconds": random.integers(0, 1_000_000, shape),
        "run_queue_wait_seconds": random.integers(0, 40_000, shape),
        "minor_faults": random.poisson(3, shape),
        "major_faults": np.zeros(shape, "int64"),
        "involuntary_context_switches": random.poisson(1, shape),
    }
    arrays = {name: pa.array(values.reshape(-1)) for name, values in columns.items()}
    arrays["run_id"] = pa.array([run_id]).take(pa.array(np.zeros(STEPS * RANKS, "int64")))
    schema = arrow_schema(STEP)
    return pa.Table.from_arrays([arrays[name] for name in schema.names], schema=schema)


def _samples(random: np.random.Generator, metric_set: MetricSet, places: list[tuple[str, str]], began: int) -> pa.Table:
    """Every device once a second for as long as the run lasts."""
    kept = with_node_keys(metric_set)
    seconds = STEPS * STEP_NS // SECOND
    rows = seconds * len(places)
    times = np.tile(began + np.arange(seconds) * SECOND, len(places))
    keys = {
        "ts_ns": pa.array(times),
        "mono_ns": pa.array(times - BEGAN_NS),
        "node": pa.array(np.repeat([node for node, _ in places], seconds)),
        "boot_id": pa.array(np.repeat(["boot"], rows)),
        "device": pa.array(np.repeat([device for _, device in places], seconds)),
    }
    schema = arrow_schema(kept)
    values = dict(_values(random, kept, len(places), seconds))
    arrays = [
        keys[name] if name in keys else values.get(name, pa.nulls(rows, schema.field(name).type))
        for name in schema.names
    ]
    return pa.Table.from_arrays(
        [array.cast(field.type) for array, field in zip(arrays, schema, strict=True)], schema=schema
    )


def _values(
    random: np.random.Generator, metric_set: MetricSet, devices: int, seconds: int
) -> Iterator[tuple[str, pa.Array]]:
    """Counters that grow, gauges that vary."""
    for column in metric_set.columns:
        if column.kind is Kind.COUNTER or column.dtype in ("int64", "uint64", "float64"):
            drawn: Floats | np.ndarray = random.integers(0, 1000, (devices, seconds))
            if column.kind is Kind.COUNTER:
                drawn = drawn.cumsum(axis=1)
            yield column.name, pa.array(drawn.reshape(-1))


if __name__ == "__main__":
    main()

"""A made-up run of 64 ranks x 10,000 steps with its cohort, steps and samples of the nodes compacted as after a day."""

import numpy as np
import pyarrow as pa

from crosswind.data.lake.compaction import compact
from crosswind.data.lake.lake import arrow_schema
from crosswind.data.schema.metric import Kind, MetricSet, with_node_keys
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store
from crosswind.ingest.collectors.cpu import CPU
from crosswind.ingest.collectors.memory import MEMORY
from crosswind.ingest.collectors.network import NETWORK
from crosswind.models.explain.explain import explain_runs

SECOND, DAY_NS = 10**9, 86_400 * 10**9
BEGAN_NS = 1_766_966_400 * SECOND
LONG_RUNS, NODES, RANKS, STEPS, STEP_SECONDS = 4, 8, 64, 10_000, 0.3
EVERY_NS = 2 * 3600 * SECOND  # between two runs of the cohort
SWEEP_NS = 10 * SECOND
SLOW_RANK, SLOW_FROM, SLOWER = 17, 5000, 1.15  # of the newest run
NEWEST = f"long-{LONG_RUNS - 1}"
MEANS = {"input_seconds": 0.004, "checkpoint_seconds": 0.0, "other_seconds": 0.003}


def fill_long_runs(store: Store) -> None:
    """Store the runs, and the verdict of each, unless they are there."""
    with store.catalog.read() as session:
        if session.runs.some([NEWEST]):
            return
    runs = [_run(number) for number in range(LONG_RUNS)]
    with store.catalog.write() as session:
        session.runs.put_all(runs)
        for run in runs:
            for rank in range(RANKS):
                node = run.nodes[rank // (RANKS // NODES)]
                session.ranks.merge(Rank(run.run_id, rank, node, 1000 + rank, run.started_ns or 0))
    for number, run in enumerate(runs):
        store.lake.append(f"{run.run_id}-steps", _steps(number, run))
        for metric_set in map(with_node_keys, (CPU, MEMORY, NETWORK)):
            store.lake.append(f"{run.run_id}-{metric_set.name}", _samples(metric_set, run, number))
    compact(store.lake, settle_seconds=0, now_ns=BEGAN_NS + 3 * DAY_NS)
    explain_runs(store, runs)


def _run(number: int) -> Run:
    began = BEGAN_NS + number * EVERY_NS
    return Run(
        *(f"long-{number}", "gpt", "lab", RunState.COMPLETED),
        world_size=RANKS,
        configuration={"batch": 256, "precision": "bf16"},
        nodes=tuple(f"big{node}" for node in range(NODES)),
        started_ns=began,
        ended_ns=began + round(STEPS * STEP_SECONDS * SECOND),
        command=("torchrun", "train.py"),
        software={"torch": "2.9.0"},
    )


def _steps(number: int, run: Run) -> pa.Table:
    random = np.random.default_rng(number)
    shape = (STEPS, RANKS)
    compute = 0.25 * random.lognormal(0, 0.03, shape) * random.lognormal(0, 0.01, (STEPS, 1))
    if run.run_id == NEWEST:
        compute[SLOW_FROM:, SLOW_RANK] *= SLOWER
    phases = {name: random.gamma(9, mean / 9 + 1e-9, shape) for name, mean in MEANS.items()}
    local = compute + sum(phases.values())
    end = local.max(axis=1, keepdims=True) + random.gamma(16, 0.02 / 16, shape)
    seconds = {**phases, "compute_seconds": compute, "comm_seconds": end - local, "duration_seconds": end}
    seconds |= {"cpu_user_seconds": compute * 0.9, "cpu_system_seconds": compute * 0.02}
    seconds["tail_seconds"] = np.full(shape, 0.001)  # without it a step counts as one without collectives
    columns: dict[str, np.ndarray] = {name: (values * SECOND).astype("int64") for name, values in seconds.items()}
    zero, step = np.zeros(shape, "int64"), np.arange(STEPS)[:, None]
    began = run.started_ns or 0
    columns |= {"step": step + zero, "rank": np.arange(RANKS) + zero}
    columns["ts_ns"] = began + (step * STEP_SECONDS * SECOND).astype("int64") + zero
    arrays = {name: pa.array(values.reshape(-1)) for name, values in columns.items()}
    arrays["run_id"] = pa.repeat(run.run_id, STEPS * RANKS)
    return _table(arrays, STEP, STEPS * RANKS)


def _samples(metric_set: MetricSet, run: Run, seed: int) -> pa.Table:
    """Return samples of the run's nodes every ten seconds while it ran: counters that grow, gauges that vary."""
    random = np.random.default_rng(seed)
    times = np.arange(run.started_ns or 0, run.ended_ns or 0, SWEEP_NS)
    rows, shape = NODES * len(times), (NODES, len(times))
    columns = {
        "ts_ns": pa.array(np.tile(times, NODES)),
        "node": pa.array(np.repeat(run.nodes, len(times))),
        "boot_id": pa.repeat("boot", rows),
        "device": pa.repeat("all", rows),
    }
    for column in metric_set.columns:
        values = random.integers(900, 1100, shape)
        if column.kind is Kind.COUNTER:
            values = values.cumsum(axis=1)
        if column.name not in columns and column.kind in (Kind.COUNTER, Kind.GAUGE):
            columns[column.name] = pa.array(values.reshape(-1))
    return _table(columns, metric_set, rows)


def _table(columns: dict[str, pa.Array], metric_set: MetricSet, rows: int) -> pa.Table:
    schema = arrow_schema(metric_set)
    missing = {field.name: pa.nulls(rows, field.type) for field in schema if field.name not in columns}
    return pa.table([(columns | missing)[field.name].cast(field.type) for field in schema], schema=schema)

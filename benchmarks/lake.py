"""A long run's steps out of the lake, beside plain DuckDB over parts as they arrived; and a fleet's minute parts.

`python -m benchmarks.lake --full` has a million steps of 64 ranks; without it, as in `make bench`, a sixteenth of that.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from crosswind.data.lake.compaction import compact
from crosswind.data.lake.lake import Lake, arrow_schema, to_table
from crosswind.data.lake.steps_summary import POINTS, Window, per_step, rank_steps, ribbon
from crosswind.data.schema.metric import with_node_keys
from crosswind.data.schema.steps import STEP
from crosswind.data.store.fleet import fleet
from crosswind.data.store.store import Store
from crosswind.ingest.agent.self_metrics import AGENT
from crosswind.ingest.agent.sweep import COLLECTOR

RANKS, STEPS, QUICK = 64, 1_000_000, 16
WINDOW, RANK, STEP_SECONDS = 1000, 17, 0.28
PART_STEPS = 2143  # ten minutes
NODES, MINUTES, SOURCES = 50, 60, 20
SECOND, YEAR = 10**9, 365 * 86_400 * 10**9
BEGAN_NS = 1_767_225_600 * SECOND
RUN = "01KDWR0000000000000000000A"
READ = ("ts_ns", "rank", "step", "duration_seconds", "input_seconds", "compute_seconds", "comm_seconds")
REPEATS = 3
_PEER_OVERVIEW = """
with steps as (
    select step, min(ts_ns) as began_ns, max(duration_seconds) as slowest, median(duration_seconds) as middle,
        arg_max(rank, duration_seconds) as slowest_rank, arg_min(rank, comm_seconds) as last_rank,
        avg(input_seconds) as input, avg(compute_seconds) as compute, avg(comm_seconds) as comm
    from read_parquet('{files}') where run_id = '{run}' group by step)
select min(step), min(slowest), median(slowest), max(slowest), arg_max(slowest_rank, slowest), mode(last_rank),
    avg(input), avg(compute), avg(comm) from steps group by step // {width} order by 1
"""
_PEER_ROWS = "select {columns} from read_parquet('{files}') where run_id = '{run}' and {where} order by rank, step"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.lake", description=__doc__)
    parser.add_argument("--full", action="store_true", help="64 million rows: minutes, and 10 GB of disk")
    steps = STEPS if parser.parse_args(arguments or []).full else STEPS // QUICK
    figures: dict[str, object] = {"steps": steps, "ranks": RANKS, "rows": steps * RANKS}
    with tempfile.TemporaryDirectory(prefix="crosswind-bench-") as name:
        figures |= _run_figures(Path(name), steps)
        figures |= _fleet_figures(Path(name) / "fleet")
    figures["machine"] = f"{platform.machine()}, {os.cpu_count()} cores, DuckDB {duckdb.__version__}"
    for figure, value in figures.items():
        print(f"{figure:<40} {value}")
    print(json.dumps(figures))


def _run_figures(folder: Path, steps: int) -> dict[str, object]:
    lake, peer = Lake(folder / "lake"), folder / "peer"
    making, _ = _timed(lambda: _write(lake, peer, steps))
    now_ns = BEGAN_NS + YEAR
    compacting, done = _timed(lambda: compact(lake, now_ns=now_ns, settle_seconds=-1))
    assert not done.problems, done.problems
    figures: dict[str, object] = {"making_seconds": round(making, 1), "compacting_seconds": round(compacting, 1)}
    figures |= {"parts_before": done.files_before, "parts_after": done.files_after}
    figures["bytes_per_row"] = round(_size(lake.root / "set=step") / (steps * RANKS), 1)
    figures["summary_bytes_per_step"] = round(_size(lake.root / "rollup=step") / steps, 1)
    figures["peer_bytes_per_row"] = round(_size(peer) / (steps * RANKS), 1)
    first = steps // 2
    where = f"step between {first} and {first + WINDOW - 1}"
    asked: dict[str, tuple[Callable[[], pd.DataFrame], str]] = {
        "overview": (
            lambda: ribbon(lake, RUN),
            _PEER_OVERVIEW.format(files="{files}", run=RUN, width=-(-steps // POINTS)),
        ),
        "window": (
            lambda: rank_steps(lake, RUN, window=Window(first, first + WINDOW - 1), columns=READ),
            _rows_of_peer(where),
        ),
        "one_rank": (lambda: rank_steps(lake, RUN, [RANK], columns=READ), _rows_of_peer(f"rank = {RANK}")),
    }
    for name, (ours, theirs) in asked.items():
        figures |= _beside(name, ours, theirs.format(files=f"{peer}/*.parquet"))
    figures["window_per_step_seconds"] = _median(lambda: per_step(lake, RUN, Window(first, first + WINDOW - 1)))
    shutil.rmtree(peer)
    return figures


def _rows_of_peer(where: str) -> str:
    return _PEER_ROWS.format(columns=", ".join(READ), files="{files}", run=RUN, where=where)


def _beside(name: str, ours: Callable[[], pd.DataFrame], sql: str) -> dict[str, object]:
    def theirs() -> pd.DataFrame:
        with duckdb.connect(":memory:", config={"threads": 2}) as connection:
            return connection.execute(sql).df()

    rows = len(ours()), len(theirs())
    assert rows[0] == rows[1], rows
    seconds, peer_seconds = _median(ours), _median(theirs)
    ratio = round(peer_seconds / seconds, 1)
    return {
        f"{name}_rows": rows[0],
        f"{name}_seconds": seconds,
        f"{name}_peer_seconds": peer_seconds,
        f"{name}_ratio": ratio,
    }


def _write(lake: Lake, peer: Path, steps: int) -> None:
    """The run's parts, and the same rows in the order of their arrival as anybody would write them."""
    peer.mkdir()
    random = np.random.default_rng(1)
    for number, first in enumerate(range(0, steps, PART_STEPS)):
        table = _steps(random, first, min(PART_STEPS, steps - first))
        lake.append(f"p{number}", table)
        pq.write_table(table, peer / f"{number:05}.parquet")


def _steps(random: np.random.Generator, first: int, count: int) -> pa.Table:
    """Steps of data-parallel training: all ranks end together, whoever computes longest waits least."""
    shape = (count, RANKS)
    arrival = (0.2 * SECOND * random.lognormal(0, 0.03, shape)).astype("int64")
    arrival[:, 5] += (random.random(count) < 0.02) * np.int64(0.1 * SECOND)  # a rank that is late now and then
    reading = (0.002 * SECOND * random.lognormal(0, 0.5, shape)).astype("int64")
    end = (arrival + reading).max(axis=1, keepdims=True) + np.int64(0.04 * SECOND)
    duration = end + random.integers(0, 20_000, shape)
    number = np.arange(first, first + count)[:, None] + np.zeros((1, RANKS), "int64")
    began = BEGAN_NS + number * np.int64(STEP_SECONDS * SECOND) + random.integers(0, 50_000, shape)
    columns = {
        "ts_ns": began,
        "rank": np.zeros((count, 1), "int64") + np.arange(RANKS),
        "step": number,
        "duration_seconds": duration,
        "input_seconds": reading,
        "compute_seconds": arrival,
        "comm_seconds": duration - arrival - reading,
        "checkpoint_seconds": np.zeros(shape, "int64"),
        "other_seconds": np.zeros(shape, "int64"),
        "tail_seconds": random.integers(1_000_000, 1_100_000, shape),
        "cpu_user_seconds": arrival - random.integers(0, 5_000_000, shape),
        "run_queue_wait_seconds": random.integers(0, 40_000, shape),
        "minor_faults": random.poisson(3, shape),
    }
    schema = arrow_schema(STEP)
    size = count * RANKS
    arrays = {name: pa.array(values.reshape(-1)) for name, values in columns.items()}
    arrays["run_id"] = pa.array([RUN]).take(pa.array(np.zeros(size, "int64")))
    fields = [arrays[field.name] if field.name in arrays else pa.nulls(size, field.type) for field in schema]
    return pa.Table.from_arrays(fields, schema=schema)


def _fleet_figures(home: Path) -> dict[str, object]:
    """The list of nodes over an hour of their minute parts, before and after compaction."""
    with Store.open(home) as store:
        for tables in _sweeps():
            store.lake.append_all(tables)
        since_ns = BEGAN_NS
        before = _median(lambda: fleet(store, since_ns))
        states = fleet(store, since_ns)
        seconds, done = _timed(lambda: compact(store.lake, now_ns=BEGAN_NS + YEAR, settle_seconds=-1))
        after = _median(lambda: fleet(store, since_ns))
        assert fleet(store, since_ns) == states
    return {
        "fleet_nodes": len(states),
        "fleet_parts_before": done.files_before,
        "fleet_parts_after": done.files_after,
        "fleet_compacting_milliseconds_per_part": round(seconds / done.files_before * 1e3, 2),
        "fleet_before_seconds": before,
        "fleet_after_seconds": after,
    }


def _sweeps() -> Iterator[dict[str, pa.Table]]:
    """For each minute the parts of all nodes: a sweep of the agent and its sources every second."""
    agents, sources = with_node_keys(AGENT), with_node_keys(COLLECTOR)
    for minute in range(MINUTES):
        times = [BEGAN_NS + (minute * 60 + second) * SECOND for second in range(60)]
        source_times = [at for at in times for _ in range(SOURCES)]
        tables: dict[str, pa.Table] = {}
        for node in range(NODES):
            keys = {"node": [f"n{node:04}"] * 60, "boot_id": ["b"] * 60, "device": ["agent"] * 60}
            used = [(minute * 60 + second) * 0.005 for second in range(60)]
            usage = {"cpu_seconds_total": used, "lateness_seconds": [0.001] * 60, "resident_bytes": [2**24] * 60}
            counts = {"missed_ticks_total": [0] * 60, "lost_sweeps_total": [0] * 60}
            tables[f"{node}-{minute}-0"] = to_table(agents, {"ts_ns": times, "mono_ns": times} | keys | usage | counts)
            names = {"device": [f"source{number}" for number in range(SOURCES)] * 60, "up": [1] * len(source_times)}
            keys = {"node": [f"n{node:04}"] * len(source_times), "boot_id": ["b"] * len(source_times)}
            tables[f"{node}-{minute}-1"] = to_table(
                sources, {"ts_ns": source_times, "mono_ns": source_times} | keys | names
            )
        yield tables


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    answer = call()
    return time.perf_counter() - began, answer


def _median(call: Callable[[], object]) -> float:
    return round(statistics.median(_timed(call)[0] for _ in range(REPEATS)), 3)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])

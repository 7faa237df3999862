"""A run's page and /v1/series over a lake that grows 1x, 10x and 100x: processor time, and files opened.

A day has the samples of some nodes and a few runs with steps; the lake grows by days, each compacted as it would be.
What is asked is of the newest day. Every run is asked for once, so that no answer is one that was kept.
"""

import os
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from benchmarks.ingest import cpu_seconds
from benchmarks.scaling.opened import opened
from benchmarks.series import BEGAN_NS, DAY, HOUR, SECOND, sample
from benchmarks.served import served
from crosswind.data.lake.compaction import compact
from crosswind.data.lake.lake import arrow_schema
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store
from crosswind.ingest.ship.client import Client

GROWTH = (1, 10, 100)
NODES = int(os.environ.get("CROSSWIND_BENCH_NODES", "20"))  # with 100 metrics, 360 samples of each a day
RUNS, WARMED = 24, 4  # of a day; the first ones load what pages need
RANKS, STEPS = 8, 500


def figures(folder: Path) -> dict[str, object]:
    """Return by growth milliseconds of processor time and files of each question, and how much more the last takes."""
    home, days = folder / "store", 0
    answer: dict[str, object] = {}
    for growth in GROWTH:
        with Store.open(home) as store:
            for day in range(days, growth):
                _add_day(store, BEGAN_NS - day * DAY, day)
        days = growth
        answer[f"lake_{growth}x_files"] = sum(1 for _ in home.glob("lake/set=*/date=*/*.parquet"))
        answer |= {f"lake_{growth}x_{name}": value for name, value in _asked(home).items()}
    for name in ("run_page", "series"):
        first, last = (float(str(answer[f"lake_{growth}x_{name}_cpu_ms"])) for growth in (GROWTH[0], GROWTH[-1]))
        answer[f"lake_{name}_growth"] = round(last / first, 2)
    return answer


def _add_day(store: Store, began_ns: int, day: int) -> None:
    sample(store, NODES, began_ns)
    with store.catalog.write() as session:
        session.runs.put_all(_run(began_ns, day, number) for number in range(RUNS))
    store.lake.append(f"steps-{day}", pa.concat_tables(_steps(began_ns, day, number) for number in range(RUNS)))
    compact(store.lake, settle_seconds=0, now_ns=began_ns + 3 * DAY)


def _began(began_ns: int, number: int) -> int:
    return began_ns + number * HOUR * SECOND // RUNS


def _run(began_ns: int, day: int, number: int) -> Run:
    begin, nodes = _began(began_ns, number), (f"n{number % NODES:04}", f"n{(number + 1) % NODES:04}")
    named = (_id(day, number), "gpt", "lab", RunState.COMPLETED)
    return Run(*named, world_size=RANKS, nodes=nodes, started_ns=begin, ended_ns=begin + STEPS * SECOND // 4)


def _id(day: int, number: int) -> str:
    return f"d{day:04}-{number:03}"


def _steps(began_ns: int, day: int, number: int) -> pa.Table:
    schema, count = arrow_schema(STEP), RANKS * STEPS
    random, step = np.random.default_rng(day * RUNS + number), np.repeat(np.arange(STEPS), RANKS)
    columns = {"ts_ns": _began(began_ns, number) + step * SECOND // 4, "step": step}
    columns |= {"run_id": np.full(count, _id(day, number)), "rank": np.tile(np.arange(RANKS), STEPS)}
    for name in ("duration_seconds", "input_seconds", "compute_seconds", "comm_seconds"):
        columns[name] = (random.gamma(100, 0.0025, count) * SECOND).astype(np.int64)
    arrays = [
        pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.table(arrays, schema=schema)


def _asked(home: Path) -> dict[str, float]:
    """Ask a server of its own for each run's page and for its node's series."""
    with served(home) as (url, pid):
        client = Client(url, None, answer_bytes=64_000_000)
        pages = [f"/runs/{_id(0, number)}" for number in range(RUNS)]
        series = [_series(number) for number in range(RUNS)]
        answer = _costs("run_page", client, pid, home, paths=pages) | _costs("series", client, pid, home, paths=series)
        client.close()
    return answer


def _series(number: int) -> str:
    begin = _began(BEGAN_NS, number)
    times = "&".join(f"{name}={_moment(at)}" for name, at in (("from", begin), ("to", begin + 600 * SECOND)))
    return f"/v1/series?metric={quote('meter.m2,meter.m3_total')}&node=n{number % NODES:04}&{times}"


def _moment(at_ns: int) -> str:
    return datetime.fromtimestamp(at_ns // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _costs(name: str, client: Client, pid: int, home: Path, *, paths: list[str]) -> dict[str, float]:
    for path in paths[:WARMED]:
        _get(client, path)
    with opened(home / "lake") as files:
        begin = cpu_seconds(pid)
        for path in paths[WARMED:]:
            _get(client, path)
        busy = cpu_seconds(pid) - begin
    return {f"{name}_cpu_ms": round(busy / len(paths[WARMED:]) * 1e3, 1), f"{name}_files": len(files)}


def _get(client: Client, path: str) -> None:
    answer = client.get(path)
    if answer.status != 200:
        raise SystemExit(f"{path}: {answer.status}")

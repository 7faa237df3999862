"""Runs of a made-up fleet, whose slow things are known: as a table of ranks, and as a store of steps."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store

SECOND_NS = 1_000_000_000
HOUR_NS = 3600 * SECOND_NS
BEGIN_NS = 1_767_225_600 * SECOND_NS  # 2026-01-01, midnight UTC
NOISE = 0.05
STEPS, WARM_UP = 8, 3


def fleet_table(
    nodes: Sequence[Sequence[int]], extra: Mapping[int, float], *, seed: int = 0, **more: object
) -> pd.DataFrame:
    """A run an hour on the nodes given for it, a rank each; `extra` is each node's log time above its peers."""
    random = np.random.default_rng(seed)
    rows = [(run, rank, node) for run, of_run in enumerate(nodes) for rank, node in enumerate(of_run)]
    table = pd.DataFrame(rows, columns=["run", "rank", "number"])
    pace = random.normal(0, 0.5, len(nodes))[table["run"]]
    noise = random.normal(0, NOISE, len(table))
    names = {"run_id": "r" + table["run"].astype(str), "node": "n" + table["number"].astype(str)}
    started = BEGIN_NS + table["run"] * HOUR_NS
    facts = {"system": "lab", "workload": "bert", "device": None, "started_ns": started, "ended_ns": started + 1}
    place = "bert, rank " + table["rank"].astype(str)
    log_local = pace + noise + table["number"].map(dict(extra)).fillna(0.0)
    return table.assign(**names, **facts, place=place, log_local=log_local, **more)


def drawn_nodes(runs: int, nodes_per_run: int, fleet: int, *, seed: int = 1) -> list[list[int]]:
    """For each run as many of the fleet's nodes, at random."""
    random = np.random.default_rng(seed)
    return [random.choice(fleet, nodes_per_run, replace=False).tolist() for _ in range(runs)]


def store_fleet(home: Path, nodes: Sequence[Sequence[int]], extra: Mapping[int, float], *, waits: bool = True) -> None:
    """The same as step rows of a store: synchronous steps in which whoever is not the slowest waits."""
    table = fleet_table(nodes, extra)
    columns: dict[str, list[int | str | None]] = {column.name: [] for column in STEP.columns}
    with Store.open(home) as store:
        with store.catalog.write() as session:
            for number, rows in table.groupby("run"):
                run_id, started = f"r{number}", int(rows["started_ns"].iloc[0])
                names = tuple(rows["node"])
                facts = (run_id, "bert", "lab", RunState.COMPLETED, len(rows))
                ended = started + int(60 * SECOND_NS * np.exp(rows["log_local"].max()))
                session.runs.merge(Run(*facts, nodes=names, started_ns=started, ended_ns=ended))
                for rank, node in enumerate(names):
                    session.ranks.merge(Rank(run_id, rank, node, 100 + rank, started))
                add_steps(columns, run_id, started, np.exp(rows["log_local"].to_numpy()), waits=waits)
        store.lake.append("fleet", to_table(STEP, columns))


def add_steps(
    columns: dict[str, list[int | str | None]], run_id: str, started_ns: int, local: Sequence[float], *, waits: bool
) -> None:
    """Steps of ranks that spend so many tenths of a second apart from waiting."""
    own_ns = [int(tenths * SECOND_NS / 10) for tenths in local]
    step_ns = max(own_ns) + SECOND_NS // 200
    for step in range(STEPS):
        for rank, compute in enumerate(own_ns):
            row: dict[str, int | str | None] = dict.fromkeys(columns, 0)
            row |= {"run_id": run_id, "rank": rank, "step": step, "ts_ns": started_ns + step * step_ns}
            row |= {"duration_seconds": step_ns, "compute_seconds": compute if waits else step_ns}
            row |= {"comm_seconds": step_ns - compute if waits else 0}
            for name, value in row.items():
                columns[name].append(value)

"""A store with one run whose ranks compute at known speeds."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.schema.trial import Configuration
from crosswind.data.store.store import Store

SECOND_NS = 1_000_000_000
COMM_NS = 10_000_000
COMPUTE = 100_000_000  # ns a step of a rank of speed 1


def store_run(
    home: Path, slowness: Sequence[float], configuration: Configuration, *, steps: int = 103, noise: float = 0.0
) -> None:
    """Stores run `measured`, whose rank r computes `slowness[r]` times 0.1 s and communicates for 0.01 s."""
    random = np.exp(np.random.default_rng(0).normal(0, noise, (steps, len(slowness))))
    compute = (COMPUTE * np.array(slowness) * random).astype(np.int64)
    durations = compute.max(axis=1) + COMM_NS
    columns: dict[str, list[int | str | None]] = {column.name: [] for column in STEP.columns}
    for step in range(steps):
        for rank in range(len(slowness)):
            values: dict[str, int | str | None] = {**dict.fromkeys(columns, 0), "run_id": "measured", "rank": rank}
            values |= {"step": step, "ts_ns": SECOND_NS + step, "duration_seconds": int(durations[step])}
            values |= {"compute_seconds": int(compute[step, rank])}
            values |= {"comm_seconds": int(durations[step] - compute[step, rank])}
            for name, value in values.items():
                columns[name].append(value)
    run = Run("measured", "toy", "lab", RunState.COMPLETED, len(slowness), configuration, started_ns=SECOND_NS)
    with Store.open(home) as store:
        with store.catalog.write() as session:
            session.runs.merge(run)
            for rank in range(len(slowness)):
                session.ranks.merge(Rank("measured", rank, f"n{rank}", 1, SECOND_NS))
        if steps:
            store.lake.append("measured", to_table(STEP, columns))

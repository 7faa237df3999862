from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store
from crosswind.models.explain.cohort.columns import COLUMNS, OF_RUN
from crosswind.models.explain.cohort.segments import Segments

Draw = Callable[..., Segments]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    with Store.open(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def step_rows() -> Callable[..., pd.DataFrame]:
    """Rows of synchronous steps: every rank takes as long as the slowest one's local time + fabric."""

    def build(local: list[list[float]], *, fabric: float = 0.002, **columns: float) -> pd.DataFrame:
        rows = []
        for step, of_ranks in enumerate(local):
            time = max(of_ranks) + fabric
            for rank, compute in enumerate(of_ranks):
                row = dict.fromkeys((column.name for column in STEP.columns), 0.0)
                row |= {"run_id": "r", "rank": rank, "step": step, "ts_ns": step, **columns}
                row |= {"duration_seconds": time, "compute_seconds": compute, "comm_seconds": time - compute}
                rows.append(row)
        return pd.DataFrame(rows)

    return build


@pytest.fixture
def drawn() -> Draw:
    """A run of 60 segments: 2 % noise on compute, from the seed; rank 1 arrives a little after rank 0."""

    def draw(seed: int = 0, *, pace: float = 1.0, **means: float) -> Segments:
        usual = {"input": 0.001, "compute": 0.040, "checkpoint": 0.0, "other": 0.0, "fabric": 0.004}
        usual |= {"run_queue_wait": 0.001, "cpu_user": 0.038, "cpu_system": 0.001}
        usual |= {"minor_faults": 300.0, "comm_thread_wait": 0.001, "throttled": 0.0}
        usual |= {"out_of_order": 2.0, "timeouts": 0.0, "overlimits": 3.0, "stalled": 0.0, "stalled_fabric": 0.0}
        usual = dict.fromkeys(COLUMNS, 0.0) | usual
        values = np.tile([(usual | means)[name] for name in COLUMNS], (60, 1))
        noise = np.random.default_rng(seed).normal(1.0, 0.02, 60)
        values[:, COLUMNS.index("compute")] *= noise
        peers = np.tile([usual[name] for name in COLUMNS], (60, 1))
        peers[:, COLUMNS.index("compute")] *= noise - 0.02
        of_ranks = np.array([peers.mean(axis=0), values.mean(axis=0)]) * pace
        sampled = [COLUMNS.index(name) for name in OF_RUN]
        of_ranks[0, sampled] = of_ranks[1, sampled]
        return Segments(f"run-{seed}", 2, values * pace, np.ones(60), peers * pace, of_ranks=of_ranks, count=60)

    return draw


@pytest.fixture
def cohort(drawn: Draw) -> list[Segments]:
    """Eight undisturbed runs."""
    return [drawn(seed) for seed in range(1, 9)]

"""Runs whose times were made up, as rows that models learn from and as what a store holds."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from crosswind.data.schema.facts import Facts
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store
from crosswind.models.next_run.cases import COLUMNS

SECOND = 1_000_000_000
START_NS = 1_767_323_045 * SECOND
GAP_SECONDS = 3600  # between the starts of two runs: none of them overlap


def rows(*runs: tuple[Any, ...]) -> pd.DataFrame:
    """One run an hour from (workload, system, configuration, world_size, seconds), oldest first."""
    return pd.DataFrame([_row(number, *run) for number, run in enumerate(runs)], columns=list(COLUMNS))


def scaled(n_runs: int = 3, *, batches: Sequence[int] = (8, 16, 32, 64), seed: int = 0) -> pd.DataFrame:
    """Runs of `gpt` on `lab` whose seconds are batch / ranks^0.8, with 2 % of noise."""
    random = np.random.default_rng(seed)
    kinds = [(batch, ranks) for batch in batches for ranks in (1, 2, 4, 8)] * n_runs
    noise = random.lognormal(0, 0.02, len(kinds))
    return rows(
        *(
            ("gpt", "lab", {"batch": batch}, ranks, float(batch / ranks**0.8 * factor))
            for (batch, ranks), factor in zip(kinds, noise, strict=True)
        )
    )


def put(
    store: Store,
    run_id: str,
    seconds: float,
    *,
    place: int,
    workload: str = "gpt",
    configuration: Mapping[str, Any] | None = None,
    ranks: int = 2,
) -> None:
    """Stores a completed run that began `place` hours after the first."""
    started = START_NS + place * GAP_SECONDS * SECOND
    run = Run(
        run_id,
        workload,
        "lab",
        RunState.COMPLETED,
        world_size=ranks,
        configuration={"batch": 8} if configuration is None else configuration,
        nodes=("n1",),
        started_ns=started,
        ended_ns=started + round(seconds * SECOND),
    )
    with store.catalog.write() as session:
        session.runs.merge(run)


def _row(
    number: int, workload: str, system: str, configuration: Mapping[str, Any], ranks: int, seconds: float
) -> tuple[object, ...]:
    began = START_NS + number * GAP_SECONDS * SECOND
    where: tuple[object, ...] = (ranks, None, ())
    times = (began, began + round(seconds * SECOND), seconds)
    return (f"r{number}", "", workload, system, *where, configuration, Facts(), *times)

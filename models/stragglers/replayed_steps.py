"""Replay of a run's newest stored steps with equal ranks, from their times and waits."""

from dataclasses import dataclass

import numpy as np

from crosswind.data.lake.steps_summary import rank_steps, window_of
from crosswind.data.schema.answers.stragglers import Slowdown
from crosswind.data.schema.run import Run
from crosswind.data.store.features import WARM_UP_STEPS
from crosswind.data.store.store import Store
from crosswind.models.stragglers.what_if import synchronous_slowdown

ROWS_AT_ONCE = 500_000
REPLAYED = 2000  # newest steps
TIMES = ("duration_seconds", "comm_seconds")


@dataclass(frozen=True)
class ReplayedSteps:
    """The slowdown of some steps, how many they are, and their mean time as measured."""

    slowdown: Slowdown
    steps: int
    step_seconds: float


def replayed_steps(
    store: Store, run: Run, ranks: int, newest_step: int, *, stages: list[int] | None
) -> ReplayedSteps | None:
    """Replay the newest steps after warm-up; None unless some are whole and waits were recorded.

    `stages` are numbers of each rank's pipeline stage, if there are several. Raises: MalformedError.
    """
    first = max(WARM_UP_STEPS, newest_step - min(REPLAYED, ROWS_AT_ONCE // ranks))
    window = window_of(run, first, newest_step)
    rows = rank_steps(store.lake, run.run_id, (), window, columns=("step", "rank", *TIMES))
    grid = rows.dropna().pivot(index="step", columns="rank", values=list(TIMES))
    if grid.shape[1] != len(TIMES) * ranks or grid.dropna().empty:
        return None
    whole, comm = (grid.dropna()[name].to_numpy(np.float64) for name in TIMES)
    slowdown = synchronous_slowdown(np.maximum(whole - comm, 0.0), comm.min(axis=1), stages)
    return ReplayedSteps(slowdown, len(whole), float(whole.max(axis=1).mean()))

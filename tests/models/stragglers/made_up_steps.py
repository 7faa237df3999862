"""Steps of a made-up run, in which one rank may be late from one step to another."""

from dataclasses import dataclass

import numpy as np

from crosswind.models.stragglers.detector import PHASES, StepRows

USUAL, FABRIC, NOISE = 0.1, 0.005, 0.05  # seconds of compute and of the collective, and the noise of compute


@dataclass(frozen=True)
class Late:
    """A rank that spends so many seconds more in one phase of the steps from `first` up to before `end`."""

    rank: int
    seconds: float
    phase: str = "compute"
    first: int = 0
    end: int = 1_000_000


def step_rows(ranks: int, steps: int, *late: Late, seed: int = 0, slow_fabric_from: int | None = None) -> StepRows:
    """Rows in the order of steps; all ranks of a step end together."""
    random = np.random.default_rng(seed)
    phases = np.zeros((steps, ranks, len(PHASES)))
    phases[:, :, PHASES.index("input")] = 0.004
    phases[:, :, PHASES.index("compute")] = USUAL * (1 + random.normal(0, NOISE, (steps, ranks)))
    for delay in late:
        phases[delay.first : delay.end, delay.rank, PHASES.index(delay.phase)] += delay.seconds
    fabric = FABRIC * (1 + random.uniform(0, 0.2, steps))
    if slow_fabric_from is not None:
        fabric[slow_fabric_from:] += 0.3 * USUAL
    local = phases.sum(axis=2)
    whole = local.max(axis=1) + fabric
    ends = np.cumsum(whole)
    ts_ns = ((ends - whole) * 1e9).astype(np.int64)
    step = np.repeat(np.arange(steps), ranks)
    comm = whole[:, None] - local
    return StepRows(step, np.tile(np.arange(ranks), steps), ts_ns[step], phases.reshape(-1, len(PHASES)), comm.ravel())


def chosen(rows: StepRows, which: np.ndarray) -> StepRows:  # type: ignore[type-arg]
    """Some of the rows, in the order given."""
    return StepRows(rows.step[which], rows.rank[which], rows.ts_ns[which], rows.phases[which], rows.comm[which])

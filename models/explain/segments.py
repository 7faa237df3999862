"""A run as the segments between its synchronisations, each seen from the rank that arrived last.

In a synchronous step every rank takes the same time T. Rank r waits `wait_r` in exposed communication and spends
`local_r = T - wait_r` otherwise. The culprit is the rank of the largest local time; what it still waits is the
fabric: nobody is missing any more and the collective still runs. So T = max local + fabric, and no clocks need to
agree. A segment runs from the end of one step's last collective to the end of the next one's: what a rank does after
the collective (its `tail`) delays its next arrival, so it belongs to the next segment.

Source: POP metrics definitions; Lin et al., "Understanding Stragglers in Large Model Training Using What-if
Analysis", OSDI 2025.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from crosswind.data.features import WARM_UP_STEPS
from crosswind.data.prediction import Floats

LOCAL_PHASES = ("input", "compute", "checkpoint", "other")
PHASES = (*LOCAL_PHASES, "fabric")
EVIDENCE = ("run_queue_wait", "cpu_user", "cpu_system", "minor_faults", "comm_thread_wait")
COLUMNS = (*PHASES, *EVIDENCE)


@dataclass(frozen=True)
class Segments:
    """One run's segments: `values` has shape (n_segments, len(COLUMNS)), seconds (faults: count), NaN = not recorded.

    `culprits` has shape (n_segments,): the rank that arrived last. Phases of a row sum to the segment's time.
    """

    run_id: str
    ranks: int
    values: Floats
    culprits: Floats

    @property
    def time(self) -> float:
        """Mean time of a segment in seconds: the sum of its phases."""
        return float(self.values[:, : len(PHASES)].sum(axis=1).mean())

    @property
    def means(self) -> Floats:
        """Mean of every column over the segments, shape (len(COLUMNS),)."""
        return np.asarray(self.values.mean(axis=0))


def segments_of(run_id: str, steps: pd.DataFrame, comm_thread_wait: float) -> Segments | None:
    """Segments of a run from the rows of its steps; None when no two steps of all ranks have collectives.

    `comm_thread_wait` is the time a step that the rank's other threads waited for a core, NaN when not sampled.
    """
    ranks = steps["rank"].nunique()
    comparable = steps[steps["step"] >= WARM_UP_STEPS]
    if comparable.empty:
        return None
    every = comparable.pivot(index="step", columns="rank")
    required = _column(every, "tail_seconds" if ranks > 1 else "duration_seconds")
    grid = every[pd.Series(~np.isnan(required).any(axis=1), index=every.index)]
    if len(grid) < 2:
        return None
    tail = _column(grid, "tail_seconds") if ranks > 1 else np.zeros((len(grid), 1))
    follows = np.diff(grid.index.to_numpy()) == 1
    shift = (tail[:-1] - tail[1:])[follows]
    phases = {name: _column(grid, f"{name}_seconds")[1:][follows] for name in LOCAL_PHASES}
    phases["compute"] = phases["compute"] + shift
    culprit = np.argmax(sum(phases.values()), axis=1)
    phases["fabric"] = _column(grid, "comm_seconds")[1:][follows]
    evidence = {name: _column(grid, EVIDENCE_COLUMNS[name])[1:][follows] for name in EVIDENCE_COLUMNS}
    rows = np.arange(len(culprit))
    chosen = [values[rows, culprit] for values in (*phases.values(), *evidence.values())]
    values = np.column_stack([*chosen, np.full(len(rows), comm_thread_wait)])
    return Segments(run_id, ranks, values, grid["duration_seconds"].columns.to_numpy()[culprit])


EVIDENCE_COLUMNS = {
    "run_queue_wait": "run_queue_wait_seconds",
    "cpu_user": "cpu_user_seconds",
    "cpu_system": "cpu_system_seconds",
    "minor_faults": "minor_faults",
}


def _column(grid: pd.DataFrame, name: str) -> Floats:
    return grid[name].to_numpy(dtype=float, na_value=np.nan)

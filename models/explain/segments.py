"""A run as the segments between its synchronisations, each seen from the rank that arrived last.

In a synchronous step every rank takes the same time T. Rank r waits `wait_r` in exposed communication and spends
`local_r = T - wait_r` otherwise. The culprit is the rank of the largest local time; what it still waits is the
fabric: nobody is missing any more and the collective still runs. So T = max local + fabric, and no clocks need to
agree. A segment runs from the end of one step's last collective to the end of the next one's: what a rank does after
the collective (its `tail`) delays its next arrival, so it belongs to the next segment.

Source: POP metrics definitions; Lin et al., "Understanding Stragglers in Large Model Training Using What-if
Analysis", OSDI 2025.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.features import WARM_UP_STEPS
from crosswind.data.prediction import Floats

LOCAL_PHASES = ("input", "compute", "checkpoint", "other")
PHASES = (*LOCAL_PHASES, "fabric")
OF_RUN = (
    "comm_thread_wait",
    "throttled",
    "out_of_order",
    "timeouts",
    "overlimits",
)  # sampled, the same in all segments of a run
STALLS = ("stalled", "stalled_fabric")
EVIDENCE = ("run_queue_wait", "cpu_user", "cpu_system", "minor_faults", *OF_RUN, *STALLS)
COLUMNS = (*PHASES, *EVIDENCE)
OF_ALL_RANKS = ("fabric", "comm_thread_wait", "out_of_order", "timeouts", "overlimits", "stalled_fabric")
STALL_SHARE = 0.05  # of the segments at most: what happens more often is no stall
EVIDENCE_COLUMNS = ("run_queue_wait_seconds", "cpu_user_seconds", "cpu_system_seconds", "minor_faults")
DURATION, TAIL = "duration_seconds", "tail_seconds"
GRID_COLUMNS = (DURATION, TAIL, "comm_seconds", *(f"{name}_seconds" for name in LOCAL_PHASES), *EVIDENCE_COLUMNS)


@dataclass(frozen=True)
class Segments:
    """One run's segments: `values` has shape (n_segments, len(COLUMNS)), seconds or counts, NaN = not recorded.

    `culprits` has shape (n_segments,): the rank that arrived last. Phases of a row sum to the segment's time. `peers`
    has the shape of `values`: the median of the other ranks in the same segment, NaN for a single rank.
    """

    run_id: str
    ranks: int
    values: Floats
    culprits: Floats
    peers: Floats

    @property
    def time(self) -> float:
        """Mean time of a segment in seconds: the sum of its phases."""
        return float(self.values[:, : len(PHASES)].sum(axis=1).mean())

    def lag(self) -> "Segments":
        """The same segments as differences from the peers: what the last rank spent more, and why.

        Ranks of one run share its machine's pace, so differences between them do not drift with it. The fabric and what
        is told of it belong to all ranks: they differ by nothing.
        """
        differences = self.values - self.peers
        differences[:, [COLUMNS.index(name) for name in OF_ALL_RANKS]] = 0.0
        differences[:, COLUMNS.index("throttled")] = self.values[:, COLUMNS.index("throttled")]
        return replace(self, values=differences, peers=np.full_like(self.peers, np.nan))

    @property
    def means(self) -> Floats:
        """Mean of every column over the segments, shape (len(COLUMNS),)."""
        return np.asarray(self.values.mean(axis=0))


def segments_of(run_id: str, steps: pd.DataFrame, sampled: Mapping[str, float]) -> Segments | None:
    """Segments of a run from the rows of its steps; None when no two steps of all ranks have collectives.

    `sampled` holds what OF_RUN names, each a step: `comm_thread_wait`, seconds that a rank's threads other than its
    loop's waited for a core, `throttled`, seconds for which a quota stopped it, and counts; what it lacks is NaN.
    """
    numbers, ranks, grid = _grid(steps)
    tail = grid[TAIL] if len(ranks) > 1 else np.zeros_like(grid[TAIL])
    whole = np.asarray(~np.isnan(tail + grid[DURATION]).any(axis=1))
    follows = whole[1:] & whole[:-1] & (np.diff(numbers) == 1)
    if not follows.any():
        return None
    phases = {name: grid[f"{name}_seconds"][1:][follows] for name in LOCAL_PHASES}
    phases["compute"] = phases["compute"] + (tail[:-1] - tail[1:])[follows]
    culprit = np.argmax(sum(phases.values()), axis=1)
    phases["fabric"] = grid["comm_seconds"][1:][follows]
    evidence = [grid[column][1:][follows] for column in EVIDENCE_COLUMNS]
    of_run = [np.full((*culprit.shape, len(ranks)), sampled.get(name, np.nan)) for name in OF_RUN]
    columns = np.stack([*phases.values(), *evidence, *of_run], axis=2)
    is_culprit = np.arange(len(ranks)) == culprit[:, None]
    values, peers = columns[is_culprit], _middle(columns, ~is_culprit)
    stalls = stalled(values)
    return Segments(
        run_id,
        len(ranks),
        np.column_stack([values, stalls]),
        ranks[culprit],
        np.column_stack([peers, np.where(np.isnan(peers[:, :1]), np.nan, np.zeros_like(stalls))]),
    )


def stalled(values: Floats) -> Floats:
    """Time for which the rank did nothing, and for which the fabric did, in the few segments that stand out by it.

    Shape (n_segments, 2), seconds. A process that is stopped, or a frame that is sent again after a timeout, costs
    once what a step takes several times; it neither runs nor waits for a core meanwhile.
    """
    time = np.median(values[:, : len(PHASES)].sum(axis=1))
    of = {name: values[:, place] for place, name in enumerate((*PHASES, *EVIDENCE[:4]))}
    idle = of["compute"] - of["run_queue_wait"] - of["cpu_user"] - of["cpu_system"]
    found = []
    for each in (np.nan_to_num(idle), of["fabric"]):
        beyond = each - np.median(each)
        stands_out = beyond > 2 * time
        found.append(np.where(stands_out & (stands_out.mean() <= STALL_SHARE), beyond, 0.0))
    return np.column_stack(found)


def _middle(columns: Floats, chosen: NDArray[np.bool_]) -> Floats:
    """Median over the chosen ranks, one fewer than there are, of every column; shape (n_segments, n_columns)."""
    segments, ranks, width = columns.shape
    if ranks == 1:
        return np.full((segments, width), np.nan)
    return np.asarray(np.median(columns[chosen].reshape(segments, ranks - 1, width), axis=1))


def _grid(steps: pd.DataFrame) -> tuple[Floats, Floats, dict[str, Floats]]:
    """Step numbers, ranks, and every column as an array of shape (n_steps, n_ranks), NaN where no row was recorded."""
    comparable = steps[steps["step"] >= WARM_UP_STEPS]
    numbers, step_index = np.unique(comparable["step"].to_numpy(dtype=float), return_inverse=True)
    ranks, rank_index = np.unique(comparable["rank"].to_numpy(dtype=float), return_inverse=True)
    rows = comparable[list(GRID_COLUMNS)].to_numpy(dtype=float, na_value=np.nan)
    filled = np.full((len(numbers), len(ranks), len(GRID_COLUMNS)), np.nan)
    filled[step_index, rank_index] = rows
    return numbers, ranks, {name: filled[:, :, column] for column, name in enumerate(GRID_COLUMNS)}

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
MANY_RANKS = 16
STALL_SHARE = 0.05  # of the segments at most: what happens more often is no stall
EVIDENCE_COLUMNS = ("run_queue_wait_seconds", "cpu_user_seconds", "cpu_system_seconds", "minor_faults")
DURATION, TAIL = "duration_seconds", "tail_seconds"
GRID_COLUMNS = (DURATION, TAIL, "comm_seconds", *(f"{name}_seconds" for name in LOCAL_PHASES), *EVIDENCE_COLUMNS)


@dataclass(frozen=True)
class Segments:
    """One run's segments: `values` has shape (n_segments, len(COLUMNS)), seconds or counts, NaN = not recorded.

    `culprits` has shape (n_segments,): the rank that arrived last. Phases of a row sum to the segment's time. `peers`
    has the shape of `values`: the median of the other ranks in the same segment (of all, where they are many), NaN for
    a single rank.
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
    columns = {name: grid[f"{name}_seconds"][1:][follows] for name in LOCAL_PHASES}
    columns["compute"] = columns["compute"] + (tail[:-1] - tail[1:])[follows]
    culprit = np.argmax(sum(columns.values()), axis=1)
    columns["fabric"] = grid["comm_seconds"][1:][follows]
    columns |= {name: grid[column][1:][follows] for name, column in zip(EVIDENCE, EVIDENCE_COLUMNS, strict=False)}
    of_run = np.tile([sampled.get(name, np.nan) for name in OF_RUN], (len(culprit), 1))
    values = np.column_stack([*(_at(column, culprit) for column in columns.values()), of_run])
    peers = np.column_stack([*(_middle_of_others(column, culprit) for column in columns.values()), of_run])
    stalls = stalled(values)
    is_alone = len(ranks) == 1
    return Segments(
        run_id,
        len(ranks),
        np.column_stack([values, stalls]),
        ranks[culprit],
        np.full((len(culprit), len(COLUMNS)), np.nan) if is_alone else np.column_stack([peers, np.zeros_like(stalls)]),
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


def _at(column: Floats, culprit: NDArray[np.int64]) -> Floats:
    return np.asarray(np.take_along_axis(column, culprit[:, None], axis=1)[:, 0])


def _middle_of_others(column: Floats, culprit: NDArray[np.int64]) -> Floats:
    """Median over the ranks but the culprit, shape (n_segments,); of many ranks over all, which differs by little."""
    segments, ranks = column.shape
    if ranks == 1:
        return np.full(segments, np.nan)
    if ranks > MANY_RANKS:
        return np.asarray(np.median(column, axis=1))
    others = np.arange(ranks) != culprit[:, None]
    return np.asarray(np.median(column[others].reshape(segments, ranks - 1), axis=1))


def _grid(steps: pd.DataFrame) -> tuple[Floats, Floats, dict[str, Floats]]:
    """Step numbers, ranks, and every column as an array of shape (n_steps, n_ranks), NaN where no row was recorded."""
    is_comparable = steps["step"].to_numpy(dtype=float) >= WARM_UP_STEPS
    comparable = steps if is_comparable.all() else steps[is_comparable]
    numbers, step_index = _placed(comparable["step"])
    ranks, rank_index = _placed(comparable["rank"])
    grid = {}
    for name in GRID_COLUMNS:
        grid[name] = np.full((len(numbers), len(ranks)), np.nan)
        grid[name][step_index, rank_index] = comparable[name].to_numpy(dtype=float, na_value=np.nan)
    return numbers, ranks, grid


def _placed(values: "pd.Series[int]") -> tuple[Floats, NDArray[np.int64]]:
    """The different values in order, and the place of each among them."""
    found = values.to_numpy(dtype=float)
    different = np.sort(np.asarray(pd.unique(found), dtype=np.float64))
    return different, np.asarray(np.searchsorted(different, found), dtype=np.int64)

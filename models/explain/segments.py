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
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats
from crosswind.data.store.features import WARM_UP_STEPS
from crosswind.models.explain.rates import CLOCKS
from crosswind.models.explain.standing_out import standing_out, uneven
from crosswind.models.explain.step_grid import Rows, grid_of, rows_of

LOCAL_PHASES = ("input", "compute", "checkpoint", "other")
MARKED = ("checkpoint", "other")
PHASES = (*LOCAL_PHASES, "fabric")
OF_THREAD = ("run_queue_wait", "cpu_user", "cpu_system", "minor_faults", "major_faults")
# Sampled, the same in all segments of a run: on the worst node, and on its links.
OF_NODE = (
    *("throttled", "stolen", "heat_throttled", "power_throttled"),
    *("memory_stalled", "io_stalled", "cpu_waited", "swapped_in"),
)
OF_LINKS = (
    *("comm_thread_wait", "out_of_order", "timeouts", "overlimits", "retransmits", "retries"),
    *("link_busy", "pauses", "port_waits", "marks", "backlog"),
)
# What other runs took with this run's software, or spread over nodes as this one is.
OF_ALIKE = ("software_compute", "software_fabric", "placement_compute", "placement_fabric")
OF_RUN = (*OF_NODE, *OF_LINKS, *OF_ALIKE)
FOUND = ("stalled", "stalled_fabric", "recompiled", "uneven", "clock_lost", "slow_node")  # in the segments themselves
EVIDENCE = (*OF_THREAD, *OF_RUN, *FOUND)
COLUMNS = (*PHASES, *EVIDENCE)
OF_ALL_RANKS = ("fabric", *OF_LINKS, *OF_ALIKE, "stalled_fabric")
OF_LAST_RANK = (*OF_NODE, "stalled", "recompiled", "uneven", "clock_lost", "slow_node")
MANY_RANKS = 16
THREAD_COLUMNS = ("run_queue_wait_seconds", "cpu_user_seconds", "cpu_system_seconds", "minor_faults", "major_faults")
DURATION, TAIL = "duration_seconds", "tail_seconds"
GRID_COLUMNS = (DURATION, TAIL, "comm_seconds", *(f"{name}_seconds" for name in LOCAL_PHASES), *THREAD_COLUMNS)


@dataclass(frozen=True)
class Segments:
    """One run's segments: `values` has shape (n_segments, len(COLUMNS)), seconds or counts, NaN = not recorded.

    `culprits` has shape (n_segments,): the rank that arrived last. Phases of a row sum to the segment's time. `peers`
    has the shape of `values`: the median of the other ranks in the same segment (of all, where they are many), NaN for
    a single rank. `work` is the mean compute of each rank, seconds, without what it waited for a core. `of_ranks` has
    shape (ranks, len(COLUMNS)): every rank's means, whoever came last; no rows for a single rank. `clocks` are the
    mean CLOCKS, hertz; `count` is how many segments the run had, of a condensed one more than its rows.
    """

    run_id: str
    ranks: int
    values: Floats
    culprits: Floats
    peers: Floats
    work: Mapping[int, float] = field(default_factory=dict)
    of_ranks: Floats = field(default_factory=lambda: np.empty((0, len(COLUMNS))))
    clocks: tuple[float, ...] = (np.nan,) * len(CLOCKS)
    count: int = 0

    @property
    def time(self) -> float:
        """Mean time of a segment in seconds: the sum of its phases."""
        return float(self.values[:, : len(PHASES)].sum(axis=1).mean())

    def contrasts(self) -> Floats:
        """Return what each rank spent more than the median of the others, and why, shape (ranks, len(COLUMNS)).

        Ranks of one run share its machine's pace, so differences between them do not drift with it. The fabric and what
        is told of it belong to all ranks: they differ by nothing. What is told of a node is taken as told of each.
        """
        differences = self.of_ranks - _middle_of_other_rows(self.of_ranks)
        differences[:, [COLUMNS.index(name) for name in OF_ALL_RANKS]] = 0.0
        own = [COLUMNS.index(name) for name in OF_LAST_RANK]
        differences[:, own] = self.of_ranks[:, own]
        return differences

    @property
    def means(self) -> Floats:
        """Mean of every column over the segments, shape (len(COLUMNS),)."""
        return np.asarray(self.values.mean(axis=0))


def segments_of(run_id: str, steps: pd.DataFrame, sampled: Mapping[str, float]) -> Segments | None:
    """Segments of a run from the rows of its steps; None when no two steps of all ranks have collectives.

    `sampled` holds what OF_RUN names, each a step: `comm_thread_wait`, seconds that a rank's threads other than its
    loop's waited for a core, `throttled`, seconds for which a quota stopped it, and counts; and CLOCKS, hertz. What it
    lacks is NaN.
    """
    compared = steps[steps["step"].to_numpy(dtype=float) >= WARM_UP_STEPS]
    return segments_from(run_id, rows_of(compared, ("step", "rank", *GRID_COLUMNS)), sampled)


def segments_from(run_id: str, rows: Rows, sampled: Mapping[str, float]) -> Segments | None:
    """As `segments_of`, of columns of rows after warm-up: step, rank and GRID_COLUMNS, in any order."""
    numbers, ranks, grid = grid_of(rows, GRID_COLUMNS)
    tail = grid[TAIL] if len(ranks) > 1 else np.zeros_like(grid[TAIL])
    whole = np.asarray(~np.isnan(tail + grid[DURATION]).any(axis=1))
    follows = whole[1:] & whole[:-1] & (np.diff(numbers) == 1)
    if not follows.any():
        return None
    columns = {name: grid[f"{name}_seconds"][1:][follows] for name in LOCAL_PHASES}
    columns["compute"] = columns["compute"] + (tail[:-1] - tail[1:])[follows]
    if _marked_late(grid, tail, follows):
        columns |= {name: grid[f"{name}_seconds"][:-1][follows] for name in MARKED}
    culprit = np.argmax(sum(columns.values()), axis=1)
    columns["fabric"] = grid["comm_seconds"][1:][follows]
    columns |= {name: grid[column][1:][follows] for name, column in zip(OF_THREAD, THREAD_COLUMNS, strict=True)}
    last = {name: _at(column, culprit) for name, column in columns.items()}
    work = columns["compute"] - columns["run_queue_wait"]
    time = float(np.median(sum(last[name] for name in PHASES)))
    unknown = np.full((len(culprit), 2), np.nan)  # of its clocks and its nodes, until other runs tell
    derived = np.column_stack([standing_out(last, time), uneven(work, culprit), unknown])
    of_run = np.tile([sampled.get(name, np.nan) for name in OF_RUN], (len(culprit), 1))
    values = np.column_stack([*last.values(), of_run, derived])
    if len(ranks) == 1:
        peers = np.full_like(values, np.nan)
    else:
        others = [_middle_of_others(column, culprit) for column in columns.values()]
        peers = np.column_stack([*others, of_run, np.zeros_like(derived)])
    mean_work = np.where(np.isnan(work), columns["compute"], work).mean(axis=0)
    per_rank = dict(zip(ranks.astype(int).tolist(), mean_work.tolist(), strict=True))
    means = [column.mean(axis=0) for column in columns.values()]
    derived_on = (np.arange(len(ranks))[:, None] == culprit) @ derived / len(culprit)
    of_ranks = np.column_stack([*means, np.tile(of_run[0], (len(ranks), 1)), derived_on])
    clocks = tuple(sampled.get(name, np.nan) for name in CLOCKS)
    rows_of_ranks = of_ranks if len(ranks) > 1 else of_ranks[:0]
    return Segments(run_id, len(ranks), values, ranks[culprit], peers, per_rank, rows_of_ranks, clocks, len(values))


def _marked_late(grid: Mapping[str, Floats], tail: Floats, follows: NDArray[np.bool_]) -> bool:
    """Return whether marked phases come after a step's last collective, and so delay the next segment.

    A segment lasts equally long on all ranks: that is nearer to the truth which makes them more alike.
    """
    marked = np.sum([grid[f"{name}_seconds"] for name in MARKED], axis=0)
    early = (grid[DURATION][1:] - tail[1:] + tail[:-1])[follows]
    late = early + (marked[:-1] - marked[1:])[follows]
    return bool(np.ptp(late, axis=1).sum() < np.ptp(early, axis=1).sum())


def _at(column: Floats, culprit: NDArray[np.int64]) -> Floats:
    return np.asarray(np.take_along_axis(column, culprit[:, None], axis=1)[:, 0])


def _middle_of_others(column: Floats, culprit: NDArray[np.int64]) -> Floats:
    """Median over the ranks but the culprit, shape (n_segments,); of many ranks over all, which differs by little."""
    segments, ranks = column.shape
    if ranks > MANY_RANKS:
        return np.asarray(np.median(column, axis=1))
    others = column[np.arange(ranks) != culprit[:, None]].reshape(segments, ranks - 1)
    return others[:, 0] if ranks == 2 else np.asarray(np.median(others, axis=1))


def _middle_of_other_rows(means: Floats) -> Floats:
    """Median over the rows but each itself, of the shape of `means`; of many rows over all, which differs by little."""
    if len(means) > MANY_RANKS:
        return np.tile(np.median(means, axis=0), (len(means), 1))
    others = [np.median(np.delete(means, rank, axis=0), axis=0) for rank in range(len(means))]
    return np.array(others).reshape(means.shape)

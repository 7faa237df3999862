"""A run as the segments between its synchronisations, by the steps and samples of its own.

In a synchronous step every rank takes the same time T. Rank r waits `wait_r` in exposed communication and spends
`local_r = T - wait_r` otherwise. The culprit is the rank of the largest local time; what it still waits is the
fabric: nobody is missing any more and the collective still runs. So T = max local + fabric, and no clocks need to
agree. A segment runs from the end of one step's last collective to the end of the next one's: what a rank does after
the collective (its `tail`) delays its next arrival, so it belongs to the next segment.

Source: POP metrics definitions; Lin et al., "Understanding Stragglers in Large Model Training Using What-if
Analysis", OSDI 2025.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.cohort.columns import COMPARED_SAMPLES, IN_SEGMENTS, OWN_COLUMNS, SAMPLED_COLUMNS
from crosswind.models.explain.evidence.indicators import SegmentTimes
from crosswind.models.explain.evidence.step_columns import LOCAL_PHASES, MARKED, PHASES, THREAD
from crosswind.models.explain.evidence.step_grid import Rows, grid_of

MANY_RANKS = 16  # above which the median of the others is taken over all: it differs by little
DURATION, TAIL = "duration_seconds", "tail_seconds"
GRID_COLUMNS = (DURATION, TAIL, "comm_seconds", *(f"{name}_seconds" for name in LOCAL_PHASES), *THREAD.values())


@dataclass(frozen=True)
class OwnSegments:
    """Segments of one run by itself: `values` has shape (n_segments, len(OWN_COLUMNS)), seconds or counts.

    NaN = not recorded. `culprits` has shape (n_segments,): the rank that arrived last, of which the values are. Phases
    of a row sum to the segment's time. `peers` has the shape of `values`: the median of the other ranks in the same
    segment (of all, where they are many), NaN for a single rank. `of_ranks` has shape (n_ranks, len(OWN_COLUMNS)): the
    means of every rank, whoever arrived last; no rows for a single rank. `work` is the mean compute of each rank
    without its wait for a core, seconds. `samples` are the COMPARED_SAMPLES. `count` is how many segments the run had,
    of a condensed one more than its rows. `steps` are the numbers of the steps, `behind` the seconds by which the last
    rank arrived after the next one, of shape (n_segments,), or empty of a condensed run and for a single rank.
    """

    run_id: str
    values: Floats
    culprits: Floats
    peers: Floats
    of_ranks: Floats
    work: Mapping[int, float]
    samples: Mapping[str, float]
    count: int
    steps: Floats = field(default_factory=lambda: np.empty(0))
    behind: Floats = field(default_factory=lambda: np.empty(0))


def own_segments(run_id: str, rows: Rows, sampled: Mapping[str, float]) -> OwnSegments | None:
    """Return segments from a run's step rows; None when no two steps of all ranks have collectives.

    rows: columns step, rank and GRID_COLUMNS of the steps after warm-up, in any order. sampled: by name SAMPLED_COLUMNS
    a step, seconds or counts, and COMPARED_SAMPLES; the ones that it lacks are NaN.
    """
    numbers, ranks, grid = grid_of(rows, GRID_COLUMNS)
    times = _segment_times(numbers, grid)
    if times is None:
        return None
    count, is_single = len(times.culprit), len(ranks) == 1
    constant = {name: sampled.get(name, np.nan) for name in SAMPLED_COLUMNS}
    derived = {one.column: one.measure(times) for one in IN_SEGMENTS}
    work = np.where(np.isnan(times.work), times.of_ranks["compute"], times.work).mean(axis=0)
    return OwnSegments(
        run_id,
        values=_matrix(count, {**times.last, **constant, **derived}),
        culprits=ranks[times.culprit],
        peers=np.full((count, len(OWN_COLUMNS)), np.nan) if is_single else _peers(times, constant),
        of_ranks=_matrix(0, dict.fromkeys(OWN_COLUMNS, np.nan)) if is_single else _of_ranks(times, constant, derived),
        work=dict(zip(ranks.astype(int).tolist(), work.tolist(), strict=True)),
        samples={one.column: sampled.get(one.column, np.nan) for one in COMPARED_SAMPLES},
        count=count,
        steps=times.steps,
        behind=np.empty(0) if is_single else _behind(times),
    )


def condensed(own: OwnSegments) -> OwnSegments:
    """Return the same run in few rows, for a cohort of whose runs nothing but means is needed; `peers` is empty.

    There is a row for each rank that arrived last, because other runs show what share of such a rank's compute was
    lost. The mean of the rows is the mean of the segments.
    """
    order = np.argsort(own.culprits, kind="stable")
    ranks, first = np.unique(own.culprits[order], return_index=True)
    values = np.add.reduceat(own.values[order], first, axis=0) * (len(ranks) / len(own.values))
    nothing = np.empty(0)
    peers = np.empty((0, values.shape[1]))
    return replace(own, values=values, culprits=ranks, peers=peers, steps=nothing, behind=nothing)


def _segment_times(numbers: Floats, grid: Mapping[str, Floats]) -> SegmentTimes | None:
    """Return the times of the segments between steps that follow each other and that all ranks recorded.

    numbers: the steps', shape (n_steps,); grid: GRID_COLUMNS, shape (n_steps, n_ranks).
    """
    is_single = grid[TAIL].shape[1] == 1
    tail = np.zeros_like(grid[TAIL]) if is_single else grid[TAIL]
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
    columns |= {name: grid[column][1:][follows] for name, column in THREAD.items()}
    last = {name: np.take_along_axis(column, culprit[:, None], axis=1)[:, 0] for name, column in columns.items()}
    usual = float(np.median(sum(last[name] for name in PHASES)))
    return SegmentTimes(columns, last, culprit, usual, numbers[1:][follows])


def _marked_late(grid: Mapping[str, Floats], tail: Floats, follows: NDArray[np.bool_]) -> bool:
    """Return whether marked phases come after a step's last collective, and so delay the next segment.

    A segment lasts equally long on all ranks: that is nearer to the truth which makes them more alike.
    """
    marked = np.sum([grid[f"{name}_seconds"] for name in MARKED], axis=0)
    early = (grid[DURATION][1:] - tail[1:] + tail[:-1])[follows]
    late = early + (marked[:-1] - marked[1:])[follows]
    return bool(np.ptp(late, axis=1).sum() < np.ptp(early, axis=1).sum())


def _behind(times: SegmentTimes) -> Floats:
    """Return the seconds by which the last rank arrived after the next one, shape (n_segments,)."""
    local = np.sum([times.of_ranks[name] for name in LOCAL_PHASES], axis=0)
    two = np.partition(local, -2, axis=1)[:, -2:]
    return np.asarray(two[:, 1] - two[:, 0])


def _peers(times: SegmentTimes, constant: Mapping[str, float]) -> Floats:
    medians = {name: _median_of_others(column, times.culprit) for name, column in times.of_ranks.items()}
    nothing = {one.column: 0.0 for one in IN_SEGMENTS}
    return _matrix(len(times.culprit), {**medians, **constant, **nothing})


def _of_ranks(times: SegmentTimes, constant: Mapping[str, float], derived: Mapping[str, Floats]) -> Floats:
    """Return the means of every rank; evidence derived from the segments counts for the rank that arrived last."""
    means = {name: column.mean(axis=0) for name, column in times.of_ranks.items()}
    count = len(means["compute"])
    sums = {name: np.bincount(times.culprit, seconds, count) for name, seconds in derived.items()}
    while_last = {name: seconds / len(times.culprit) for name, seconds in sums.items()}
    return _matrix(count, {**means, **constant, **while_last})


def _matrix(count: int, columns: Mapping[str, Floats | float]) -> Floats:
    """Return the columns in the order of OWN_COLUMNS, shape (count, len(OWN_COLUMNS))."""
    matrix = np.empty((count, len(OWN_COLUMNS)))
    for place, name in enumerate(OWN_COLUMNS):
        matrix[:, place] = columns[name]
    return matrix


def _median_of_others(column: Floats, culprit: NDArray[np.int64]) -> Floats:
    """Return the median over the ranks but the culprit, shape (n_segments,); column: shape (n_segments, n_ranks)."""
    segments, ranks = column.shape
    if ranks > MANY_RANKS:
        return np.asarray(np.median(column, axis=1))
    others = column[np.arange(ranks) != culprit[:, None]].reshape(segments, ranks - 1)
    return others[:, 0] if ranks == 2 else np.asarray(np.median(others, axis=1))

"""Variability of the time to train, split into luck in converging and the system."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, median, stdev

from crosswind.data.schema.run import Run, RunState, cohort_key

PROGRESS_TAG = "progress"  # of a run: how far it came when it reached its target
UNIT_TAG = "progress_unit"  # what that counts: epochs, samples, steps, as the log calls it


@dataclass(frozen=True)
class ProgressRate:
    """Variability of runs that trained the same to the same target.

    Time to train = progress to target x time per unit of progress. The first factor varies with seeds and the order of
    sums; the second is what nodes, network and storage did. Ratios are sample std over mean.
    """

    workload: str
    system: str
    world_size: int | None
    unit: str
    runs: int
    seconds_p50: float
    seconds_cov_ratio: float
    progress_p50: float
    progress_cov_ratio: float
    seconds_per_progress_p50: float
    seconds_per_progress_cov_ratio: float


def progress_rates(runs: Iterable[Run]) -> list[ProgressRate]:
    """One per cohort of two or more completed runs that say how far they came in one unit; largest cohorts first.

    Runs that did not reach their target, or say nothing of progress, are left out.
    """
    cohorts = defaultdict(list)
    for run in runs:
        unit, progress = run.tags.get(UNIT_TAG, ""), _progress(run)
        if run.state is RunState.COMPLETED and run.seconds and progress:
            cohorts[cohort_key(run), unit].append((run, run.seconds, progress))
    rates = [_rate(unit, members) for (_, unit), members in cohorts.items() if len(members) > 1]
    return sorted(rates, key=lambda rate: -rate.runs)


def _rate(unit: str, members: Sequence[tuple[Run, float, float]]) -> ProgressRate:
    first = members[0][0]
    seconds = [duration for _, duration, _ in members]
    progress = [count for _, _, count in members]
    paces = [time / count for time, count in zip(seconds, progress, strict=True)]
    return ProgressRate(
        workload=first.workload,
        system=first.system,
        world_size=first.world_size,
        unit=unit,
        runs=len(members),
        seconds_p50=median(seconds),
        seconds_cov_ratio=_cov(seconds),
        progress_p50=median(progress),
        progress_cov_ratio=_cov(progress),
        seconds_per_progress_p50=median(paces),
        seconds_per_progress_cov_ratio=_cov(paces),
    )


def _cov(values: Sequence[float]) -> float:
    return stdev(values) / mean(values)


def _progress(run: Run) -> float | None:
    """Return how far a run came, where it says so by a number above zero."""
    try:
        progress = float(run.tags.get(PROGRESS_TAG, ""))
    except ValueError:
        return None
    return progress if 0 < progress < math.inf else None

"""Outcomes of a run, read off the spool by the standard library alone: a compute node has no store."""

import math
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, median, quantiles, stdev

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.ingest.spool.segment import RowsFrame
from crosswind.ingest.spool.segment_reader import read_segment

WARM_UP_STEPS = 3  # as data/features leaves them out
NANOSECOND = 1e-9
PERCENT = 20  # quantiles in steps of 5 %


def step_outcomes(spool: Path, run_id: str) -> dict[str, float]:
    """Quantiles, mean and variability of the run's step time in seconds, as `crosswind show` has them.

    Nothing where it recorded no steps. A step's duration is that of the slowest rank that writes to this spool.
    """
    seconds = step_seconds(spool, run_id)[WARM_UP_STEPS:]
    if not seconds:
        return {}
    outcomes = {"steps": float(len(seconds)), "step_p50_seconds": median(seconds), "step_mean_seconds": fmean(seconds)}
    if len(seconds) > 1:
        levels = quantiles(seconds, n=PERCENT, method="inclusive")
        outcomes |= {"step_p05_seconds": levels[0], "step_p95_seconds": levels[-1]}
        outcomes["step_cov_ratio"] = (
            stdev(seconds) / outcomes["step_mean_seconds"] if outcomes["step_mean_seconds"] else math.nan
        )
    return {name: value for name, value in outcomes.items() if math.isfinite(value)}


def step_seconds(spool: Path, run_id: str) -> list[float]:
    """Return how long the slowest rank that writes here took for every step so far, in order, warm-up included."""
    slowest: dict[int, int] = {}
    for step, duration in _steps(spool, run_id):
        slowest[step] = max(duration, slowest.get(step, 0))
    return [slowest[step] * NANOSECOND for step in sorted(slowest)]


def _steps(spool: Path, run_id: str) -> Iterator[tuple[int, int]]:
    """Number and duration in nanoseconds of every step of every rank."""
    for frame in _rows(spool):
        columns = frame.columns
        if frame.metric_set.name != "step" or not {"run_id", "step", "duration_seconds"} <= columns.keys():
            continue
        for run, step, duration in zip(columns["run_id"], columns["step"], columns["duration_seconds"], strict=True):
            if run == run_id and isinstance(step, int) and isinstance(duration, int):
                yield step, duration


def _rows(spool: Path) -> Iterator[RowsFrame]:
    for path in sorted([*spool.glob("*.segment"), *spool.glob("*.open")]):
        try:
            yield from (frame for frame in read_segment(path) if isinstance(frame, RowsFrame))
        except (UnavailableError, MalformedError):  # somebody stored it meanwhile, or it is no segment
            continue

"""Runs whose steps were made up: a known level, a checkpoint each 20 steps, sometimes a fault from some step on."""

import numpy as np
from numpy.typing import NDArray

from crosswind.models.forecast.past_runs import PastRun

STEPS = 60
CHECKPOINT = 4.0  # times an ordinary step
Floats = NDArray[np.float64]


def steps(seed: int, *, level: float = 0.1, fault: float = 1.0, begins: int = 0, noise: float = 0.1) -> Floats:
    """Seconds of 60 steps at a level, those from `begins` on `fault` times slower."""
    seconds = level * np.exp(np.random.default_rng(seed).normal(0, noise, STEPS))
    seconds[19::20] *= CHECKPOINT
    seconds[begins:] *= fault
    return seconds


def mixed(count: int, *, seed: int = 0, cohorts: int = 3) -> list[PastRun]:
    """Runs of several cohorts: half calm, a quarter twice as slow, a quarter so from a step in the middle on."""
    draw = np.random.default_rng(seed)
    runs = []
    for index in range(count):
        cohort = index % cohorts
        kind = draw.uniform()
        begins = 0 if kind < 0.25 else int(draw.integers(15, 45))
        fault = 2.0 if kind < 0.5 else 1.0
        seconds = steps(1000 * seed + index, level=0.1 * (1 + cohort), fault=fault, begins=begins)
        runs.append(PastRun(f"cohort-{cohort}", seconds))
    return runs

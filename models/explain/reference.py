"""What a run is compared with: the runs of its cohort that agree best.

Disturbances scatter, undisturbed runs agree: the reference is the shorth, the half of the runs that lies in the
shortest interval of step times. It holds while fewer than half of the runs are disturbed *alike*, where the median of
a cohort breaks down once half are disturbed at all. The cohort's usual spread is read from the runs that are faster
than the middle of the reference, because disturbances only ever add time, and is at least that of the reference.

Source: Andrews et al., "Robust Estimates of Location" (1972), for the shorth.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosswind.models.explain.segments import Segments

FEWEST_RUNS = 3  # others in the cohort, below which nothing is expected of a run
NORMAL_CONSISTENCY = 1.4826  # median absolute deviation -> standard deviation of a normal distribution


@dataclass(frozen=True)
class Reference:
    """The runs that agree best, and the cohort's usual standard deviation of their times in seconds."""

    runs: tuple[Segments, ...]
    spread: float


def reference_of(cohort: Sequence[Segments]) -> Reference:
    """The shorth of a cohort of at least FEWEST_RUNS runs; of equal intervals the fastest."""
    ordered = sorted(cohort, key=lambda run: run.time)
    times = np.array([run.time for run in ordered])
    size = max(FEWEST_RUNS, len(ordered) // 2 + 1)
    widths = times[size - 1 :] - times[: len(times) - size + 1]
    first = int(np.argmin(widths))
    chosen = slice(first, first + size)
    middle = float(np.median(times[chosen]))
    faster = NORMAL_CONSISTENCY * float(np.median(middle - times[times <= middle]))
    spread = max(faster, float(np.std(times[chosen], ddof=1)))
    return Reference(tuple(ordered[chosen]), spread)

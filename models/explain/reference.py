"""What a run is compared with: column by column, the runs of its cohort that agree best.

Disturbances scatter, undisturbed runs agree: the reference of a column is the middle of the shorth, the half of the
runs that lies in the shortest interval. It holds while fewer than half of the runs are disturbed *alike* in that
column, where the median of a cohort breaks down once half are disturbed at all. Few runs are disturbed in one column,
even where most are in some. A column's usual spread is read from the runs that lie below the middle of its reference,
because disturbances only ever add time, and is at least that of the reference.

Source: Andrews et al., "Robust Estimates of Location" (1972), for the shorth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crosswind.data.prediction import Floats
from crosswind.models.explain.segments import COLUMNS, PHASES, Segments

FEWEST_RUNS = 3  # others in the cohort, below which nothing is expected of a run
NORMAL_CONSISTENCY = 1.4826  # median absolute deviation -> standard deviation of a normal distribution
TIME = "time"  # a column beside COLUMNS: the sum of the phases


@dataclass(frozen=True)
class Reference:
    """Means of every run, shape (n_runs, len(COLUMNS)); their usual values and standard deviations, NaN = not recorded.

    `spread` has a value for TIME, too.
    """

    means: Floats
    usual: Floats
    spread: Mapping[str, float]


def reference_of(cohort: Sequence[Segments]) -> Reference:
    """The reference of a cohort of at least FEWEST_RUNS runs."""
    means = np.array([run.means for run in cohort])
    times = means[:, : len(PHASES)].sum(axis=1, keepdims=True)
    found = [_of_column(column) for column in np.hstack([means, times]).T]
    spread = dict(zip((*COLUMNS, TIME), (spread for _, spread in found), strict=True))
    return Reference(means, np.array([usual for usual, _ in found[: len(COLUMNS)]]), spread)


def usual_of(values: Floats) -> Floats:
    """The middle of the shorth along the last axis but one, of equal intervals the lowest; nothing may be NaN."""
    ordered = np.sort(values, axis=-2)
    count = ordered.shape[-2]
    size = max(min(FEWEST_RUNS, count), count // 2 + 1)
    widths = ordered[..., size - 1 :, :] - ordered[..., : count - size + 1, :]
    first = np.argmin(widths, axis=-2, keepdims=True)
    lower, upper = (np.take_along_axis(ordered, first + place, axis=-2) for place in ((size - 1) // 2, size // 2))
    return np.asarray((lower + upper)[..., 0, :] / 2)


def _of_column(values: Floats) -> tuple[float, float]:
    known = values[~np.isnan(values)]
    if len(known) < FEWEST_RUNS:
        return float(np.nan), float(np.nan)
    usual = float(usual_of(known[:, None])[0])
    size = max(FEWEST_RUNS, len(known) // 2 + 1)
    nearest = np.sort(np.abs(known - usual))[:size]
    below = NORMAL_CONSISTENCY * float(np.median(usual - known[known <= usual]))
    return usual, max(below, float(np.sqrt(np.mean(nearest**2))))

"""The reference that a run is compared with: column by column, the runs of its cohort that agree best.

Disturbances scatter, undisturbed runs agree: the reference of a column is the middle of the shorth, the half of the
runs that lies in the shortest interval. It holds while fewer than half of the runs are disturbed *alike* in that
column, where the median of a cohort breaks down once half are disturbed at all. Few runs are disturbed in one column,
even where most are in some. A column's usual spread comes from the runs that lie below the middle of its reference,
because disturbances only ever add time, and is at least that of the reference; where a column is next to nothing in
most runs and has a tail by itself, from those above. A value that a fifth of the runs share, such as a second way in
which memory is allocated, is usual, too, however far from the middle.

Source: Andrews et al., "Robust Estimates of Location" (1972), for the shorth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.cohort.columns import COLUMNS, OF_LAST_RANK
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.evidence.step_columns import PHASES

FEWEST_RUNS = 3  # others in the cohort, below which nothing is expected of a run
NORMAL_CONSISTENCY = 1.4826  # median absolute deviation -> standard deviation of a normal distribution
NEAREST, THIRD_CONSISTENCY = 1 / 3, 0.4307  # that quantile of the absolute value of a standard normal
UPPER, UPPER_CONSISTENCY = 0.75, 0.6745  # that quantile of a standard normal
TIME = "time"  # a column in addition to COLUMNS: the sum of the phases
USUAL_DEVIATION = 3.0  # spreads within which a run of the cohort counts as undisturbed in that column
ALIKE = 0.2  # of a value, within which another is the same: strengths of disturbances differ by more


@dataclass(frozen=True)
class Reference:
    """Means of every run, shape (n_runs, len(COLUMNS)), the usual values, and standard deviations by column.

    NaN = not recorded. `spread` has a value for TIME, too. Of ranks' contrasts, `means` has `per_run` rows a run, one
    for each rank.
    """

    means: Floats
    usual: Floats
    spread: Mapping[str, float]
    per_run: int = 1

    @property
    def runs(self) -> float:
        """Number of runs that it comes from."""
        return len(self.means) / self.per_run

    @property
    def is_of_ranks(self) -> bool:
        """Return whether it is of contrasts between ranks, which have signs."""
        return self.per_run > 1

    def deviations(self, count: int, random: np.random.Generator) -> Floats:
        """Draw deviations of undisturbed runs from the usual values, shape (count, len(COLUMNS)); NaN as in `usual`.

        A row is that of one run; in columns where that run is disturbed, a normal deviation takes its place.
        """
        spread = np.array([self.spread[name] for name in COLUMNS])
        differences = (self.means - self.usual)[random.integers(0, len(self.means), count)]
        normal = random.normal(size=differences.shape) * spread
        with np.errstate(invalid="ignore"):
            return np.where(np.abs(differences) <= USUAL_DEVIATION * spread, differences, normal)

    def share_alike(self, columns: Sequence[str], value: float) -> float:
        """Return the share of runs whose sum of these columns lies about this far beyond the usual one."""
        places = [COLUMNS.index(name) for name in columns]
        beyond = np.nansum((self.means - self.usual)[:, places], axis=1)
        near = max(ALIKE * abs(value), float(np.nansum([self.spread[name] for name in columns])))
        return float(np.sum(np.abs(beyond - value) <= near)) / self.runs


def reference_of(cohort: Sequence[Segments]) -> Reference:
    """Return the reference of a cohort of at least FEWEST_RUNS runs."""
    return _reference(np.array([run.means for run in cohort]), 1)


def contrasts_of(cohort: Sequence[Segments]) -> Reference:
    """Return the reference of the contrasts between the ranks of each run."""
    return _reference(np.vstack([run.contrasts() for run in cohort]), cohort[0].ranks)


def _reference(means: Floats, per_run: int) -> Reference:
    times = means[:, : len(PHASES)].sum(axis=1, keepdims=True)
    signed = [per_run > 1 and name not in OF_LAST_RANK for name in (*COLUMNS, TIME)]
    columns = zip(np.hstack([means, times]).T, signed, strict=True)
    of_columns = [_of_column(column, is_signed=is_signed) for column, is_signed in columns]
    spread = dict(zip((*COLUMNS, TIME), (spread for _, spread in of_columns), strict=True))
    return Reference(means, np.array([usual for usual, _ in of_columns[: len(COLUMNS)]]), spread, per_run)


def usual_of(values: Floats) -> Floats:
    """Return the middle of the shorth along the last axis but one, of equal intervals the lowest.

    values: shape (..., n_runs, n_columns), without NaN. Shape (..., n_columns).
    """
    ordered = np.sort(values, axis=-2)
    count = ordered.shape[-2]
    size = max(min(FEWEST_RUNS, count), count // 2 + 1)
    widths = ordered[..., size - 1 :, :] - ordered[..., : count - size + 1, :]
    first = np.argmin(widths, axis=-2, keepdims=True)
    lower, upper = (np.take_along_axis(ordered, first + place, axis=-2) for place in ((size - 1) // 2, size // 2))
    return np.asarray((lower + upper)[..., 0, :] / 2)


def usual_again(means: Floats, count: int, random: np.random.Generator) -> Floats:
    """Return the usual values of the runs, resampled, shape (count, n_columns); NaN where too few recorded a column.

    In a column that some runs lack, the draws are spread over those that recorded it.
    """
    drawn = random.integers(0, len(means), (count, len(means)))
    usual = np.full((count, means.shape[1]), np.nan)
    is_recorded = ~np.isnan(means)
    whole = is_recorded.all(axis=0)
    usual[:, whole] = usual_of(means[:, whole][drawn])
    for place in np.flatnonzero(~whole & (is_recorded.sum(axis=0) >= FEWEST_RUNS)):
        own = means[is_recorded[:, place], place]
        usual[:, place] = usual_of(own[drawn % len(own)][:, :, None])[:, 0]
    return usual


def _of_column(values: Floats, *, is_signed: bool) -> tuple[float, float]:
    """Return the usual value and the spread.

    Where the usual value is next to nothing, such as of stolen time, the runs below it are bounded by zero, so that
    the spread comes from those above. Where values have signs, a disturbance adds to one rank's and takes off
    another's: neither side of the middle is free of it, but the third of the values nearest to the middle is.
    """
    recorded = values[~np.isnan(values)]
    if len(recorded) < FEWEST_RUNS:
        return float(np.nan), float(np.nan)
    usual = float(usual_of(recorded[:, None])[0])
    off = np.sort(np.abs(recorded - usual))
    if is_signed:
        return usual, float(np.quantile(off, NEAREST)) / THIRD_CONSISTENCY
    below = NORMAL_CONSISTENCY * float(np.median(usual - recorded[recorded <= usual]))
    size = max(FEWEST_RUNS, len(recorded) // 2 + 1)
    spread = max(below, float(np.sqrt(np.mean(off[:size] ** 2))))
    if 0.0 <= usual <= USUAL_DEVIATION * spread:
        spread = max(spread, (float(np.quantile(recorded, UPPER)) - usual) / UPPER_CONSISTENCY)
    return usual, spread

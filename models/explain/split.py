"""The split: a run's excess over its cohort, shared among the causes by their evidence, with bootstrap replicates."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from crosswind.data.prediction import Floats
from crosswind.models.explain.causes import CAUSES
from crosswind.models.explain.causes.cause import Excess
from crosswind.models.explain.reference import FEWEST_RUNS, Reference, usual_of
from crosswind.models.explain.segments import COLUMNS, PHASES, Segments

REPLICATES = 400
BLOCK = 5  # segments that are drawn together: neighbours share their weather
UNEXPLAINED = "unexplained"


@dataclass(frozen=True)
class Split:
    """Seconds a segment. `measured` and `expected` map columns to means; the shares + unexplained = `excess`.

    `replicates` maps every share to its bootstrap values, shape (REPLICATES,); `excess` likewise under its name.
    """

    measured: Mapping[str, float]
    expected: Mapping[str, float]
    shares: Mapping[str, float]
    replicates: Mapping[str, Floats]

    @property
    def excess(self) -> float:
        """Measured - expected, all phases."""
        return sum(self.measured[name] - self.expected[name] for name in PHASES)

    @property
    def expected_time(self) -> float:
        """The cohort's time of a segment: the sum of its phases."""
        return sum(self.expected[name] for name in PHASES)


def split(run: Segments, reference: Reference, *, seed: int = 0, again: Floats | None = None) -> Split:
    """Splits the run's excess over what is usual of the runs it is compared with.

    Intervals come from resampling the run's segments in blocks and the reference's runs, so they hold both the run's
    own unrest and the doubt about what was to be expected; `again`, shape (REPLICATES, n_columns), is that in their
    place.
    """
    random = np.random.default_rng(seed)
    measured, expected = run.means, reference.usual
    doubt = _expected_again(reference.means, random) if again is None else again
    draws = resampled(run.values, random) - doubt
    columns = Excess(dict(zip(COLUMNS, (measured - expected)[:, None], strict=True)), reference.spread)
    replicates = Excess(dict(zip(COLUMNS, draws.T, strict=True)), reference.spread)
    return Split(
        measured=dict(zip(COLUMNS, map(float, measured), strict=True)),
        expected=dict(zip(COLUMNS, map(float, expected), strict=True)),
        shares={name: float(values[0]) for name, values in _shared(columns).items()},
        replicates=_shared(replicates) | {"excess": _total(replicates)},
    )


def _shared(excess: Excess) -> dict[str, Floats]:
    """Cause -> seconds: each takes what it claims of what the causes before it left of the phase's excess."""
    left = {phase: np.maximum(excess[phase], 0.0) for phase in PHASES}
    shares: dict[str, Floats] = {}
    for cause in CAUSES:
        taken = np.zeros_like(excess[PHASES[0]])
        for phase, claim in cause.claims(excess).items():
            part = np.clip(np.nan_to_num(claim, nan=0.0), 0.0, left[phase])
            left[phase] = left[phase] - part
            taken = taken + part
        shares[cause.name] = taken
    total: Floats = np.sum(list(shares.values()), axis=0)
    return shares | {UNEXPLAINED: _total(excess) - total}


def _total(excess: Excess) -> Floats:
    return np.asarray(np.sum([excess[phase] for phase in PHASES], axis=0))


def resampled(values: Floats, random: np.random.Generator) -> Floats:
    """Means of the segments, drawn again in blocks, shape (REPLICATES, n_columns)."""
    count = len(values)
    length = min(BLOCK, count)
    sums = np.cumsum(np.vstack([np.zeros((1, values.shape[1])), values]), axis=0)
    blocks = (sums[length:] - sums[:-length]) / length
    times = random.multinomial(-(-count // length), np.full(len(blocks), 1 / len(blocks)), REPLICATES)
    return np.asarray(times @ blocks / times.sum(axis=1, keepdims=True))


def _expected_again(means: Floats, random: np.random.Generator) -> Floats:
    """What is usual of the cohort's runs, drawn again, shape (REPLICATES, n_columns); NaN where some did not record it.

    The runs that recorded a column are drawn for that column, too, where others did not.
    """
    drawn = random.integers(0, len(means), (REPLICATES, len(means)))
    found = np.full((REPLICATES, means.shape[1]), np.nan)
    known = ~np.isnan(means)
    whole = known.all(axis=0)
    found[:, whole] = usual_of(means[:, whole][drawn])
    for place in np.flatnonzero(~whole & (known.sum(axis=0) >= FEWEST_RUNS)):
        own = means[known[:, place], place]
        found[:, place] = usual_of(own[drawn % len(own)][:, :, None])[:, 0]
    return found

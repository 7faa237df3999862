"""Split of a run's excess over its cohort among the causes, by their evidence, with replicates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crosswind.data.schema.answers.explanations import UNKNOWN
from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes import BY_NAME
from crosswind.models.explain.causes.cause import Excess
from crosswind.models.explain.causes.cpu_steal import STEAL
from crosswind.models.explain.cohort.columns import COLUMNS, LINK_EVIDENCE
from crosswind.models.explain.cohort.reference import Reference, usual_again
from crosswind.models.explain.evidence.step_columns import PHASES

REPLICATES = 400
BLOCK = 5  # segments that are drawn together: neighbours share their weather
UNEXPLAINED = "unexplained"
MEASURABLE = 1e-6  # seconds a segment: less is what clocks and rounding leave, and counts as nothing
# Orders in which causes may claim: links or threads first, and before these the hypervisor or what waits for a core.
_IN_TURN = (tuple(BY_NAME), tuple(sorted(BY_NAME, key=lambda name: name not in LINK_EVIDENCE)))
ORDERS = (*_IN_TURN, *(tuple(sorted(names, key=lambda name: name != STEAL)) for names in _IN_TURN))


@dataclass(frozen=True)
class Split:
    """Shares of an excess, seconds a segment: `measured` and `expected` map columns to means.

    The shares, of causes and of UNEXPLAINED, sum to `excess`. `replicates` maps every share, and "excess", to values of
    shape (REPLICATES,).
    """

    measured: Mapping[str, float]
    expected: Mapping[str, float]
    shares: Mapping[str, float]
    replicates: Mapping[str, Floats]

    @property
    def excess(self) -> float:
        """Measured - expected, the sum of all phases; 0 where it is too small to be measured."""
        excess = sum(self.measured[name] - self.expected[name] for name in PHASES)
        return excess if abs(excess) >= MEASURABLE else 0.0

    @property
    def expected_time(self) -> float:
        """The cohort's time of a segment: the sum of its phases."""
        return sum(self.expected[name] for name in PHASES)

    @property
    def measured_time(self) -> float:
        """The run's time of a segment."""
        return self.expected_time + self.excess

    @property
    def largest(self) -> str:
        """The cause with the largest share; UNKNOWN where no share is larger than the unexplained part, or above 0."""
        largest = max(BY_NAME, key=lambda name: self.shares[name])
        return largest if self.shares[largest] > max(self.shares[UNEXPLAINED], 0.0) else UNKNOWN


def split(means: Floats, reference: Reference, *, seed: int = 0, again: Floats | None = None) -> Split:
    """Split the excess of a run's means, shape (len(COLUMNS),), over the usual values of its reference.

    The measured time is certain, the time without the causes is not. So each replicate subtracts another expectation:
    the usual values of the cohort's runs, resampled, and the deviation of one of them. `again`, shape (REPLICATES,
    len(COLUMNS)), are replicates of measured - expected in their place.
    """
    if again is None:
        again = means - expected_again(reference, seed=seed)
    replicates = Excess(dict(zip(COLUMNS, again.T, strict=True)), reference.spread)
    return Split(
        measured=dict(zip(COLUMNS, map(float, means), strict=True)),
        expected=dict(zip(COLUMNS, map(float, reference.usual), strict=True)),
        shares=_measurable({name: float(values[0]) for name, values in shared(means[None, :], reference).items()}),
        replicates=_shared(replicates) | {"excess": _total(replicates)},
    )


def expected_again(reference: Reference, *, seed: int = 0) -> Floats:
    """Return replicates of what is expected of a run, shape (REPLICATES, len(COLUMNS)); no run takes less than 0."""
    random = np.random.default_rng(seed)
    expected = usual_again(reference.means, REPLICATES, random) + reference.deviations(REPLICATES, random)
    return expected if reference.is_of_ranks else np.maximum(expected, 0.0)


def _measurable(shares: Mapping[str, float]) -> dict[str, float]:
    """Return shares without those that are too small to be measured, of the same sum; the largest one takes the rest.

    Where no cause is left, all of the excess stays unexplained.
    """
    whole = sum(shares.values())
    kept = {name: shares[name] if shares[name] >= MEASURABLE else 0.0 for name in BY_NAME}
    rest = (whole if abs(whole) >= MEASURABLE else 0.0) - sum(kept.values())
    largest = max(kept, key=lambda name: kept[name])
    if abs(rest) >= MEASURABLE or not kept[largest]:
        return kept | {UNEXPLAINED: rest}
    return kept | {largest: kept[largest] + rest, UNEXPLAINED: 0.0}


def shared(means: Floats, reference: Reference) -> dict[str, Floats]:
    """Return by cause, and for UNEXPLAINED, its share of each row of means, seconds, shape (n_rows,).

    means: shape (n_rows, len(COLUMNS)).
    """
    return _shared(Excess(dict(zip(COLUMNS, (means - reference.usual).T, strict=True)), reference.spread))


def _shared(excess: Excess) -> dict[str, Floats]:
    """Return seconds by cause: the mean over the orders in which causes may claim, which are the Shapley value's.

    A collective runs long whether threads waited for a core or a link held packets back, and a thread waits for a core
    whether others of its guest run on it or the hypervisor took it away: which of both came first is unknown. All
    other causes have one place in the order, by how direct their evidence is.
    """
    claims = {cause.name: _numbers(cause.claims(excess)) for cause in BY_NAME.values()}
    taken = [_taken(excess, claims, order) for order in ORDERS]
    shares: dict[str, Floats] = {name: np.mean([claimed[name] for claimed in taken], axis=0) for name in claims}
    total: Floats = np.sum(list(shares.values()), axis=0)
    return shares | {UNEXPLAINED: _total(excess) - total}


def _numbers(claims: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return claims of at least 0; one that is not a number claims nothing."""
    return {phase: np.maximum(np.nan_to_num(claim, nan=0.0), 0.0) for phase, claim in claims.items()}


def _taken(excess: Excess, claims: Mapping[str, Mapping[str, Floats]], order: Sequence[str]) -> dict[str, Floats]:
    """Return seconds by cause: its claims, bounded by the excess of the phase that the causes before it left."""
    left = {phase: np.maximum(excess[phase], 0.0) for phase in PHASES}
    shares = {}
    for name in order:
        shares[name] = np.zeros_like(excess[PHASES[0]])
        for phase, claim in claims[name].items():
            part = np.minimum(claim, left[phase])
            left[phase] = left[phase] - part
            shares[name] = shares[name] + part
    return shares


def _total(excess: Excess) -> Floats:
    return np.asarray(np.sum([excess[phase] for phase in PHASES], axis=0))


def resampled(values: Floats, random: np.random.Generator) -> Floats:
    """Return means of the segments, resampled in blocks, shape (REPLICATES, n_columns).

    values: shape (n_segments, n_columns).
    """
    count = len(values)
    length = min(BLOCK, count)
    sums = np.cumsum(np.vstack([np.zeros((1, values.shape[1])), values]), axis=0)
    blocks = (sums[length:] - sums[:-length]) / length
    times = random.multinomial(-(-count // length), np.full(len(blocks), 1 / len(blocks)), REPLICATES)
    return np.asarray(times @ blocks / times.sum(axis=1, keepdims=True))

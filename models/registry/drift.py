"""Tests for drift: a model's coverage and loss on runs after its training against those of its validation."""

import math
from dataclasses import dataclass

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.model import Evidence
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.registry.evidence import row_losses

FALSE_ALARM = 0.01  # of each of the two tests
TAIL = 0.1  # on each side, the level whose claim is tested
TOLERATED_COVERAGE = 0.05  # an interval of 90 % that holds 85 % is still useful
ALLOWANCE = 0.5  # of a standard deviation: a smaller rise of the mean loss passes
LOSS_ROWS_MIN = 30  # validation losses; with 8 to 20, one model in twelve was a false alarm
HORIZON_ROWS = 1000  # within which the second test's false alarms are counted
SIMULATIONS = 2000
SPREAD_MIN = 0.1  # of the mean loss: validation losses that are all alike are luck


@dataclass(frozen=True)
class LaterRuns:
    """Runs after a model's training, in the order of time: their predictions and their seconds.

    started_ns: (n_runs,) ns UTC; y: (n_runs,) positive seconds.
    """

    started_ns: "np.ndarray[tuple[int], np.dtype[np.int64]]"
    prediction: Prediction
    y: Floats

    def __post_init__(self) -> None:
        if not self.started_ns.shape == self.y.shape == (len(self.prediction.values),):
            raise InvalidInputError(
                f"started_ns, y and prediction have {len(self.started_ns)}, {len(self.y)} and "
                f"{len(self.prediction.values)} rows, expected equally many"
            )
        if np.any(np.diff(self.started_ns) < 0):
            raise InvalidInputError("started_ns falls, expected runs in the order of time")


@dataclass(frozen=True)
class Claim:
    """A promise of a model's quantiles: the runs that keep it, and the least share of them that is no drift."""

    words: str
    held: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
    expected: float

    @property
    def share(self) -> float:
        """The share of runs that keep it."""
        return float(np.mean(self.held))


@dataclass(frozen=True)
class Drift:
    """The verdict of the two tests on `rows` later runs.

    `coverage_odds` is the largest evidence against the claims so far, drift from 1 / FALSE_ALARM on, and `worst`
    describes the claim kept worst. `loss_excess` is the largest CUSUM of losses, in standard deviations, drift from
    `loss_limit` on. What could not be tested is None.
    """

    rows: int
    coverage_odds: float | None = None
    worst: str = ""
    loss: float | None = None
    expected_loss: float | None = None
    loss_excess: float | None = None
    loss_limit: float | None = None

    @property
    def reason(self) -> str | None:
        """The reason to take the model back, or None without drift."""
        if self.coverage_odds is not None and self.coverage_odds >= 1 / FALSE_ALARM:
            return f"drift: of {self.rows} later runs {self.worst}"
        if self.loss_excess is not None and self.loss_limit is not None and self.loss_excess >= self.loss_limit:
            return (
                f"drift: its loss is {self.loss:.4g} on {self.rows} later runs and was {self.expected_loss:.4g} "
                f"on those it was validated on; CUSUM {self.loss_excess:.1f}, limit {self.loss_limit:.1f}"
            )
        return None


def drift_of(evidence: Evidence, later: LaterRuns) -> Drift:
    """Test the model on the runs that started after its data window; earlier ones are left out."""
    is_later = later.started_ns > evidence.learned.to_ns
    y, prediction = later.y[is_later], Prediction(later.prediction.levels, later.prediction.values[is_later])
    if len(y) == 0:
        return Drift(0)
    facts: dict[str, float] = {}
    worst = ""
    if claims := claims_of(evidence, prediction, y):
        odds = np.array([undercoverage_odds(claim.held, claim.expected) for claim in claims])
        facts["coverage_odds"] = float(np.max(np.mean(odds, axis=0)))  # a mean of such evidence is such evidence
        least = claims[int(np.argmax(np.max(odds, axis=1)))]
        worst = f"{least.share:.0%} lay {least.words}, expected at least {least.expected:.0%}"
    if len(evidence.row_losses) >= LOSS_ROWS_MIN:
        losses, reference = row_losses(prediction, y), np.array(evidence.row_losses)
        facts |= {"loss": float(np.mean(losses)), "expected_loss": float(np.mean(reference))}
        facts |= {"loss_excess": float(np.max(cusum(losses, reference))), "loss_limit": cusum_limit(reference)}
    return Drift(len(y), worst=worst, **facts)


def claims_of(evidence: Evidence, prediction: Prediction, y: Floats) -> list[Claim]:
    """Return the claims tested of the quantiles: the widest interval, and one tail a side, which shows a shift sooner.

    A claim is the lower of what the levels promise and what validation showed, less what is tolerated.
    Raises: InvalidInputError when the prediction has other levels than the evidence.
    """
    levels, shares = [level for level, _ in evidence.coverage], [share for _, share in evidence.coverage]
    if not levels:
        return []
    if tuple(levels) != prediction.levels:
        raise InvalidInputError(f"the prediction has levels {prediction.levels}, expected {tuple(levels)}")
    low = min(range(len(levels)), key=lambda place: abs(levels[place] - TAIL))
    high = min(range(len(levels)), key=lambda place: abs(levels[place] - (1 - TAIL)))
    values = prediction.values
    within = (values[:, 0] <= y) & (y <= values[:, -1])
    candidates = [
        (f"within P{levels[0]:.0%} to P{levels[-1]:.0%}", within, levels[-1] - levels[0], shares[-1] - shares[0]),
        (f"at or below P{levels[high]:.0%}", y <= values[:, high], levels[high], shares[high]),
        (f"at or above P{levels[low]:.0%}", y >= values[:, low], 1 - levels[low], 1 - shares[low]),
    ]
    return [
        Claim(words.replace("%", ""), held, min(promised, shown) - TOLERATED_COVERAGE)
        for words, held, promised, shown in candidates
        if min(promised, shown) > 2 * TOLERATED_COVERAGE
    ]


def undercoverage_odds(held: "np.ndarray[tuple[int], np.dtype[np.bool_]]", expected: float) -> Floats:
    """Evidence after each run that less than the expected share is held, shape (n_runs,).

    It is a likelihood ratio, mixed over all smaller shares alike. As long as each run is held with at least the
    expected probability given those before it, the ratio exceeds 1 / a with probability a at most, however often one
    looks: the test may be made after every run. Source: Ville 1939; Robbins 1970, "Statistical methods related to the
    law of the iterated logarithm" (mixtures).
    """
    from scipy.special import betainc, betaln  # noqa: PLC0415 - heavy, and most who import this module test nothing

    runs = np.arange(1, len(held) + 1)
    hits = np.cumsum(held)
    misses = runs - hits
    with np.errstate(divide="ignore"):  # no evidence at all: the logarithm of 0
        mixed = betaln(hits + 1, misses + 1) + np.log(betainc(hits + 1, misses + 1, expected)) - math.log(expected)
    odds: Floats = np.exp(np.minimum(mixed - hits * math.log(expected) - misses * math.log1p(-expected), 700))
    return odds


def cusum(losses: Floats, reference: Floats) -> Floats:
    """One-sided CUSUM of losses against those of validation, in their standard deviations, shape (n_runs,).

    A loss above all that validation saw counts as the largest of them: one disaster is no drift, many are.
    Source: Page 1954, "Continuous inspection schemes".
    """
    steps = (np.minimum(losses, np.max(reference)) - np.mean(reference)) / _spread(reference) - ALLOWANCE
    sums = np.cumsum(steps)
    lowest: Floats = sums - np.minimum(np.minimum.accumulate(sums), 0)
    return lowest


def cusum_limit(reference: Floats) -> float:
    """Return the CUSUM that runs like the validation rows exceed within HORIZON_ROWS with probability FALSE_ALARM.

    By bootstrap, which also resamples the validation rows, for the mean of few is uncertain. reference: (n,).
    """
    random = np.random.default_rng(0)
    drawn = random.choice(reference, size=(SIMULATIONS, len(reference)))
    means, spreads = np.mean(drawn, axis=1), np.array([_spread(sample) for sample in drawn])
    sums, highest = np.zeros(SIMULATIONS), np.zeros(SIMULATIONS)
    for _ in range(HORIZON_ROWS):
        sums = np.maximum(sums + (random.choice(reference, size=SIMULATIONS) - means) / spreads - ALLOWANCE, 0)
        highest = np.maximum(highest, sums)
    return float(np.quantile(highest, 1 - FALSE_ALARM))


def _spread(losses: Floats) -> float:
    return max(float(np.std(losses, ddof=1)), SPREAD_MIN * float(np.mean(losses)), 1e-12)

"""The best measured configuration, how surely it is best, and whether a repeat of it is worth more than a new one."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy.special import ndtr, ndtri

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Configuration
from crosswind.models.gp.normal import density
from crosswind.models.gp.repeated_process import RepeatedProcess
from crosswind.models.tuner.search.noise import Noise, fitted
from crosswind.models.tuner.search.repeats import Repeats

COMPARED_MAX = 200  # configurations: the best of them; the rest cannot be the answer
DRAWS = 2400
# A stationary process takes neighbours for more alike than they are around a narrow optimum: in simulated searches its
# errors were 1.1 to 1.3 times its deviations (benchmarks/tuning_noise.py measures what the intervals then cover).
OVERCONFIDENCE = 1.25
INCUMBENTS_MAX = 5
CHANCE_MIN = 0.05  # of being best, for a configuration that is worth repeating
AHEAD = (1, 2, 4)  # repeats that are valued together: one alone may never turn the choice
SHARE_MAX = 0.3  # of all measurements that may be repeats
DISTINCT_MIN = 8  # configurations measured before any is repeated: fewer say little about noise or rank
GAIN_MIN = 0.004  # relative; less is not worth a job
GAIN_MIN_OF_SPREAD = 0.02  # of objectives that are not all positive
_NODES: Floats = np.asarray(ndtri((np.arange(256) + 0.5) / 256), np.float64)  # equally likely normal numbers


@dataclass(frozen=True)
class Answer:
    """The best configuration so far.

    Args:
        configuration: Its parameters.
        objective: Without noise; between `low` and `high` with probability `level`.
        chance_best: Probability that no other measured configuration is better.
        repeats: Measurements of it.
        noise: Relative standard deviation of one measurement; in the objective's unit where objectives are not all
            positive.
    """

    configuration: Configuration
    objective: float
    low: float
    high: float
    level: float
    chance_best: float
    repeats: int
    noise: float


@dataclass(frozen=True)
class Beliefs:
    """Beliefs about the noise-free objectives of the measured configurations.

    They are normal under a Gaussian process over the space; its noise and lengths are drawn from their posterior, which
    gives the tails of Student's t. Neighbours shrink a lucky measurement, so the winner's curse does not enter the
    interval.
    """

    repeats: Repeats
    process: RepeatedProcess
    seed: int

    @classmethod
    def of(cls, repeats: Repeats, seed: int) -> Self:
        """Fit the process to the best configurations. Raises: InvalidInputError without a measurement."""
        best = repeats.best(COMPARED_MAX)
        return cls(best, fitted(best), seed)

    @property
    def noise(self) -> Noise:
        """The scatter of measurements."""
        return Noise.from_process(self.process, self.repeats)

    @cached_property
    def chances(self) -> Floats:
        """Probability of each configuration to be the best of the measured, (n,); they sum to 1."""
        winners = np.argmin(self._draws, axis=1)
        return np.bincount(winners, minlength=len(self.repeats)) / len(self._draws)

    def answer(self, level: float = 0.9) -> Answer:
        """Return the configuration of the smallest expected objective, with its interval.

        Raises: InvalidInputError for a level outside (0, 1).
        """
        if not 0 < level < 1:
            raise InvalidInputError(f"level is {level}, expected a number between 0 and 1")
        best = int(np.argmin(self._draws.mean(axis=0)))
        low, middle, high = np.quantile(self._draws[:, best], [(1 - level) / 2, 0.5, (1 + level) / 2])
        back = np.exp if self.repeats.is_logarithmic else np.asarray
        return Answer(
            configuration=self.repeats.configurations[best],
            objective=float(back(middle)),
            low=float(back(low)),
            high=float(back(high)),
            level=level,
            chance_best=float(self.chances[best]),
            repeats=len(self.repeats.values[best]),
            noise=self.process.noise,
        )

    def gains(self) -> Floats:
        """Return the value of repeating each configuration once, (n,): the expected fall of the answer's objective.

        On the logarithm's scale where all objectives are positive; the best average over 1, 2 or 4 repeats; 0 for all
        but the few that may be best. Source: Frazier, Powell and Dayanik 2009, "The knowledge-gradient policy for
        correlated normal beliefs"; Chen et al. 2000 for the idea to spend repeats on close rivals only.
        """
        mean, covariance = self.process.at_measured()
        gains, variances = np.zeros(len(mean)), self.noise.deviations**2
        for index in self.incumbents():
            variance = float(variances[index])
            gains[index] = max(_gain(mean, covariance[index], index, variance / ahead) / ahead for ahead in AHEAD)
        return gains

    def gain_of_new(self, points: Floats) -> Floats:
        """Return the value of measuring each of the points (n, n_coordinates) once, (n,), on the scale of `gains`.

        Expected improvement of the answer after one noisy measurement. Source: Frazier et al. 2009.
        """
        mean, deviation = self.process.predict(points)
        swing = deviation**2 / np.sqrt(deviation**2 + self.process.noise**2)
        gap = float(self.process.at_measured()[0].min()) - mean
        return np.asarray(gap * ndtr(gap / swing) + swing * density(gap / swing), np.float64)

    def incumbents(self) -> list[int]:
        """Return the indices of the few configurations that may well be the best, the likeliest first."""
        order = np.argsort(-self.chances, kind="stable")[:INCUMBENTS_MAX].tolist()
        return [index for index in order if self.chances[index] >= CHANCE_MIN]

    @property
    def gain_min(self) -> float:
        """The gain below which no repeat is worth a job."""
        return GAIN_MIN if self.repeats.is_logarithmic else GAIN_MIN_OF_SPREAD * self.process.spread

    @cached_property
    def _draws(self) -> Floats:
        drawn = self.process.draws(DRAWS, self.seed)
        centre = drawn.mean(axis=0)
        return np.asarray(centre + OVERCONFIDENCE * (drawn - centre), np.float64)


def next_replicate(
    beliefs: Beliefs, *, exploring: float, pending: frozenset[str] = frozenset(), share: float = SHARE_MAX
) -> Configuration | None:
    """Return the measured configuration to measure again, None when a new one promises more.

    `exploring` is the value of the best new configuration (`Beliefs.gain_of_new`), 0 where none is left; `pending`
    holds the keys of configurations that are being measured, which are never repeated at the same time. Repeats stay
    within `share` of all measurements. Raises: InvalidInputError for a share outside [0, 1].
    """
    if not 0 <= share <= 1:
        raise InvalidInputError(f"share is {share}, expected a number from 0 to 1")
    repeats = beliefs.repeats
    if len(repeats) < DISTINCT_MIN and exploring > 0:
        return None
    if repeats.n_repeats + 1 > share * (repeats.n_measurements + 1):
        return None
    gains = beliefs.gains()
    gains[[index for index, key in enumerate(repeats.keys) if key in pending]] = 0.0
    best = int(np.argmax(gains))
    return repeats.configurations[best] if gains[best] > max(exploring, beliefs.gain_min) else None


def _gain(mean: Floats, covariance: Floats, index: int, variance: float) -> float:
    """Return the mean fall of the smallest expected value once `index` is measured with this noise."""
    swing = covariance / np.sqrt(max(float(covariance[index]), 0.0) + variance)
    return float(mean.min() - (mean[:, None] + swing[:, None] * _NODES).min(axis=0).mean())

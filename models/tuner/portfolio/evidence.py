"""What the arms of the portfolio judge by: the candidates, what was measured, and what the sources say."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crosswind.data.prediction import Floats
from crosswind.models.tuner.portfolio.ensemble import shares
from crosswind.models.tuner.portfolio.prior import KnownSource
from crosswind.models.tuner.portfolio.process import Process

STEEP = 2.0  # how fast trust falls with the distance between descriptions
LIKENESS_WORTH = 6  # measurements that a likeness of descriptions counts as
MEASURED_MIN = 3  # before a process of the target's own says anything


@dataclass(frozen=True)
class Evidence:
    """Everything as numbers; lower values are better, and values are standardised.

    `candidates` (n, n_coordinates) are free; `beliefs` and `doubts` (n_sources, n) are the sources' expected values of
    them and the deviations, `chance` (n,) how likely each is to be valid. `X` and `y` are the points with values, the
    last `n_assumed` of them not measured but assumed; `told` (n_sources, len(y)) is what the sources expect of them.
    `features` describe the target as the sources' do theirs; `place` counts the trials so far.
    """

    candidates: Floats
    beliefs: Floats
    doubts: Floats
    chance: Floats
    X: Floats
    y: Floats
    n_assumed: int
    told: Floats
    gone: Floats
    sources: Sequence[KnownSource]
    features: Floats
    place: int
    seed: int

    @property
    def n_measured(self) -> int:
        """How many of the values were measured."""
        return len(self.y) - self.n_assumed

    @cached_property
    def process(self) -> Process | None:
        """The target's own process; None while too little is measured."""
        return Process.fitted(self.X, self.y) if self.n_measured >= MEASURED_MIN else None

    @cached_property
    def shares(self) -> Floats:
        """How far each source is trusted and, last, the target's own process; they sum to 1.

        Among the sources, what describes them decides at first, and how they rank what was measured later.
        """
        likeness = self.likeness
        if self.process is None:
            return np.append(likeness, float(not self.sources))
        n = self.n_measured
        mean, deviation = self.process.left_out()
        ranked = shares(self.told[:, :n], mean[:n], deviation[:n], self.y[:n], seed=self.seed)
        prior = np.append(likeness * (1 - ranked[-1]), ranked[-1])
        return (LIKENESS_WORTH * prior + n * ranked) / (LIKENESS_WORTH + n)

    @property
    def likeness(self) -> Floats:
        """How like the target each source is described, shape (n_sources,); they sum to 1."""
        distances = np.array([np.abs(each.features - self.features).sum() for each in self.sources])
        alike = np.exp(-STEEP * distances)
        return alike / alike.sum() if len(alike) else alike

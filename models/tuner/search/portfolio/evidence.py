"""The evidence that the portfolio's arms judge by: the candidates, what was measured, and what the sources say."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.gp.gaussian_process import Process
from crosswind.models.tuner.search.portfolio.ensemble import shares
from crosswind.models.tuner.search.portfolio.prior import KnownSource

STEEP = 2.0  # how fast trust falls with the distance between descriptions
LIKENESS_WORTH = 6  # measurements that a likeness of descriptions counts as
MEASURED_MIN = 3  # before a process of the target's own says anything


@dataclass(frozen=True)
class Evidence:
    """Everything as numbers; lower values are better, and values are standardised.

    `candidates` (n, n_coordinates) are free; `beliefs` and `doubts` (n_sources, n) are the sources' expected values of
    them and the deviations, `chance` (n,) how likely each is to be valid. `X` and `y` are the points with values, the
    first `n_measured` of them measured, the others assumed; `expected` (n_sources, len(y)) is what the sources expect
    of them; `process` is the target's own, None while too little is measured. `features` describe the target as the
    sources' do theirs; `place` counts the trials so far.
    """

    candidates: Floats
    beliefs: Floats
    doubts: Floats
    chance: Floats
    X: Floats
    y: Floats
    n_measured: int
    process: Process | None
    expected: Floats
    gone: Floats
    sources: Sequence[KnownSource]
    features: Floats
    place: int
    seed: int

    @cached_property
    def shares(self) -> Floats:
        """The trust in each source and, last, in the target's own process; they sum to 1.

        Among the sources, what describes them decides at first, and how they rank what was measured later.
        """
        likeness = self.likeness
        if self.process is None:
            return np.append(likeness, float(not self.sources))
        n = self.n_measured
        mean, deviation = self.process.left_out()
        ranked = shares(self.expected[:, :n], mean[:n], deviation[:n], self.y[:n], seed=self.seed)
        prior = np.append(likeness * (1 - ranked[-1]), ranked[-1])
        return (LIKENESS_WORTH * prior + n * ranked) / (LIKENESS_WORTH + n)

    @property
    def likeness(self) -> Floats:
        """The likeness of each source's description to the target's, shape (n_sources,); they sum to 1."""
        distances = np.array([np.abs(source.features - self.features).sum() for source in self.sources])
        alike = np.exp(-STEEP * distances)
        return alike / alike.sum() if len(alike) else alike

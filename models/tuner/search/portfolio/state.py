"""The state of a search that the portfolio's arms score by: candidates, measurements and sources."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats
from crosswind.models.gp.gaussian_process import Process
from crosswind.models.tuner.search.portfolio.candidates import Candidates
from crosswind.models.tuner.search.portfolio.ensemble import evidence, shares
from crosswind.models.tuner.search.portfolio.fitted_source import FittedSource

STEEP = 2.0  # how fast trust falls with the distance between descriptions
LIKENESS_WEIGHT = 6  # measurements that a likeness of descriptions counts as
MEASURED_MIN = 3  # before there is a process of the target's own
DISTRUSTED_BELOW = -0.7  # evidence of a source: the order of the measurements is twice as likely by chance


@dataclass(frozen=True)
class SearchState:
    """Everything as numbers; lower values are better, and values are standardised.

    Args:
        candidates: Free configurations, and what the sources expect of them.
        chance: How likely each candidate is to be valid, shape (n_candidates,).
        X: Points with values, shape (n, n_coordinates): first the measured, then the assumed ones.
        y: Their values, shape (n,).
        n_measured: How many of them are measured.
        process: The target's own, None while too little is measured.
        expected: Of X by the sources, shape (n_sources, n).
        used: X and the invalid points, shape (n_used, n_coordinates).
        sources: In the target's coordinates.
        features: Describe the target as the sources' do theirs.
        designed: Points that represent the space, shape (n_designed, n_coordinates).
        n_trials: The trials so far.
        seed: Of random models.
    """

    candidates: Candidates
    chance: Floats
    X: Floats
    y: Floats
    n_measured: int
    process: Process | None
    expected: Floats
    used: Floats
    sources: Sequence[FittedSource]
    features: Floats
    designed: Floats
    n_trials: int
    seed: int

    @cached_property
    def shares(self) -> Floats:
        """The trust in each source and, last, in the target's own process, shape (n_sources + 1,); they sum to 1.

        Among the sources, their descriptions decide at first, and how they rank the measurements later. A source whose
        order is no better than chance has none from the second measurement on; what it loses is the target's own.
        """
        trusted = np.where(self.is_trusted, self._ranked_shares[:-1], 0.0)
        return np.append(trusted, 1 - trusted.sum())

    @cached_property
    def is_trusted(self) -> NDArray[np.bool_]:
        """Of each source, no strong evidence that its order is chance, shape (n_sources,)."""
        n = self.n_measured
        return evidence(self.expected[:, :n], self.y[:n]) >= DISTRUSTED_BELOW

    @property
    def _ranked_shares(self) -> Floats:
        likeness = self.likeness
        if self.process is None:
            return np.append(likeness, float(not self.sources))
        n = self.n_measured
        mean, deviation = self.process.left_out()
        ranked = shares(self.expected[:, :n], mean[:n], deviation[:n], self.y[:n], seed=self.seed)
        prior = np.append(likeness * (1 - ranked[-1]), ranked[-1])
        return (LIKENESS_WEIGHT * prior + n * ranked) / (LIKENESS_WEIGHT + n)

    @property
    def likeness(self) -> Floats:
        """The likeness of each source's description to the target's, shape (n_sources,); they sum to 1."""
        distances = np.array([np.abs(source.features - self.features).sum() for source in self.sources])
        alike = np.exp(-STEEP * distances)
        return alike / alike.sum() if len(alike) else alike

    @property
    def trusted_likeness(self) -> Floats:
        """The likeness of the trusted sources among themselves, shape (n_sources,); all 0 without any."""
        alike = np.where(self.is_trusted, self.likeness, 0.0)
        return alike / alike.sum() if alike.any() else alike

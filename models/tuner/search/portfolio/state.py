"""The state of a search that the portfolio's arms score by: candidates, measurements and sources."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.gp.gaussian_process import Process
from crosswind.models.tuner.search.portfolio.candidates import Candidates
from crosswind.models.tuner.search.portfolio.ensemble import shares
from crosswind.models.tuner.search.portfolio.fitted_source import FittedSource

STEEP = 2.0  # how fast trust falls with the distance between descriptions
LIKENESS_WEIGHT = 6  # measurements that a likeness of descriptions counts as
MEASURED_MIN = 3  # before there is a process of the target's own


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
    n_trials: int
    seed: int

    @cached_property
    def shares(self) -> Floats:
        """The trust in each source and, last, in the target's own process, shape (n_sources + 1,); they sum to 1.

        Among the sources, their descriptions decide at first, and how they rank the measurements later.
        """
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

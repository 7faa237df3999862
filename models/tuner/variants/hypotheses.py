"""Hypotheses about a context, and their weights by the trials on it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from crosswind.data.schema.prediction import Floats

FAILED = 10.0  # in place of the regret of what failed: ten times the best, and more
SPREAD = 0.3  # of the log of a ratio between two variants, from one context to a similar one
SURPRISE = 2.0  # loss of a hypothesis' log-likelihood for a failure where there was none
DOUBT = 1e-3  # of the weights ignores the trials: no hypothesis is ruled out for good


@dataclass(frozen=True)
class Hypotheses:
    """Regret and failed, of shape (h, m), of m variants in h contexts, and how probable each is, of shape (h,)."""

    regret: Floats
    failed: Floats
    weights: Floats

    def without(self, ruled_out: npt.NDArray[np.bool_]) -> Self:
        """Return the same where these variants, shape (m,), fail."""
        return replace(
            self, regret=np.where(ruled_out, FAILED, self.regret), failed=np.where(ruled_out, 1.0, self.failed)
        )

    def after(self, trials: Mapping[int, float | None]) -> Self:
        """Return the same, reweighted by the objective of each variant that was tried, None where it failed."""
        if not trials or not len(self.weights):
            return self
        unlike = self._surprise(trials)
        likely = self.weights * np.exp(unlike.min() - unlike)
        mixed = (1 - DOUBT) * likely / max(float(likely.sum()), 1e-300) + DOUBT * self.weights
        return replace(self, weights=np.asarray(mixed / mixed.sum()))

    def _surprise(self, trials: Mapping[int, float | None]) -> Floats:
        """Return minus the log-likelihood of the trials under each hypothesis, shape (h,)."""
        solved = {place: objective for place, objective in trials.items() if objective is not None}
        places = np.array(list(solved), dtype=np.int64)
        lost = [place for place, objective in trials.items() if objective is None]
        surprise = SURPRISE * ((1 - self.failed[:, lost]).sum(axis=1) + self.failed[:, places].sum(axis=1))
        if len(solved) > 1:
            apart = np.log(list(solved.values())) - np.log1p(self.regret[:, places])
            apart = apart - apart.mean(axis=1, keepdims=True)
            surprise = surprise + (apart**2).sum(axis=1) / (2 * SPREAD**2)
        return np.asarray(surprise)

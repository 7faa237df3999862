"""The arms of the portfolio: each scores the candidates in its own way.

Scores are positive and multiplied by the chance of being valid; higher is tried sooner.
"""

from typing import ClassVar, Protocol

import numpy as np
from scipy.spatial.distance import cdist

from crosswind.data.schema.prediction import Floats
from crosswind.models.gp.gaussian_process import expected_improvement
from crosswind.models.tuner.search.portfolio.sourced_process import SourcedProcess
from crosswind.models.tuner.search.portfolio.state import SearchState
from crosswind.models.tuner.search.portfolio.trees import Forest

ROWS_TRIED = 40  # of a source, best first
ALIKE = 1.0  # sum of coordinate differences up to which a candidate stands for a source's row
AGREED_STEEP = 5.0  # of a rank's square, 0 to 1; only against the chance to be valid
TRUST_MIN = 0.02  # in a source whose rows are still tried; in all sources together to have a turn
OWN_WEIGHT = 3.0  # of a target's row among the sources' in the joint trees, which weigh 1 on average
ROW_WEIGHT_MIN = 0.05  # of a row of a source that is not trusted
BANDWIDTH_MIN = 0.1  # of the densities, in the unit cube
GOOD_SHARE = 0.15
GOOD_MAX = 25


class Arm(Protocol):
    """One way to score candidates."""

    name: ClassVar[str]

    def scores(self, state: SearchState) -> Floats:
        """Return a number for every candidate, at least 0, shape (n_candidates,); all 0 for no preference."""
        ...


class BestRows:
    """The sources' best rows, more from a source that is trusted more; the nearest candidate stands for a row."""

    name: ClassVar[str] = "best_rows"

    def scores(self, state: SearchState) -> Floats:
        """Return scores that fall with every further row."""
        scores = np.zeros(len(state.chance))
        ranked = [
            (rank / share, point)
            for source, share in zip(state.sources, state.shares, strict=False)
            if share > TRUST_MIN
            for rank, point in enumerate(source.best(ROWS_TRIED), start=1)
        ]
        for turn, (_, point) in enumerate(sorted(ranked, key=lambda entry: entry[0]), start=1):
            at = _standing_for(point, state)
            if at is not None:
                scores[at] = max(scores[at], 1 / turn)
                if state.chance[at] > 0.5:
                    break
        return scores


class Agreed:
    """The sources' best rows, ordered by the ranks that all sources together expect of them among the candidates."""

    name: ClassVar[str] = "agreed"

    def scores(self, state: SearchState) -> Floats:
        """Return scores that fall with the mean square of the ranks: a place near the end of any source counts most."""
        scores = np.zeros(len(state.chance))
        ranks = state.candidates.means.argsort(axis=1).argsort(axis=1) / max(len(scores), 1)
        promise = np.exp(-AGREED_STEEP * (state.likeness @ ranks**2))
        for source in state.sources:
            for point in source.best(ROWS_TRIED):
                at = _standing_for(point, state)
                if at is not None:
                    scores[at] = promise[at]
        return scores


class Designed:
    """Points that represent the whole space, whatever the sources say; the nearest candidate stands for a point."""

    name: ClassVar[str] = "designed"

    def scores(self, state: SearchState) -> Floats:
        """Return scores that fall with every further point."""
        scores = np.zeros(len(state.chance))
        for turn, point in enumerate(state.designed, start=1):
            at = _standing_for(point, state)
            if at is not None:
                scores[at] = max(scores[at], 1 / turn)
        return scores


class JointTrees:
    """Trees over the sources' rows and the target's, with their descriptions as further columns."""

    name: ClassVar[str] = "joint_trees"

    def scores(self, state: SearchState) -> Floats:
        """Return expected improvement, from the first measurements on."""
        blocks = [(source.X, np.append(source.features, 0.0)) for source in state.sources]
        own = np.append(state.features, 1.0)
        X = np.vstack([_described(points, columns) for points, columns in [*blocks, (state.X, own)]])
        y = np.concatenate([*(source.y for source in state.sources), state.y])
        trust = np.maximum(state.shares[:-1] * len(state.sources), ROW_WEIGHT_MIN)
        rows = [*(len(source.y) for source in state.sources), len(state.y)]
        weights = np.repeat(np.append(trust, OWN_WEIGHT), rows)
        forest = Forest.fitted(X, y, seed=state.seed, weights=weights)
        mean, deviation = forest.predict(_described(state.candidates.points, own))
        return _promise(mean, deviation, state, float(state.y.min()) if state.n_measured else np.inf)


class WeightedSources:
    """A process around a weighted sum of the sources' expectations."""

    name: ClassVar[str] = "weighted_sources"

    def scores(self, state: SearchState) -> Floats:
        """Return expected improvement, from the first measurement on."""
        prior = state.trusted_likeness
        if state.n_measured == 0:
            return np.exp(-(prior @ state.candidates.means))
        process = SourcedProcess.fitted(prior, state.X, state.expected, state.y)
        mean, deviation = process.predict(state.candidates.points, state.candidates.means)
        return expected_improvement(mean, deviation, float(process.predict(state.X, state.expected)[0].min()))


class RankedEnsemble:
    """The sources' processes and the target's own, averaged by their shares."""

    name: ClassVar[str] = "ranked_ensemble"

    def scores(self, state: SearchState) -> Floats:
        """Return expected improvement, from the first measurements on."""
        shares, process = state.shares, state.process
        mean, variance = shares[:-1] @ state.candidates.means, shares[:-1] ** 2 @ state.candidates.deviations**2
        if process is None:
            return np.exp(-mean)
        own, deviation = process.predict(state.candidates.points)
        best = float((shares[:-1] @ state.expected + shares[-1] * process.predict(state.X)[0]).min())
        return expected_improvement(mean + shares[-1] * own, np.sqrt(variance + (shares[-1] * deviation) ** 2), best)


class TargetProcess:
    """The target's own process."""

    name: ClassVar[str] = "target_process"

    def scores(self, state: SearchState) -> Floats:
        """Return expected improvement."""
        if state.process is None:
            return np.zeros(len(state.chance))
        mean, deviation = state.process.predict(state.candidates.points)
        return expected_improvement(mean, deviation, state.process.expected_best)


class TargetTrees:
    """Trees over the target's rows alone."""

    name: ClassVar[str] = "target_trees"

    def scores(self, state: SearchState) -> Floats:
        """Return expected improvement."""
        if state.process is None:
            return np.zeros(len(state.chance))
        mean, deviation = Forest.fitted(state.X, state.y, seed=state.seed).predict(state.candidates.points)
        return expected_improvement(mean, deviation, float(state.y.min()))


class Densities:
    """The density of good rows around a candidate relative to that of the others (TPE over the candidates).

    Source: Bergstra, Bardenet, Bengio, Kegl 2011; kernels over all coordinates at once.
    """

    name: ClassVar[str] = "densities"

    def scores(self, state: SearchState) -> Floats:
        """Return the ratio of the two densities."""
        if state.process is None:
            return np.zeros(len(state.chance))
        order = np.argsort(state.y, kind="stable")
        good = min(int(np.ceil(GOOD_SHARE * len(order))), GOOD_MAX)
        dense, others = (_log_density(state.X[rows], state.candidates.points) for rows in (order[:good], order[good:]))
        return np.exp(np.clip(dense - others, -300, 300))


def _standing_for(point: Floats, state: SearchState) -> int | None:
    """Return the candidate next to a point; None where a trial lies nearer, or nothing does."""
    near = np.abs(state.candidates.points - point).sum(axis=1)
    at = int(np.argmin(near))
    return at if near[at] < min(ALIKE, _nearest(state.used, point)) else None


def _nearest(points: Floats, point: Floats) -> float:
    return float(np.abs(points - point).sum(axis=1).min()) if len(points) else np.inf


def _described(points: Floats, columns: Floats) -> Floats:
    return np.hstack([points, np.tile(columns, (len(points), 1))])


def _promise(mean: Floats, deviation: Floats, state: SearchState, best: float) -> Floats:
    return np.exp(-mean) if state.process is None else expected_improvement(mean, deviation, best)


def _log_density(X: Floats, points: Floats) -> Floats:
    """Return the logarithm of a mixture of Gaussian kernels at X and a wide one over the cube, shape (n_points,)."""
    if len(X) == 0:
        return np.zeros(len(points))
    width = np.maximum(X.std(axis=0) * len(X) ** (-1 / (X.shape[1] + 4)), BANDWIDTH_MIN)
    exponents = -0.5 * cdist(points / width, X / width, "sqeuclidean") - np.log(width * np.sqrt(2 * np.pi)).sum()
    mixed = np.logaddexp.reduce(np.column_stack([exponents, np.zeros(len(points))]), axis=1)
    return np.asarray(mixed - np.log(len(X) + 1), np.float64)

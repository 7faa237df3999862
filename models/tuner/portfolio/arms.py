"""The arms of the portfolio: each scores the candidates in its own way.

Scores are positive and multiplied by the chance of being valid; higher is tried sooner.
"""

from typing import ClassVar, Protocol

import numpy as np
from scipy.spatial.distance import cdist

from crosswind.data.prediction import Floats
from crosswind.models.tuner.portfolio.evidence import Evidence
from crosswind.models.tuner.portfolio.process import Process, expected_improvement
from crosswind.models.tuner.portfolio.trees import Forest

ROWS_TRIED = 40  # of a source, best first
ALIKE = 1.0  # sum of coordinate differences up to which a candidate stands for a row of elsewhere
TRUST_MIN = 0.02  # of a source whose rows are still tried
OWN_WEIGHT = 3.0  # of a target's row among the sources' in the joint trees
BANDWIDTH_MIN = 0.1  # of the densities, in the unit cube
GOOD_SHARE = 0.15
GOOD_MAX = 25


class Arm(Protocol):
    """One way to score candidates."""

    name: ClassVar[str]

    def scores(self, evidence: Evidence) -> Floats:
        """A number for every candidate, at least 0, shape (n_candidates,); all 0 when it has nothing to say."""
        ...


class BestRows:
    """The trusted sources' best rows in turn, the best of each first; the nearest candidate stands for one."""

    name: ClassVar[str] = "best_rows"

    def scores(self, evidence: Evidence) -> Floats:
        """Smaller with every further row."""
        found = np.zeros(len(evidence.candidates))
        trusted = [each for each, share in zip(evidence.sources, evidence.shares, strict=False) if share > TRUST_MIN]
        rows = [source.best(ROWS_TRIED) for source in trusted]
        turns = [points[place] for place in range(ROWS_TRIED) for points in rows if place < len(points)]
        for turn, point in enumerate(turns, start=1):
            near = np.abs(evidence.candidates - point).sum(axis=1)
            at = int(np.argmin(near))
            if near[at] < min(ALIKE, _nearest(evidence.gone, point)):
                found[at] = max(found[at], 1 / turn)
                if evidence.chance[at] > 0.5:
                    break
        return found


class JointTrees:
    """Trees over the sources' rows and the target's, told apart by what describes them."""

    name: ClassVar[str] = "joint_trees"

    def scores(self, evidence: Evidence) -> Floats:
        """Expected improvement, from the first measurements on."""
        blocks = [(each.X, np.append(each.features, 0.0)) for each in evidence.sources]
        own = np.append(evidence.features, 1.0)
        X = np.vstack([_described(points, columns) for points, columns in [*blocks, (evidence.X, own)]])
        y = np.concatenate([*(each.y for each in evidence.sources), evidence.y])
        weights = np.where(X[:, -1] == 1, OWN_WEIGHT, 1.0)
        forest = Forest.fitted(X, y, seed=evidence.seed, weights=weights)
        mean, deviation = forest.predict(_described(evidence.candidates, own))
        return _promise(mean, deviation, evidence, float(evidence.y.min()) if evidence.n_measured else np.inf)


class AroundSources:
    """A process of what the target differs by from what the trusted sources expect."""

    name: ClassVar[str] = "around_sources"

    def scores(self, evidence: Evidence) -> Floats:
        """Expected improvement, from the first measurements on."""
        shares = evidence.shares[:-1]
        mean, expected = shares @ evidence.beliefs, shares @ evidence.told
        if evidence.process is None:
            return np.exp(-mean)
        process = Process.fitted(evidence.X, evidence.y - expected)
        difference, deviation = process.predict(evidence.candidates)
        best = float((process.predict(evidence.X)[0] + expected).min())
        return expected_improvement(mean + difference, deviation, best)


class RankedEnsemble:
    """The sources' processes and the target's own, averaged by their shares."""

    name: ClassVar[str] = "ranked_ensemble"

    def scores(self, evidence: Evidence) -> Floats:
        """Expected improvement, from the first measurements on."""
        shares, process = evidence.shares, evidence.process
        mean, variance = shares[:-1] @ evidence.beliefs, shares[:-1] ** 2 @ evidence.doubts**2
        if process is None:
            return np.exp(-mean)
        own, deviation = process.predict(evidence.candidates)
        best = float((shares[:-1] @ evidence.told + shares[-1] * process.predict(evidence.X)[0]).min())
        return expected_improvement(mean + shares[-1] * own, np.sqrt(variance + (shares[-1] * deviation) ** 2), best)


class TargetProcess:
    """The target's own process."""

    name: ClassVar[str] = "target_process"

    def scores(self, evidence: Evidence) -> Floats:
        """Expected improvement."""
        if evidence.process is None:
            return np.zeros(len(evidence.candidates))
        mean, deviation = evidence.process.predict(evidence.candidates)
        return expected_improvement(mean, deviation, float(evidence.process.predict(evidence.X)[0].min()))


class TargetTrees:
    """Trees over the target's rows alone."""

    name: ClassVar[str] = "target_trees"

    def scores(self, evidence: Evidence) -> Floats:
        """Expected improvement."""
        if evidence.process is None:
            return np.zeros(len(evidence.candidates))
        mean, deviation = Forest.fitted(evidence.X, evidence.y, seed=evidence.seed).predict(evidence.candidates)
        return expected_improvement(mean, deviation, float(evidence.y.min()))


class Densities:
    """How much denser the good rows lie around a candidate than the others (TPE over the candidates).

    Source: Bergstra, Bardenet, Bengio, Kegl 2011; kernels over all coordinates at once.
    """

    name: ClassVar[str] = "densities"

    def scores(self, evidence: Evidence) -> Floats:
        """The ratio of the two densities."""
        if evidence.process is None:
            return np.zeros(len(evidence.candidates))
        order = np.argsort(evidence.y, kind="stable")
        good = min(int(np.ceil(GOOD_SHARE * len(order))), GOOD_MAX)
        dense, others = (_log_density(evidence.X[rows], evidence.candidates) for rows in (order[:good], order[good:]))
        return np.exp(np.clip(dense - others, -300, 300))


def _nearest(points: Floats, point: Floats) -> float:
    return float(np.abs(points - point).sum(axis=1).min()) if len(points) else np.inf


def _described(points: Floats, columns: Floats) -> Floats:
    return np.hstack([points, np.tile(columns, (len(points), 1))])


def _promise(mean: Floats, deviation: Floats, evidence: Evidence, best: float) -> Floats:
    return np.exp(-mean) if evidence.process is None else expected_improvement(mean, deviation, best)


def _log_density(X: Floats, points: Floats) -> Floats:
    """Logarithm of a mixture of Gaussian kernels at X and one wide one over the whole cube, shape (len(points),)."""
    if len(X) == 0:
        return np.zeros(len(points))
    width = np.maximum(X.std(axis=0) * len(X) ** (-1 / (X.shape[1] + 4)), BANDWIDTH_MIN)
    exponents = -0.5 * cdist(points / width, X / width, "sqeuclidean") - np.log(width * np.sqrt(2 * np.pi)).sum()
    mixed = np.logaddexp.reduce(np.column_stack([exponents, np.zeros(len(points))]), axis=1)
    return np.asarray(mixed - np.log(len(X) + 1), np.float64)

"""The arms of the portfolio: each scores the candidates in its own way.

Scores are positive and multiplied by the chance of being valid; higher is tried sooner.
"""

from typing import ClassVar, Protocol

import numpy as np
from scipy.spatial.distance import cdist

from crosswind.data.schema.prediction import Floats
from crosswind.models.gp.gaussian_process import expected_improvement
from crosswind.models.tuner.search.portfolio.evidence import Evidence
from crosswind.models.tuner.search.portfolio.sourced_process import SourcedProcess
from crosswind.models.tuner.search.portfolio.trees import Forest

ROWS_TRIED = 40  # of a source, best first
ALIKE = 1.0  # sum of coordinate differences up to which a candidate stands for a row of elsewhere
TRUST_MIN = 0.02  # of a source whose rows are still tried; of all sources together to have a turn
OWN_WEIGHT = 3.0  # of a target's row among the sources' in the joint trees, which weigh 1 on average
ROW_WEIGHT_MIN = 0.05  # of a row of a source that is not trusted
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
    """The sources' best rows, the more of one the more it is trusted; the nearest candidate stands for one."""

    name: ClassVar[str] = "best_rows"

    def scores(self, evidence: Evidence) -> Floats:
        """Smaller with every further row."""
        scores = np.zeros(len(evidence.candidates))
        ranked = [
            (rank / share, point)
            for source, share in zip(evidence.sources, evidence.shares, strict=False)
            if share > TRUST_MIN
            for rank, point in enumerate(source.best(ROWS_TRIED), start=1)
        ]
        for turn, (_, point) in enumerate(sorted(ranked, key=lambda entry: entry[0]), start=1):
            near = np.abs(evidence.candidates - point).sum(axis=1)
            at = int(np.argmin(near))
            if near[at] < min(ALIKE, _nearest(evidence.gone, point)):
                scores[at] = max(scores[at], 1 / turn)
                if evidence.chance[at] > 0.5:
                    break
        return scores


class JointTrees:
    """Trees over the sources' rows and the target's, told apart by what describes them."""

    name: ClassVar[str] = "joint_trees"

    def scores(self, evidence: Evidence) -> Floats:
        """Expected improvement, from the first measurements on."""
        blocks = [(source.X, np.append(source.features, 0.0)) for source in evidence.sources]
        own = np.append(evidence.features, 1.0)
        X = np.vstack([_described(points, columns) for points, columns in [*blocks, (evidence.X, own)]])
        y = np.concatenate([*(source.y for source in evidence.sources), evidence.y])
        trust = np.maximum(evidence.shares[:-1] * len(evidence.sources), ROW_WEIGHT_MIN)
        rows = [*(len(source.y) for source in evidence.sources), len(evidence.y)]
        weights = np.repeat(np.append(trust, OWN_WEIGHT), rows)
        forest = Forest.fitted(X, y, seed=evidence.seed, weights=weights)
        mean, deviation = forest.predict(_described(evidence.candidates, own))
        return _promise(mean, deviation, evidence, float(evidence.y.min()) if evidence.n_measured else np.inf)


class WeightedSources:
    """A process around a weighted sum of what the sources expect."""

    name: ClassVar[str] = "weighted_sources"

    def scores(self, evidence: Evidence) -> Floats:
        """Expected improvement, from the first measurement on."""
        prior = evidence.likeness
        if evidence.n_measured == 0:
            return np.exp(-(prior @ evidence.beliefs))
        process = SourcedProcess.fitted(prior, evidence.X, evidence.expected, evidence.y)
        mean, deviation = process.predict(evidence.candidates, evidence.beliefs)
        return expected_improvement(mean, deviation, float(process.predict(evidence.X, evidence.expected)[0].min()))


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
        best = float((shares[:-1] @ evidence.expected + shares[-1] * process.predict(evidence.X)[0]).min())
        return expected_improvement(mean + shares[-1] * own, np.sqrt(variance + (shares[-1] * deviation) ** 2), best)


class TargetProcess:
    """The target's own process."""

    name: ClassVar[str] = "target_process"

    def scores(self, evidence: Evidence) -> Floats:
        """Expected improvement."""
        if evidence.process is None:
            return np.zeros(len(evidence.candidates))
        mean, deviation = evidence.process.predict(evidence.candidates)
        return expected_improvement(mean, deviation, evidence.process.expected_best)


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
    """Scores by how much denser the good rows lie around a candidate than the others (TPE over the candidates).

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

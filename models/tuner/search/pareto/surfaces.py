"""Models of every objective and limit, at measured and at untried configurations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtr

from crosswind.data.schema.prediction import Floats
from crosswind.models.gp.repeated_process import RepeatedProcess
from crosswind.models.tuner.search.noise import process_of
from crosswind.models.tuner.search.pareto.expected_improvement import expected_hypervolume_improvement
from crosswind.models.tuner.search.scale import Scale
from crosswind.models.tuner.study.front import on_front, reference
from crosswind.models.tuner.study.goal import Judgement

FEASIBLE = 0.5  # a measured configuration counts as within the limits from this probability on


@dataclass(frozen=True)
class Surface:
    """One number a trial, modelled on its own scale."""

    process: RepeatedProcess
    scale: Scale

    @classmethod
    def of(cls, points: Floats, groups: Sequence[Floats]) -> Self:
        """Fit one group of values for each of the points (n, n_coordinates)."""
        scale = Scale.of(np.concatenate(groups))
        return cls(process_of(points, [scale.forward(group) for group in groups], is_relative=bool(scale.sign)), scale)


@dataclass(frozen=True)
class Surfaces:
    """Independent surfaces of the objectives, and of how far each limit is overstepped (kept at 0 and below)."""

    objectives: tuple[Surface, ...]
    margins: tuple[RepeatedProcess, ...]

    @classmethod
    def of(cls, points: Floats, groups: Sequence[Sequence[Judgement]]) -> Self:
        """Fit the judgements of all measurements, one group for each of the points (n, n_coordinates)."""
        objectives = [
            Surface.of(points, [np.array([judgement.objectives[i] for judgement in group]) for group in groups])
            for i in range(len(groups[0][0].objectives))
        ]
        sides = [
            [np.array([judgement.sides[i] for judgement in group], dtype=np.float64) for group in groups]
            for i in range(len(groups[0][0].sides))
        ]
        return cls(tuple(objectives), tuple(_margin(points, values) for values in sides))

    def believing(self, X: Floats) -> "Surfaces":
        """Return the surfaces as if the points X had been measured at their expected values."""
        objectives = tuple(Surface(surface.process.believing(X), surface.scale) for surface in self.objectives)
        return Surfaces(objectives, tuple(margin.believing(X) for margin in self.margins))

    def score(self, X: Floats) -> Floats:
        """Return the expected growth of the dominated volume times the chance to keep all limits, (n,).

        While nothing measured keeps the limits, the chance alone. Volume is counted on the scales of the objectives.
        Source: Gelbart, Snoek and Adams 2014, "Bayesian optimization with unknown constraints".
        """
        chance = self.chance_within(X)
        values = np.stack([surface.process.at_measured()[0] for surface in self.objectives], axis=1)
        within = values[self.chance_kept() >= FEASIBLE]
        if len(within) == 0:
            return chance
        front = within[on_front(within)]
        predicted = [surface.process.predict(X) for surface in self.objectives]
        means, deviations = (np.stack(columns, axis=1) for columns in zip(*predicted, strict=True))
        behind = reference(front, values)
        return chance * expected_hypervolume_improvement(means, deviations, front, behind)

    def chance_within(self, X: Floats) -> Floats:
        """Return the probability that an untried configuration keeps all limits, (n,)."""
        chances = [ndtr(-mean / deviation) for mean, deviation in (margin.predict(X) for margin in self.margins)]
        return np.asarray(np.prod([np.ones(len(X)), *chances], axis=0), np.float64)

    def chance_kept(self) -> Floats:
        """Return the probability of each measured configuration to keep all limits, (n,)."""
        chances = [np.ones(len(self.objectives[0].process.measured.means))]
        for margin in self.margins:
            mean, covariance = margin.at_measured()
            chances.append(ndtr(-mean / np.sqrt(np.maximum(np.diag(covariance), 1e-12))))
        return np.asarray(np.prod(chances, axis=0), np.float64)


def _margin(points: Floats, groups: Sequence[Floats]) -> RepeatedProcess:
    """Fit the excess of the smaller side over the larger: the logarithm of their ratio where all are positive."""
    if all(bool(np.all(group > 0)) for group in groups):
        return process_of(points, [np.log(group[:, 0] / group[:, 1]) for group in groups], is_relative=True)
    return process_of(points, [group[:, 0] - group[:, 1] for group in groups], is_relative=False)

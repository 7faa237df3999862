"""The configurations to choose from now: all that are free, or some of them where there are very many."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Configuration
from crosswind.models.tuner.search.pool import Pool
from crosswind.models.tuner.search.portfolio.fitted_source import FittedSource
from crosswind.models.tuner.space.space import Space

CANDIDATES_MAX = 1600
RANDOM = 800  # of a listed space with more
DRAWN = 1200  # of a space too big to list
PROMISING = 100  # by the expectation of each source
AROUND = 80  # nearest to each of the best measured and to each source's best
TOPS = 3
TOP_ROWS = 20  # of each source that are candidates themselves
NEIGHBOURS = 8  # draws a parameter around the best, in a space too big to list


@dataclass(frozen=True)
class Candidates:
    """Free configurations, their points, and the sources' expected values and deviations, each (n_sources, n)."""

    configurations: Sequence[Configuration]
    points: Floats
    means: Floats
    deviations: Floats

    @classmethod
    def none(cls, n_coordinates: int, n_sources: int) -> Self:
        """Return no candidates."""
        return cls([], np.empty((0, n_coordinates)), np.empty((n_sources, 0)), np.empty((n_sources, 0)))


class Supply(Protocol):
    """A supply of candidates."""

    def free(self, taken: Collection[str], best: Sequence[Configuration], seed: int) -> Candidates:
        """Return some that are not taken, by key; `best` are measured ones, best first."""
        ...


class ListedSupply:
    """Candidates of a space that can be listed; those at the points `always` are never left out."""

    def __init__(self, space: Space, sources: Sequence[FittedSource], always: Floats) -> None:
        self._space, self._sources, self._always = space, sources, always
        self._pool = Pool.of(space, space.configurations())
        self._places = {key: place for place, key in enumerate(self._pool.keys)}
        self._means, self._deviations = expectations(sources, self._pool.points)

    def free(self, taken: Collection[str], best: Sequence[Configuration], seed: int) -> Candidates:
        """Return all that are free; where there are very many, random, promising and near ones."""
        is_free = np.ones(len(self._pool), dtype=bool)
        is_free[[self._places[key] for key in taken if key in self._places]] = False
        free = np.flatnonzero(is_free)
        if len(free) > CANDIDATES_MAX:
            free = free[self._some(free, best, np.random.default_rng(seed))]
        chosen = [self._pool.configurations[place] for place in free.tolist()]
        return Candidates(chosen, self._pool.points[free], self._means[:, free], self._deviations[:, free])

    def _some(
        self, free: NDArray[np.int64], best: Sequence[Configuration], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        centres = [
            *self._space.coordinates(best[:TOPS]),
            *(point for source in self._sources for point in source.best(1)),
        ]
        tops = [point for source in self._sources for point in source.best(TOP_ROWS)]
        distances = cdist(np.array([*centres, *tops, *self._always]), self._pool.points[free], "cityblock")
        parts = [
            rng.choice(len(free), RANDOM, replace=False),
            *(np.argpartition(mean[free], PROMISING)[:PROMISING] for mean in self._means),
            *(np.argpartition(row, AROUND)[:AROUND] for row in distances[: len(centres)]),
            distances[len(centres) :].argmin(axis=1),
        ]
        return np.unique(np.concatenate(parts))


class DrawnSupply:
    """Candidates of a space too big to list: random ones, neighbours of the best, and those that are always some."""

    def __init__(self, space: Space, sources: Sequence[FittedSource], always: Sequence[Configuration]) -> None:
        self._space, self._sources = space, sources
        self._always = [configuration for configuration in always if space.contains(configuration)]

    def free(self, taken: Collection[str], best: Sequence[Configuration], seed: int) -> Candidates:
        """Return other ones after every trial."""
        near = [
            other for configuration in best[:TOPS] for other in self._space.neighbours(configuration, NEIGHBOURS, seed)
        ]
        drawn = [*self._always, *near, *self._space.random(DRAWN, seed)]
        pool = Pool.of(self._space, drawn).without(taken)
        return Candidates(pool.configurations, pool.points, *expectations(self._sources, pool.points))


def expectations(sources: Sequence[FittedSource], points: Floats) -> tuple[Floats, Floats]:
    """Return the sources' expected values of the points, and the deviations, each of shape (n_sources, n_points)."""
    pairs = [source.process.predict(points) for source in sources]
    shape = (len(sources), len(points))
    return np.array([mean for mean, _ in pairs]).reshape(shape), np.array([std for _, std in pairs]).reshape(shape)

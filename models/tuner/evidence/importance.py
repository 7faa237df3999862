"""The importance of parameters: how much of an objective's variation over the space follows each of them alone.

Source: Hutter, Hoos, Leyton-Brown 2014, "An efficient approach for assessing hyperparameter importance" (functional
ANOVA): the variance of the objective averaged over all other parameters, as a share of its whole variance. They compute
it exactly from a random forest; here extremely randomised trees of scikit-learn predict a sample of the space.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Configuration
from crosswind.models.tuner.search.portfolio.trees import Forest
from crosswind.models.tuner.search.scale import Scale
from crosswind.models.tuner.space.space import Space

FEWEST = 8  # complete trials
SAMPLE = 400  # configurations over which is averaged
PLACES = 40  # values of a parameter that are compared


@dataclass(frozen=True)
class Effects:
    """A forest over a study's complete trials, asked for averages over its space.

    Args:
        space: Of the study.
        forest: Predicts the objective on its scale from `points`.
        scale: Logarithmic where all objectives have one sign.
        sample: Points of random configurations, shape (n, n_columns).
    """

    space: Space
    forest: Forest
    scale: Scale
    sample: Floats

    @classmethod
    def of(
        cls, space: Space, configurations: Sequence[Configuration], objectives: Sequence[float], *, seed: int = 0
    ) -> Self:
        """Fit the forest. Raises: InvalidInputError for fewer than FEWEST trials."""
        if len(objectives) < FEWEST:
            raise InvalidInputError(f"there are {len(objectives)} trials with a value, expected {FEWEST} or more")
        y = np.asarray(objectives, np.float64)
        scale = Scale.of(y)
        forest = Forest.fitted(_points(space, configurations), scale.forward(y), seed=seed)
        return cls(space, forest, scale, _points(space, space.random(SAMPLE, seed)))

    def importances(self) -> Mapping[str, float]:
        """Return the share of each parameter alone, largest first; what is missing to 1 follows several together."""
        whole = float(np.var(self.forest.predict(self.sample)[0]))
        shares = {
            name: min(1.0, float(np.var(self._averages(columns, self._places(columns)))) / whole) if whole > 0 else 0.0
            for name, columns in self._columns().items()
        }
        return MappingProxyType(dict(sorted(shares.items(), key=lambda entry: -entry[1])))

    def surface(self, first: str, second: str, pairs: Sequence[Configuration]) -> Floats:
        """Return the objective averaged over all other parameters, for pairs of values of two of them, (n_pairs,)."""
        columns = [*self._columns()[first], *self._columns()[second]]
        points = np.hstack(
            [self.space.domains[name].places([pair[name] for pair in pairs]) for name in (first, second)]
        )
        return self.scale.back(self._averages(columns, points))

    def _places(self, columns: Sequence[int]) -> Floats:
        """Return PLACES of the sample, (n, n_columns), evenly by rank: the first ones may vary more than the sample."""
        ranks = np.lexsort(self.sample[:, columns].T)
        middles = (np.arange(PLACES) + 0.5) * len(ranks) / PLACES
        return np.asarray(self.sample[ranks[middles.astype(int)]][:, columns])

    def _averages(self, columns: Sequence[int], places: Floats) -> Floats:
        """Return the prediction at each place of these columns, (n_places, n_columns), averaged over the sample."""
        points = np.repeat(self.sample[None], len(places), axis=0)
        points[:, :, columns] = places[:, None]
        predicted = self.forest.predict(points.reshape(-1, self.sample.shape[1]))[0]
        return np.asarray(predicted.reshape(len(places), -1).mean(axis=1))

    def _columns(self) -> dict[str, list[int]]:
        """Return the columns of points that belong to each parameter."""
        columns: dict[str, list[int]] = {}
        for name, domain in self.space.domains.items():
            start = sum(map(len, columns.values()))
            columns[name] = list(range(start, start + domain.n_coordinates))
        return columns


def _points(space: Space, configurations: Sequence[Configuration]) -> Floats:
    """Return coordinates without those that say whether a parameter applies: the one that decides it has the credit."""
    kept: list[bool] = []
    for name, domain in space.domains.items():
        kept += [True] * domain.n_coordinates + [False] * (name in space.requirements.conditions)
    return space.coordinates(configurations)[:, kept]

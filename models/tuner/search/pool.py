"""The configurations that a tuner weighs, with the points that stand for them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Configuration
from crosswind.models.tuner.space.space import Space


@dataclass(frozen=True)
class Pool:
    """Distinct configurations, their keys, and their points of shape (n_configurations, n_coordinates)."""

    configurations: Sequence[Configuration]
    keys: Sequence[str]
    points: Floats

    @classmethod
    def of(cls, space: Space, configurations: Sequence[Configuration]) -> Self:
        """The pool of these configurations, one of each. Raises: InvalidInputError for one from elsewhere."""
        unique = {space.key(configuration): configuration for configuration in configurations}
        return cls(list(unique.values()), list(unique), space.coordinates(list(unique.values())))

    def __len__(self) -> int:
        return len(self.keys)

    def without(self, keys: Collection[str]) -> "Pool":
        """Those with other keys."""
        kept = [index for index, key in enumerate(self.keys) if key not in keys]
        configurations = [self.configurations[index] for index in kept]
        return Pool(configurations, [self.keys[index] for index in kept], self.points[np.array(kept, dtype=int)])

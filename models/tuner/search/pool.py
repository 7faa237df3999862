"""The configurations that a tuner chooses from, with their points."""

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
        """Return the pool of these configurations, duplicates removed. Raises: InvalidInputError for foreign ones."""
        unique = {space.key(configuration): configuration for configuration in configurations}
        return cls(list(unique.values()), list(unique), space.coordinates(list(unique.values())))

    def __len__(self) -> int:
        return len(self.keys)

    def without(self, keys: Collection[str]) -> "Pool":
        """Return the configurations with other keys."""
        rows = [row for row, key in enumerate(self.keys) if key not in keys]
        configurations = [self.configurations[row] for row in rows]
        return Pool(configurations, [self.keys[row] for row in rows], self.points[np.array(rows, dtype=int)])

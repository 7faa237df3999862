"""Measurements grouped by configuration."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.trial import Configuration
from crosswind.models.tuner.space.space import Space


@dataclass(frozen=True)
class Repeats:
    """Distinct configurations, their points (n, n_coordinates), and every objective measured of each."""

    configurations: tuple[Configuration, ...]
    keys: tuple[str, ...]
    points: Floats
    values: tuple[Floats, ...]

    @classmethod
    def of(cls, space: Space, configurations: Sequence[Configuration], objectives: Sequence[float]) -> Self:
        """Group measurements, in the order in which configurations first appear.

        Raises: InvalidInputError for a configuration from elsewhere or an objective that is not finite.
        """
        groups: dict[str, list[float]] = {}
        first: dict[str, Configuration] = {}
        for configuration, objective in zip(configurations, objectives, strict=True):
            key = space.key(configuration)
            if not np.isfinite(objective):
                raise InvalidInputError(f"objective of {dict(configuration)} is {objective}, expected a finite number")
            groups.setdefault(key, []).append(objective)
            first.setdefault(key, configuration)
        values = tuple(np.array(group, dtype=np.float64) for group in groups.values())
        return cls(tuple(first.values()), tuple(groups), space.coordinates(list(first.values())), values)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def n_measurements(self) -> int:
        """The number of measurements of all configurations together."""
        return sum(len(group) for group in self.values)

    @property
    def n_repeats(self) -> int:
        """The number of measurements that repeat a configuration."""
        return self.n_measurements - len(self)

    @property
    def is_logarithmic(self) -> bool:
        """Return whether all objectives are positive, so that noise is relative and their logarithms are modelled."""
        return all(bool(np.all(group > 0)) for group in self.values)

    @property
    def on_scale(self) -> tuple[Floats, ...]:
        """The objectives, or their logarithms where all are positive."""
        return tuple(np.log(group) for group in self.values) if self.is_logarithmic else self.values

    def best(self, count: int) -> "Repeats":
        """Return the `count` configurations whose mean is smallest, in their order here."""
        means = [float(group.mean()) for group in self.on_scale]
        rows = sorted(np.argsort(means, kind="stable")[:count].tolist())
        return Repeats(
            tuple(self.configurations[row] for row in rows),
            tuple(self.keys[row] for row in rows),
            self.points[np.array(rows, dtype=int)],
            tuple(self.values[row] for row in rows),
        )

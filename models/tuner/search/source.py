"""Sources: configurations that were measured elsewhere."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration


@dataclass(frozen=True)
class Source:
    """Measurements of one other study, machine, scale or program.

    Args:
        name: For people.
        configurations: As measured; they need not lie in the target's space.
        objectives: One a configuration, lower is better, None where it failed.
        features: Description of the whole source, such as `{"nodes": 8, "device": "A100"}`.

    Raises:
        InvalidInputError: For an empty name, other numbers of objectives, or objectives that are not finite.
    """

    name: str
    configurations: Sequence[Configuration]
    objectives: Sequence[float | None]
    features: Mapping[str, float | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidInputError("a source has no name, expected a text")
        if len(self.configurations) != len(self.objectives):
            raise InvalidInputError(
                f"source {self.name} has {len(self.objectives)} objectives, expected one for each of its "
                f"{len(self.configurations)} configurations"
            )
        for objective in self.objectives:
            if objective is not None and not math.isfinite(objective):
                raise InvalidInputError(f"source {self.name} has objective {objective}, expected finite or None")

    def best(self, count: int) -> list[Configuration]:
        """Return its best configurations, best first; fewer where it has no more."""
        valid = [(objective, place) for place, objective in enumerate(self.objectives) if objective is not None]
        return [self.configurations[place] for _, place in sorted(valid)[:count]]

    @property
    def failed(self) -> list[Configuration]:
        """Configurations that failed."""
        return [
            configuration
            for configuration, objective in zip(self.configurations, self.objectives, strict=True)
            if objective is None
        ]

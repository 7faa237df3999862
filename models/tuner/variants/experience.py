"""The outcome of a variant in a context: the words of the code-variant question."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration

Feature = float | str


@dataclass(frozen=True)
class Context:
    """An input by its name, and what can be seen of it before anything runs; no features is a context like any."""

    name: str
    features: Mapping[str, Feature] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in self.features.items():
            if not isinstance(value, str) and not math.isfinite(value):
                raise InvalidInputError(
                    f"context {self.name}: feature {name} is {value}, expected a finite number or a text"
                )


@dataclass(frozen=True)
class Experience:
    """One measurement; `objective` is positive and lower is better, None when it failed or ran into its limit."""

    context: Context
    variant: Configuration
    objective: float | None

    def __post_init__(self) -> None:
        if self.objective is not None and not (math.isfinite(self.objective) and self.objective > 0):
            raise InvalidInputError(
                f"context {self.context.name}: objective is {self.objective}, expected a positive finite number, or "
                "None for a failure"
            )


@dataclass(frozen=True)
class Choice:
    """A variant for a context, with what is expected of it.

    `expected_regret` is how much longer it takes than the best variant, as a ratio (0.1 is 10 %); a failure counts as
    ten times the best. `failure_ratio` is the probability that it fails, in [0, 1].
    """

    variant: Configuration
    expected_regret: float
    failure_ratio: float
    is_measured: bool = False

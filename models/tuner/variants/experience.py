"""Contexts, and the measurements of variants in them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration

Feature = float | str


@dataclass(frozen=True)
class Context:
    """An input of a program.

    Args:
        name: Unique among contexts.
        features: Numbers and texts that describe the input before anything runs; may be empty.

    Raises:
        InvalidInputError: For a feature that is not finite.
    """

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
    """One measurement.

    Args:
        context: The input.
        variant: The configuration that ran.
        objective: Positive, lower is better; None when it failed or ran into its limit.

    Raises:
        InvalidInputError: For an objective that is not positive and finite.
    """

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
    """A variant for a context, with its expectations.

    Args:
        variant: The configuration.
        expected_regret: Excess of its objective over the best variant's, as a ratio (0.1 is 10 %); a failure counts as
            ten times the best.
        failure_ratio: Probability that it fails, in [0, 1].
        is_measured: Whether it was tried in the context.
    """

    variant: Configuration
    expected_regret: float
    failure_ratio: float
    is_measured: bool = False

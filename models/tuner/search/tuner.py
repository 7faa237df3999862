"""The protocol of a tuner."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol, runtime_checkable

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration, Trial

OWN = "own"  # among the weights: the study's own model


class Tuner(Protocol):
    """Chooses which configuration to try next; a lower objective is better."""

    name: ClassVar[str]

    def suggest(self, count: int) -> list[Configuration]:
        """Return distinct configurations to try next, none measured or pending; fewer where the space has no more.

        Changes nothing: the same trials and seed give the same suggestions. Raises: InvalidInputError.
        """
        ...

    def observe(self, trials: Sequence[Trial]) -> None:
        """Learn the newest state of these trials, all or none. Raises: InvalidInputError."""
        ...


@runtime_checkable
class LearnsFromSources(Protocol):
    """A tuner that weighs sources against its own model of the study."""

    def weights(self) -> Mapping[str, float]:
        """Return the weight of each source by name and, last, under OWN that of the study's own model; they sum to 1.

        Empty without sources.
        """
        ...


def weights_of(tuner: Tuner) -> Mapping[str, float]:
    """Return the weights of a tuner's sources and of its own model; empty for one that knows no sources."""
    return tuner.weights() if isinstance(tuner, LearnsFromSources) else {}


def check_count(count: int) -> None:
    """Refuse an impossible number of suggestions. Raises: InvalidInputError."""
    if count < 1:
        raise InvalidInputError(f"count is {count}, expected at least 1")

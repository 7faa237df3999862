"""The protocol of a tuner."""

from collections.abc import Sequence
from typing import ClassVar, Protocol

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration, Trial


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


def check_count(count: int) -> None:
    """Refuse an impossible number of suggestions. Raises: InvalidInputError."""
    if count < 1:
        raise InvalidInputError(f"count is {count}, expected at least 1")

"""Random search: the tuner that every other one must beat."""

from collections.abc import Sequence
from typing import ClassVar

from crosswind.data.schema.trial import Configuration, Trial
from crosswind.models.tuner.search.knowledge import Knowledge
from crosswind.models.tuner.search.tuner import check_count
from crosswind.models.tuner.space.space import Space


class RandomTuner:
    """Suggests every configuration in an order that the seed decides."""

    name: ClassVar[str] = "random"

    def __init__(self, space: Space, seed: int) -> None:
        self._space, self._seed = space, seed
        self._knowledge = Knowledge(space)

    def suggest(self, count: int) -> list[Configuration]:
        """The next configurations of the random order. Raises: InvalidInputError."""
        check_count(count)
        # Among as many distinct ones as are taken plus `count`, at least `count` are free.
        enough = len(self._knowledge.taken) + count
        return self._knowledge.free(self._space.random(enough, self._seed))[:count]

    def observe(self, trials: Sequence[Trial]) -> None:
        """Learns which configurations are taken. Raises: InvalidInputError."""
        self._knowledge.add(trials)

"""Random search, the baseline of every tuner."""

from collections.abc import Sequence
from typing import ClassVar

from crosswind.data.schema.trial import Configuration, Trial
from crosswind.models.tuner.search.observed_trials import ObservedTrials
from crosswind.models.tuner.search.tuner import check_count
from crosswind.models.tuner.space.space import Space


class RandomTuner:
    """Suggests the configurations in random order.

    Args:
        space: The configurations to choose from.
        seed: Of the order.
    """

    name: ClassVar[str] = "random"

    def __init__(self, space: Space, seed: int) -> None:
        self._space, self._seed = space, seed
        self._trials = ObservedTrials(space)

    def suggest(self, count: int) -> list[Configuration]:
        """Return the next configurations of the random order. Raises: InvalidInputError."""
        check_count(count)
        # Among as many distinct ones as are taken plus `count`, at least `count` are free.
        enough = len(self._trials.taken) + count
        return self._trials.free(self._space.random(enough, self._seed))[:count]

    def observe(self, trials: Sequence[Trial]) -> None:
        """Learn which configurations are taken. Raises: InvalidInputError."""
        self._trials.add(trials)

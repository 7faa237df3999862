"""A tuner that measures a close rival again, instead of a new configuration, where that promises more."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.trial import Configuration, Trial
from crosswind.models.tuner.search.incumbents import SHARE_MAX, Answer, Beliefs, next_replicate
from crosswind.models.tuner.search.observed_trials import ObservedTrials
from crosswind.models.tuner.search.repeats import Repeats
from crosswind.models.tuner.search.tuner import Tuner, check_count, weights_of
from crosswind.models.tuner.space.space import Space


class ReplicatingTuner:
    """Suggests another tuner's configurations or a repeat of a measured one, and gives the best with its interval.

    At most one of several suggestions is a repeat. A repeat is a trial of its own, so trials need ids.

    Args:
        space: The configurations to choose from.
        seed: Of the draws that value repeats.
        explorer: Suggests new configurations.
        share: Of all measurements that may be repeats, in [0, 1].

    Example:
        >>> tuner = ReplicatingTuner(space, 0, GaussianProcessTuner(space, 0))
        >>> tuner.observe([Trial(configuration, TrialState.DONE, 0.25, "t1")])
        >>> tuner.answer(level=0.9).chance_best
    """

    name: ClassVar[str] = "replicating"

    def __init__(self, space: Space, seed: int, explorer: Tuner, *, share: float = SHARE_MAX) -> None:
        self._space, self._seed, self._explorer, self._share = space, seed, explorer, share
        self._trials = ObservedTrials(space)

    def suggest(self, count: int) -> list[Configuration]:
        """Return the next configurations; at most one of them was measured before. Raises: InvalidInputError."""
        check_count(count)
        new = self._explorer.suggest(count)
        repeated = self._repeated(new)
        return new if repeated is None else [repeated, *new[: count - 1]]

    def observe(self, trials: Sequence[Trial]) -> None:
        """Learn the newest state of these trials. Raises: InvalidInputError."""
        self._trials.add(trials)
        self._explorer.observe(trials)

    def weights(self) -> Mapping[str, float]:
        """Return the weights of the other tuner's sources."""
        return weights_of(self._explorer)

    def answer(self, level: float = 0.9) -> Answer:
        """Return the best configuration so far.

        Raises: NotFoundError before the first complete trial, InvalidInputError.
        """
        beliefs = self.beliefs()
        if beliefs is None:
            raise NotFoundError("no trial is complete yet, expected at least one before there is a best configuration")
        return beliefs.answer(level)

    def beliefs(self) -> Beliefs | None:
        """Return the beliefs from the complete trials; None before the first."""
        configurations, objectives = self._trials.done
        return Beliefs.of(Repeats.of(self._space, configurations, objectives), self._seed) if configurations else None

    def _repeated(self, new: Sequence[Configuration]) -> Configuration | None:
        beliefs = self.beliefs()
        if beliefs is None:
            return None
        gains = beliefs.gain_of_new(self._space.coordinates(new)) if new else np.zeros(1)
        pending = frozenset(self._space.key(configuration) for configuration in self._trials.pending)
        return next_replicate(beliefs, exploring=float(gains.max()), pending=pending, share=self._share)

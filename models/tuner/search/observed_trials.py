"""The trials that a tuner has observed."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import ENDED, Configuration, Trial, TrialState
from crosswind.models.tuner.search.design import START
from crosswind.models.tuner.space.space import Space

PENDING = frozenset({TrialState.WAITING, TrialState.LEASED})
INVALID = frozenset({TrialState.FAILED, TrialState.INFEASIBLE})


@dataclass
class ObservedTrials:
    """The newest state of every trial, by its id or, without one, by its configuration."""

    space: Space
    _trials: dict[str, Trial] = field(default_factory=dict, init=False)

    def add(self, trials: Iterable[Trial]) -> None:
        """Take all trials or none.

        Raises: InvalidInputError for a configuration from elsewhere, and when done without a finite objective.
        """
        checked = {trial.trial_id or self.space.key(trial.configuration): self._checked(trial) for trial in trials}
        self._trials.update(checked)

    @property
    def taken(self) -> frozenset[str]:
        """Keys of the configurations that are measured or pending; a released one may be suggested again."""
        held = (trial for trial in self._trials.values() if trial.state is not TrialState.RELEASED)
        return frozenset(self.space.key(trial.configuration) for trial in held)

    def taken_with(self, chosen: Iterable[Configuration]) -> frozenset[str]:
        """Return the keys that are taken once these configurations are, too."""
        return self.taken | {self.space.key(configuration) for configuration in chosen}

    @property
    def done(self) -> tuple[list[Configuration], list[float]]:
        """Configurations and objectives of the complete trials."""
        done = [trial for trial in self._trials.values() if trial.state is TrialState.DONE]
        return [trial.configuration for trial in done], [_objective(trial) for trial in done]

    @property
    def ended(self) -> list[Trial]:
        """The trials that ended, in the order in which they were first observed."""
        return [trial for trial in self._trials.values() if trial.state in ENDED]

    @property
    def pruned(self) -> list[Configuration]:
        """Configurations that were stopped early."""
        return [trial.configuration for trial in self._trials.values() if trial.state is TrialState.PRUNED]

    @property
    def pending(self) -> list[Configuration]:
        """Configurations that are being measured."""
        return [trial.configuration for trial in self._trials.values() if trial.state in PENDING]

    @property
    def invalid(self) -> list[Configuration]:
        """Configurations that failed or cannot run."""
        return [trial.configuration for trial in self._trials.values() if trial.state in INVALID]

    def free(self, configurations: Sequence[Configuration]) -> list[Configuration]:
        """Return those that are neither measured nor pending."""
        taken = self.taken
        return [configuration for configuration in configurations if self.space.key(configuration) not in taken]

    def left_of_start(self, start: Sequence[Configuration], count: int) -> list[Configuration]:
        """Return up to `count` free configurations of a start, none once START trials have begun."""
        return self.free(start)[: min(count, max(START - len(self.taken), 0))]

    def _checked(self, trial: Trial) -> Trial:
        self.space.check(trial.configuration)
        if trial.state is TrialState.DONE:
            _objective(trial)
        return trial


def _objective(trial: Trial) -> float:
    if trial.objective is None or not math.isfinite(trial.objective):
        raise InvalidInputError(
            f"trial {trial.trial_id or dict(trial.configuration)} is done with objective {trial.objective}, "
            "expected a finite number"
        )
    return trial.objective

"""The trials that a tuner knows."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration, Trial, TrialState
from crosswind.models.tuner.space.space import Space

PENDING = frozenset({TrialState.WAITING, TrialState.LEASED})
INVALID = frozenset({TrialState.FAILED, TrialState.INFEASIBLE})


@dataclass
class Knowledge:
    """The newest word on every trial, told apart by its id or, without one, by its configuration."""

    space: Space
    _trials: dict[str, Trial] = field(default_factory=dict, init=False)

    def add(self, trials: Iterable[Trial]) -> None:
        """Takes all trials or none.

        Raises: InvalidInputError for a configuration from elsewhere, and when done without a finite objective.
        """
        checked = {trial.trial_id or self.space.key(trial.configuration): self._checked(trial) for trial in trials}
        self._trials.update(checked)

    @property
    def taken(self) -> frozenset[str]:
        """Keys of the configurations that are measured or pending; a released one may be suggested again."""
        held = (trial for trial in self._trials.values() if trial.state is not TrialState.RELEASED)
        return frozenset(self.space.key(trial.configuration) for trial in held)

    @property
    def done(self) -> tuple[list[Configuration], list[float]]:
        """Configurations and objectives of the complete trials."""
        done = [trial for trial in self._trials.values() if trial.state is TrialState.DONE]
        return [trial.configuration for trial in done], [_objective(trial) for trial in done]

    @property
    def pruned(self) -> list[Configuration]:
        """Configurations that were stopped early."""
        return [trial.configuration for trial in self._trials.values() if trial.state is TrialState.PRUNED]

    @property
    def pending(self) -> list[Configuration]:
        """Configurations that someone is measuring."""
        return [trial.configuration for trial in self._trials.values() if trial.state in PENDING]

    @property
    def invalid(self) -> list[Configuration]:
        """Configurations that failed or cannot run."""
        return [trial.configuration for trial in self._trials.values() if trial.state in INVALID]

    def free(self, configurations: Sequence[Configuration]) -> list[Configuration]:
        """Those that are neither measured nor pending."""
        taken = self.taken
        return [configuration for configuration in configurations if self.space.key(configuration) not in taken]

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

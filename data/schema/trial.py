"""Configurations, trials and studies: the words of the tuner."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

TRIALS_MAX = 5_000  # of a study; the tuner answers within seconds up to there, and others wait for it

Parameter = int | float | str | bool
Configuration = Mapping[str, Parameter]


class TrialState(StrEnum):
    """The state of a trial."""

    WAITING = "waiting"
    LEASED = "leased"
    RELEASED = "released"
    DONE = "done"
    PRUNED = "pruned"
    INFEASIBLE = "infeasible"
    FAILED = "failed"


ENDED = frozenset({TrialState.DONE, TrialState.PRUNED, TrialState.INFEASIBLE, TrialState.FAILED})


@dataclass(frozen=True)
class Trial:
    """One configuration, evaluated or being evaluated; `objective` is lower-is-better, None unless done."""

    configuration: Configuration
    state: TrialState = TrialState.WAITING
    objective: float | None = None
    trial_id: str = ""


@dataclass(frozen=True)
class Study:
    """One search over a space: its name, the space as JSON values, the objective and its unit.

    `trials_max` is the budget: so many trials are begun at most, None for no limit. `details` are what else was
    written down about the search, as JSON values, for those who know these words.
    """

    study_id: str
    name: str
    space: Mapping[str, object]
    objective: str
    unit: str
    seed: int
    created_ns: int
    trials_max: int | None = None
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class TrialRecord:
    """A trial with its lease: the owner may evaluate it until `lease_expires_ns` on the server's clock.

    Once the lease has ended, `owner` is who held it last and `lease_expires_ns` is None. `job` is the batch job of the
    owner, `checkpoint` where the work of the one before can be resumed, `outcomes` what else was measured,
    by name, `losses` how often a lease ran out without a word.
    """

    trial: Trial
    study_id: str
    owner: str | None = None
    lease_expires_ns: int | None = None
    run_id: str | None = None
    reason: str | None = None
    job: str | None = None
    checkpoint: str | None = None
    outcomes: Mapping[str, float] = field(default_factory=dict)
    losses: int = 0

    @property
    def trial_id(self) -> str:
        """The trial's id."""
        return self.trial.trial_id


@dataclass(frozen=True)
class History:
    """A search that another tool made: the study, and its trials in the order in which they were evaluated."""

    study: Study
    trials: tuple[Trial, ...]

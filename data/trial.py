"""Configurations, trials and studies: the words of the tuner."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Parameter = int | float | str | bool
Configuration = Mapping[str, Parameter]


class TrialState(StrEnum):
    """Where a trial stands."""

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
class History:
    """A search that another tool made: the study, and its trials in the order in which they were evaluated."""

    study: Study
    trials: tuple[Trial, ...]

"""Trials as every desk tells of them; nothing heavy is imported for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from crosswind.data.trial import Study, Trial, TrialState


@dataclass(frozen=True)
class Holder:
    """Who wants to evaluate trials, for how many seconds without a heartbeat, and as part of which batch job."""

    owner: str
    seconds: float
    job: str | None = None


@dataclass(frozen=True)
class Told:
    """A trial and its lease, as a desk tells of it."""

    trial: Trial
    study_id: str
    owner: str | None = None
    lease_expires_ns: int | None = None
    run_id: str | None = None
    reason: str | None = None
    job: str | None = None
    checkpoint: str | None = None
    outcomes: Mapping[str, float] = field(default_factory=dict)

    @property
    def trial_id(self) -> str:
        """The trial's id."""
        return self.trial.trial_id


@dataclass(frozen=True)
class Overview:
    """How far a study is: its trials by state, and the best one so far."""

    study: Study
    counts: Mapping[TrialState, int]
    best: Told | None


class Asked(Protocol):
    """What hands out trials and takes their outcomes: a server, a store, or a shared folder.

    Every method raises NotFoundError for studies and trials that are not there, ConflictError when somebody else holds
    the trial or it has ended, InvalidInputError for values that cannot be, UnavailableError when nobody answers.
    """

    def create(self, study: Study) -> Study:
        """Stores a new study."""
        ...

    def suggest(self, study: str, count: int, holder: Holder) -> list[Told]:
        """Up to `count` trials; none once the budget or the space is used up."""
        ...

    def heartbeat(self, study: str, trial_id: str, holder: Holder) -> Told:
        """Lets the lease run anew from now."""
        ...

    def release(self, study: str, trial_id: str, *, owner: str | None = None, checkpoint: str | None = None) -> Told:
        """Gives a trial back unmeasured."""
        ...

    def complete(  # noqa: PLR0913 - what is measured, by whom, in which run
        self,
        study: str,
        trial_id: str,
        objective: float,
        *,
        owner: str | None = None,
        run_id: str | None = None,
        outcomes: Mapping[str, float] | None = None,
    ) -> Told:
        """Takes what was measured; the same value again changes nothing."""
        ...

    def fail(
        self, study: str, trial_id: str, reason: str, *, state: TrialState = TrialState.FAILED, owner: str | None = None
    ) -> Told:
        """Ends a trial without an objective."""
        ...

    def trial(self, study: str, trial_id: str) -> Told:
        """One trial."""
        ...

    def trials(self, study: str) -> list[Told]:
        """The study's trials, oldest first."""
        ...

    def standing(self, study: str) -> Overview:
        """How far the study is."""
        ...

"""The protocol of every service that hands out the trials of studies under leases, wherever it keeps them."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.trial import TRIALS_MAX, Study, Trial, TrialRecord, TrialState

COUNT_MAX = 100
LEASE_SECONDS_MAX = 30 * 24 * 3600.0
FREE = frozenset({TrialState.WAITING, TrialState.RELEASED})
HELD = frozenset({TrialState.LEASED})
OPEN = HELD | FREE
NANOSECONDS = 1_000_000_000


@dataclass(frozen=True)
class Limits:
    """Bounds of every study: trials, and leases of one trial that run out without a word until it has failed."""

    trials: int = TRIALS_MAX
    losses: int = 5


LIMITS = Limits()


@dataclass(frozen=True)
class Lease:
    """The owner who wants to evaluate trials, and for how long the right to do so holds without a heartbeat.

    `job` names the batch job, with the array task and whatever else tells apart those who ask side by side. The same
    job that asks again has lost its memory, not its trial: it gets the one back that it holds or gave back.
    """

    owner: str
    seconds: float
    job: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.owner) <= 200:
            raise InvalidInputError(f"owner {self.owner[:40]!r}: expected 1 to 200 characters")
        if self.job is not None and not 1 <= len(self.job) <= 200:
            raise InvalidInputError(f"job {self.job[:40]!r}: expected 1 to 200 characters")
        if not 0 < self.seconds <= LEASE_SECONDS_MAX:
            raise InvalidInputError(
                f"lease_seconds is {self.seconds}, expected a positive number up to {LEASE_SECONDS_MAX}"
            )

    @property
    def nanoseconds(self) -> int:
        """The nanoseconds for which it holds."""
        return round(self.seconds * NANOSECONDS)


Suggest: TypeAlias = Callable[[str, int, Lease], list[TrialRecord]]  # of a study, as a service does


@dataclass(frozen=True)
class StudyStatus:
    """The progress of a study: its trials by state, and the best so far.

    `front` are the complete trials that keep the limits and that no other beats in every objective, by the first
    objective; with one objective it is the best alone. `outside` exceed a limit; of `unjudged` the outcomes do not
    tell. `ends_ns` is when the study's hours are over, `is_over` whether they are and no lease still runs.
    """

    study: Study
    counts: Mapping[TrialState, int]
    front: tuple[TrialRecord, ...] = ()
    outside: int = 0
    unjudged: int = 0
    ends_ns: int | None = None
    is_over: bool = False

    @property
    def best(self) -> TrialRecord | None:
        """The trial of the smallest (first) objective within the limits, the earliest of equals; None without one."""
        return self.front[0] if self.front else None

    @property
    def is_exhausted(self) -> bool:
        """Return whether the budget is spent: every trial that it allows has ended, or its hours are over."""
        budget, is_open = self.study.trials_max, any(self.counts.get(state, 0) for state in OPEN)
        return self.is_over or (budget is not None and sum(self.counts.values()) >= budget and not is_open)


class DeadJobs(Protocol):
    """A look-up of the batch jobs, among some, that are known to have ended for good; in doubt, none."""

    def __call__(self, jobs: Collection[str]) -> Collection[str]:
        """Those of the jobs that will never tell anything again."""
        ...


def nobody(jobs: Collection[str]) -> Collection[str]:  # noqa: ARG001 - what a service asks that knows of no batch system
    """No job is known to be dead."""
    return ()


class StudyService(Protocol):
    """Hands out the trials of studies and takes their outcomes; a study is named by its id or its name."""

    def create(self, study: Study, *, request: RequestKey | None = None) -> Study:
        """Stores a new study; the same request again gets the study that it made before.

        Raises: InvalidInputError for a space or budget that is none, ConflictError when the name is taken.
        """
        ...

    def suggest(self, study: str, count: int, lease: Lease, *, request: RequestKey | None = None) -> list[TrialRecord]:
        """Up to `count` trials for the lease's owner; fewer, or none, where the space or the budget has no more.

        The trials of the lease's own job come first, then those given back and those whose lease ran out or whose job
        died, then new ones. The same request again gets the same trials, as they now stand. Raises: NotFoundError,
        InvalidInputError.
        """
        ...

    def heartbeat(self, study: str, trial_id: str, lease: Lease) -> TrialRecord:
        """Lets the lease run anew from now. Raises: NotFoundError, ConflictError when the owner does not hold it."""
        ...

    def release(
        self, study: str, trial_id: str, *, owner: str | None = None, checkpoint: str | None = None
    ) -> TrialRecord:
        """Gives a trial back unmeasured; the next who asks gets it, with the checkpoint to go on from.

        Raises: NotFoundError, ConflictError.
        """
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
    ) -> TrialRecord:
        """Takes the measured objective, lower is better, and what else was measured; the same again changes nothing.

        Raises: NotFoundError; InvalidInputError for a number that is not finite; ConflictError when another value is
        stored, the trial ended otherwise, or another owner holds it.
        """
        ...

    def fail(
        self, study: str, trial_id: str, reason: str, *, state: TrialState = TrialState.FAILED, owner: str | None = None
    ) -> TrialRecord:
        """Ends a trial without an objective: failed, infeasible or pruned; the same state again changes nothing.

        Raises: NotFoundError; InvalidInputError for another state; ConflictError when the trial ended otherwise, or
        another owner holds it.
        """
        ...

    def trials(self, study: str) -> list[TrialRecord]:
        """The study's trials, oldest first. Raises: NotFoundError."""
        ...

    def trial(self, study: str, trial_id: str) -> TrialRecord:
        """One trial. Raises: NotFoundError."""
        ...

    def status(self, study: str) -> StudyStatus:
        """Return how far the study is. Raises: NotFoundError."""
        ...

    def best(self, study: str) -> Trial | None:
        """The complete trial of the smallest (first) objective within the limits; None before the first one.

        Raises: NotFoundError.
        """
        ...

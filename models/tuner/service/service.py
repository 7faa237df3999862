"""The protocol of every service that leases the trials of studies, wherever it keeps them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from crosswind.data.schema.answers.studies import StudySources
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.report import Report
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.trial import TRIALS_MAX, Configuration, Study, Trial, TrialRecord, TrialState

COUNT_MAX = 100
LEASE_SECONDS_MAX = 30 * 24 * 3600.0
FREE = frozenset({TrialState.WAITING, TrialState.RELEASED})
HELD = frozenset({TrialState.LEASED})
OPEN = HELD | FREE
NANOSECONDS = 1_000_000_000


@dataclass(frozen=True)
class Limits:
    """Bounds of every study.

    Args:
        trials: Of a study without a budget.
        losses: Leases of one trial that run out without a word until it has failed.
    """

    trials: int = TRIALS_MAX
    losses: int = 5


LIMITS = Limits()


@dataclass(frozen=True)
class Lease:
    """The right to evaluate trials that an owner requests.

    Args:
        owner: Who evaluates them.
        seconds: For how long the right holds without a heartbeat.
        job: The batch job, with the array task and whatever else tells apart processes of it that request trials at the
            same time. A job that requests again has lost its memory, not its trial: it gets that one back.

    Raises:
        InvalidInputError: For a name or a time out of bounds.
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


Suggest: TypeAlias = Callable[[str, int, Lease], list[TrialRecord]]  # `StudyService.suggest`


@dataclass(frozen=True)
class StudyStatus:
    """The progress of a study: its trials by state, and the best so far.

    Args:
        study: The study.
        counts: Trials by state.
        front: Complete trials within the limits that no other beats in every objective, sorted by the first objective;
            with one objective the best alone.
        outside: Complete trials that exceed a limit.
        unjudged: Complete trials whose outcomes do not give every objective and limit.
        ends_ns: When the study's hours are over, None without any.
        is_over: Whether they are over, or it was stopped, and no lease still runs.
        sources: What its search learns from, with the weights at the newest suggestion.
        uncharged: Trials that do not count for the budget.
        enough: Why no more trials are begun of a study that stops by itself; empty while they are.
    """

    study: Study
    counts: Mapping[TrialState, int]
    front: tuple[TrialRecord, ...] = ()
    outside: int = 0
    unjudged: int = 0
    ends_ns: int | None = None
    is_over: bool = False
    sources: StudySources = field(default_factory=StudySources)
    uncharged: int = 0
    enough: str = ""

    @property
    def charged(self) -> int:
        """The number of trials that count for the budget."""
        return sum(self.counts.values()) - self.uncharged

    @property
    def best(self) -> TrialRecord | None:
        """The trial of the smallest (first) objective within the limits, the earliest of equals; None without one."""
        return self.front[0] if self.front else None

    @property
    def is_exhausted(self) -> bool:
        """Return whether the budget is spent: every trial that it allows has ended, or its hours are over.

        A study that was stopped is exhausted, too, and one that stops by itself once it has found enough.
        """
        budget, is_open = self.study.trials_max, any(self.counts.get(state, 0) for state in OPEN)
        is_spent = budget is not None and self.charged >= budget
        return self.is_over or ((is_spent or self.enough != "") and not is_open)


class DeadJobs(Protocol):
    """A look-up of the batch jobs, among some, that have ended for good; in doubt, none."""

    def __call__(self, jobs: Collection[str]) -> Collection[str]:
        """Return those of the jobs that will never report again."""
        ...


def no_dead_jobs(jobs: Collection[str]) -> Collection[str]:  # noqa: ARG001 - where no batch system can be asked
    """Return no job."""
    return ()


class StudyService(Protocol):
    """Leases the trials of studies and stores their outcomes; a study is named by its id or its name.

    Example:
        >>> study = service.create(Study("s1", "threads", space, "step_p50_seconds", "s", seed=0, created_ns=0))
        >>> [record] = service.suggest("threads", 1, Lease("alice", seconds=3600))
        >>> service.heartbeat("threads", record.trial_id, Lease("alice", seconds=3600))
        >>> service.complete("threads", record.trial_id, objective=0.25, owner="alice")
        >>> service.best("threads").configuration
    """

    def create(self, study: Study, *, request: RequestKey | None = None) -> Study:
        """Store a new study; the same request again gets the study that it made before.

        The configurations of its `start` wait in it for an owner. Raises: InvalidInputError for a space, budget or
        start that is none and for a source that is not there, ConflictError when the name is taken.
        """
        ...

    def extend(
        self, study: str, *, trials: int | None = None, hours: float | None = None, request: RequestKey | None = None
    ) -> Study:
        """Add trials to the budget, and hours from now on or from the end of the present ones, whichever is later.

        The same request again adds nothing. Raises: NotFoundError; InvalidInputError for a number out of bounds, and
        where the study has no such budget.
        """
        ...

    def pause(self, study: str, *, request: RequestKey | None = None) -> Study:
        """Hand out no trial until the study goes on; leases run on, and results are taken.

        Whoever asks for a trial gets a PausedError. A study that is paused stays so. Raises: NotFoundError,
        ForbiddenError for another user's study; ConflictError for one that was stopped.
        """
        ...

    def resume(self, study: str, *, request: RequestKey | None = None) -> Study:
        """Hand out trials again after a pause or a stop. Raises: NotFoundError, ForbiddenError."""
        ...

    def stop(self, study: str, *, request: RequestKey | None = None) -> Study:
        """End the study: whoever asks gets no trial, as if the budget were spent; leases run on, results are taken.

        Raises: NotFoundError, ForbiddenError.
        """
        ...

    def rename(self, study: str, name: str, *, force: bool = False, request: RequestKey | None = None) -> Study:
        """Give the study another name; its id stays.

        Raises: NotFoundError, InvalidInputError; ConflictError when the name is taken, or while trials are leased
        unless by `force`.
        """
        ...

    def delete(self, study: str, *, force: bool = False, request: RequestKey | None = None) -> None:
        """Remove the study with its trials; stored runs stay.

        Raises: NotFoundError; ConflictError while trials are leased, unless by `force`.
        """
        ...

    def enqueue(
        self, study: str, configurations: Sequence[Configuration], *, request: RequestKey | None = None
    ) -> list[TrialRecord]:
        """Store trials of these configurations that wait for an owner, who gets them before anything new.

        A configuration that waits already is not stored a second time. The same request again gets the same trials.
        Raises: NotFoundError; InvalidInputError for a configuration outside of the space; ConflictError where budget
        or hours are used up, or the study was stopped.
        """
        ...

    def retry(self, study: str, trial_id: str, *, request: RequestKey | None = None) -> TrialRecord:
        """Enqueue the configuration of a trial that ended without an objective, as a new trial.

        Raises: NotFoundError; ConflictError for a trial that is open or done, and as `enqueue`.
        """
        ...

    def studies(self) -> list[StudyStatus]:
        """Return how far every study is, the newest first."""
        ...

    def suggest(self, study: str, count: int, lease: Lease, *, request: RequestKey | None = None) -> list[TrialRecord]:
        """Return up to `count` trials for the lease's owner; fewer, or none, where space or budget has no more.

        The trials of the lease's own job come first, then those given back and those whose lease ran out or whose job
        died, then new ones. The same request again gets the same trials in their present state. A study that was
        stopped has none. Raises: NotFoundError, InvalidInputError; PausedError while the study is paused.
        """
        ...

    def heartbeat(self, study: str, trial_id: str, lease: Lease) -> TrialRecord:
        """Renew the lease from now. Raises: NotFoundError, ConflictError when the owner does not hold it."""
        ...

    def release(
        self, study: str, trial_id: str, *, owner: str | None = None, checkpoint: str | None = None
    ) -> TrialRecord:
        """Give a trial back unmeasured; the next owner gets it, with the checkpoint to go on from.

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
        """Store the measured objective, lower is better, and what else was measured; repeating it changes nothing.

        Outcomes named `context.NAME` are the trial's context.
        Raises: NotFoundError; InvalidInputError for a number that is not finite; ConflictError when another value is
        stored, the trial ended otherwise, or another owner holds it.
        """
        ...

    def fail(  # noqa: PLR0913 - who ends it, how and why
        self,
        study: str,
        trial_id: str,
        reason: str,
        *,
        state: TrialState = TrialState.FAILED,
        owner: str | None = None,
        charged: bool = True,
    ) -> TrialRecord:
        """End a trial without an objective: failed, infeasible or pruned; repeating it changes nothing.

        The trial's context may stand behind the reason (see `reason_with`). Not `charged`, the reason is not in the
        configuration: the trial does not count for the budget, and the search learns nothing of it.
        Raises: NotFoundError; InvalidInputError for another state; ConflictError when the trial ended otherwise, or
        another owner holds it.
        """
        ...

    def define(
        self,
        study: str,
        trial_id: str,
        configuration: Configuration,
        parameters: Mapping[str, Mapping[str, object]],
        *,
        owner: str | None = None,
    ) -> TrialRecord:
        """Store the values that a trial's program asked for, and add their parameters to a study that grows.

        Again it changes nothing. Raises: NotFoundError; InvalidInputError for a study of a fixed space, a parameter
        that it has with other values, and a value that the parameters do not have; ConflictError where the trial has
        ended with another configuration, or another owner holds it.
        """
        ...

    def report(self, study: str, trial_id: str, reports: Sequence[Report], *, owner: str | None = None) -> str:
        """Store intermediate values of a leased trial; return in words why it should stop, empty to go on.

        A report of the same step again replaces the one before. The study's rule decides, see `study/stop_rules`.
        Raises: NotFoundError; InvalidInputError for none, or too many; ConflictError when the owner does not hold it.
        """
        ...

    def reports(self, study: str) -> dict[str, list[Report]]:
        """Return what each trial has reported, by its id, in the order of the steps. Raises: NotFoundError."""
        ...

    def trials(self, study: str) -> list[TrialRecord]:
        """Return the study's trials, oldest first. Raises: NotFoundError."""
        ...

    def trial(self, study: str, trial_id: str) -> TrialRecord:
        """Return one trial. Raises: NotFoundError."""
        ...

    def status(self, study: str) -> StudyStatus:
        """Return how far the study is. Raises: NotFoundError."""
        ...

    def best(self, study: str) -> Trial | None:
        """Return the complete trial of the smallest (first) objective within the limits; None before the first one.

        Raises: NotFoundError.
        """
        ...

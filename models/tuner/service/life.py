"""Rules of a study's life: more budget, another name, and trials that people add; the same at every service.

Nothing is stored here.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from crosswind.data.schema.errors import ConflictError, InvalidInputError, PausedError
from crosswind.data.schema.trial import (
    ENDED,
    HOUR_NS,
    TRIALS_MAX,
    Configuration,
    Study,
    StudyState,
    Trial,
    TrialRecord,
    TrialState,
)
from crosswind.models.tuner.service.service import COUNT_MAX, HELD
from crosswind.models.tuner.study.start import check_in

AGAIN = ENDED - {TrialState.DONE}


@dataclass(frozen=True)
class Begun:
    """The numbers of a study's trials: all, and those that count for its budget."""

    trials: int
    charged: int

    @classmethod
    def of(cls, records: Sequence[TrialRecord]) -> "Begun":
        """Return the numbers of these trials."""
        return cls(len(records), sum(record.charged for record in records))

    def remaining(self, study: Study, count: int, trials_max: int = TRIALS_MAX) -> int:
        """Return how many of `count` new trials the budget allows.

        Raises: InvalidInputError when a study without a budget is as large as any may be.
        """
        if study.trials_max is not None:
            return max(min(count, study.trials_max - self.charged), 0)
        if self.trials + count > trials_max:
            raise InvalidInputError(f"study {study.name!r} has {self.trials} trials, expected at most {trials_max}")
        return count


def waiting(study_id: str, trial_id: str, configuration: Configuration) -> TrialRecord:
    """Return a new trial that waits for an owner."""
    return TrialRecord(Trial(dict(configuration), TrialState.WAITING, trial_id=trial_id), study_id)


def queued(
    study: Study,
    records: Sequence[TrialRecord],
    configurations: Sequence[Configuration],
    *,
    now_ns: int,
    made: Collection[str] = (),
) -> list[TrialRecord | None]:
    """Return for each configuration the trial that waits for an owner already; None where there has to be a new one.

    `made` are the ids of trials that the same request made before, whatever has become of them.
    Raises: InvalidInputError for a configuration from elsewhere or one that stands twice, ConflictError where budget or
    hours are used up, or the study was stopped.
    """
    if not 1 <= len(configurations) <= COUNT_MAX:
        raise InvalidInputError(f"there are {len(configurations)} configurations, expected 1 to {COUNT_MAX}")
    from crosswind.models.tuner.space.space import Space  # noqa: PLC0415 - NumPy, which no other rule needs

    space, first_places = Space.from_json(study.space), dict[str, int]()
    for place, configuration in enumerate(configurations, 1):
        check_in(space, configuration, f"configuration {place}" if len(configurations) > 1 else "configuration")
        first = first_places.setdefault(space.key(configuration), place)
        if first != place:
            raise InvalidInputError(f"configuration {place} repeats configuration {first}, expected it once")
    if study.state is StudyState.STOPPED:
        raise ConflictError(f"study {study.name!r} is stopped: resume it first")
    if study.is_over(now_ns):
        raise ConflictError(f"study {study.name!r}: its hours are over: extend it first")
    by_key = {
        space.key(record.trial.configuration): record
        for record in reversed(records)
        if record.trial.state is TrialState.WAITING or record.trial_id in made
    }
    places = [by_key.get(space.key(configuration)) for configuration in configurations]
    n_new = places.count(None)
    allowed = Begun.of(records).remaining(study, n_new)
    if allowed < n_new:
        raise ConflictError(
            f"study {study.name!r} has a budget of {study.trials_max} trials, of which {allowed} are left, "
            f"expected {n_new}: extend it first"
        )
    return places


def in_state(study: Study, state: StudyState) -> Study:
    """Return the study in another state. Raises: ConflictError for a pause of one that was stopped."""
    if (study.state, state) == (StudyState.STOPPED, StudyState.PAUSED):
        raise ConflictError(f"study {study.name!r} is stopped, expected running: resume it first")
    return replace(study, state=state)


def hands_out(study: Study, now_ns: int) -> bool:
    """Return whether the study hands out trials; not once it was stopped or its hours are over.

    Raises: PausedError while it is paused.
    """
    if study.state is StudyState.PAUSED:
        raise PausedError(f"study {study.name!r} is paused: it hands out no trial until somebody resumes it")
    return study.state is StudyState.RUNNING and not study.is_over(now_ns)


def expect_again(record: TrialRecord) -> Configuration:
    """Return the configuration of a trial that ended without an objective. Raises: ConflictError for any other."""
    if record.trial.state not in AGAIN:
        expected = " or ".join(sorted(AGAIN))
        raise ConflictError(f"trial {record.trial_id} is {record.trial.state}, expected {expected}")
    return record.trial.configuration


def extended(study: Study, *, trials: int | None, hours: float | None, now_ns: int) -> Study:
    """Return the study with so many more trials, and hours from now on or from their end, whichever is later.

    Raises: InvalidInputError for a number out of bounds, and where there is no such budget to extend.
    """
    if trials is None and hours is None:
        raise InvalidInputError("expected trials or hours to extend the study by")
    changed = study
    if trials is not None:
        if study.trials_max is None:
            raise InvalidInputError(f"study {study.name!r} has no budget of trials, expected none to add")
        if not 1 <= trials <= TRIALS_MAX - study.trials_max:
            most = TRIALS_MAX - study.trials_max
            raise InvalidInputError(f"trials is {trials}, expected 1 to {most} more than {study.trials_max}")
        changed = replace(changed, trials_max=study.trials_max + trials)
    if hours is not None:
        if study.ends_ns is None:
            raise InvalidInputError(f"study {study.name!r} has no budget of hours, expected none to add")
        if not hours > 0:
            raise InvalidInputError(f"hours is {hours}, expected a number above 0")
        begun = (max(study.ends_ns, now_ns) - study.created_ns) / HOUR_NS
        changed = replace(changed, hours=begun + hours)
    return changed


def expect_no_lease(study: Study, records: Sequence[TrialRecord], now_ns: int) -> None:
    """Refuse while trials are being evaluated. Raises: ConflictError."""
    n_running = sum(record.trial.state in HELD and (record.lease_expires_ns or 0) >= now_ns for record in records)
    if n_running:
        verb = "trial is" if n_running == 1 else "trials are"
        raise ConflictError(
            f"study {study.name!r}: {n_running} {verb} being evaluated, expected none: wait for their end, or force it"
        )

"""Rules of what may become of a trial, and of a study's budget: the same at every service.

Each function gets a trial as it stands and returns it as it would stand after; one that changes nothing returns what it
got. Nothing is stored here.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from crosswind.data.schema.errors import ConflictError, InvalidInputError
from crosswind.data.schema.trial import ENDED, TRIALS_MAX, Study, TrialRecord, TrialState
from crosswind.models.tuner.service.service import COUNT_MAX, FREE, HELD, OPEN, Lease, StudyStatus
from crosswind.models.tuner.space.space import Space
from crosswind.models.tuner.study.aim import Aim

NAME_MAX = 200  # characters of a study's or an outcome's name
TEXT_MAX = 4_000  # characters of a checkpoint's path
OUTCOMES_MAX = 1_000


def check_study(study: Study) -> None:
    """Refuses a study that cannot be tuned. Raises: InvalidInputError with field, value and expectation."""
    if not 1 <= len(study.name) <= NAME_MAX:
        raise InvalidInputError(f"study name {study.name[:40]!r}: expected 1 to {NAME_MAX} characters")
    budget = study.trials_max
    if budget is not None and not 1 <= budget <= TRIALS_MAX:
        raise InvalidInputError(f"trials_max is {budget}, expected 1 to {TRIALS_MAX}")
    Space.from_json(study.space)
    Aim.of(study)


def check_count(count: int) -> None:
    """Refuses an impossible number of trials at once. Raises: InvalidInputError."""
    if not 1 <= count <= COUNT_MAX:
        raise InvalidInputError(f"count is {count}, expected 1 to {COUNT_MAX}")


def room(study: Study, n_trials: int, count: int, trials_max: int = TRIALS_MAX) -> int:
    """Return how many of `count` new trials the budget still allows beside the `n_trials` that there are.

    Raises: InvalidInputError when a study without a budget is as large as any may be.
    """
    if study.trials_max is not None:
        return max(min(count, study.trials_max - n_trials), 0)
    if n_trials + count > trials_max:
        raise InvalidInputError(f"study {study.name!r} has {n_trials} trials, expected at most {trials_max}")
    return count


def is_over(study: Study, now_ns: int) -> bool:
    """Return whether the study's hours are over: nothing is handed out any more."""
    return Aim.of(study).is_over(now_ns)


def to_hand_out(
    records: Sequence[TrialRecord], lease: Lease, now_ns: int, dead: Collection[str] = ()
) -> list[TrialRecord]:
    """The trials that this lease may get again: those of its own job, then the free and the lost ones, oldest first."""
    own = [
        record for record in records if lease.job is not None and record.job == lease.job and record.trial.state in OPEN
    ]
    free = [
        record
        for record in records
        if record not in own and (record.trial.state in FREE or _is_lost(record, now_ns, dead))
    ]
    return [*own, *free]


def _is_lost(record: TrialRecord, now_ns: int, dead: Collection[str]) -> bool:
    if record.trial.state not in HELD:
        return False
    return record.job in dead or (record.lease_expires_ns or 0) < now_ns


def leased(record: TrialRecord, lease: Lease, expires_ns: int, losses_max: int) -> TrialRecord:
    """The trial in new hands; failed where its holders vanished without a word too often."""
    losses = record.losses + (record.trial.state in HELD)
    if losses >= losses_max:
        reason = f"{losses} leases ran out without a word, the last one of {record.owner}"
        return replace(_moved(record, TrialState.FAILED), reason=reason, losses=losses)
    held = _moved(record, TrialState.LEASED)
    return replace(held, owner=lease.owner, job=lease.job, lease_expires_ns=expires_ns, losses=losses)


def beaten(record: TrialRecord, lease: Lease, expires_ns: int) -> TrialRecord:
    """The trial with its lease run anew. Raises: ConflictError when the owner does not hold it."""
    _expect_owner(record, lease.owner)
    _expect(record, HELD)
    return replace(record, lease_expires_ns=expires_ns)


def released(record: TrialRecord, *, owner: str | None, checkpoint: str | None) -> TrialRecord:
    """The trial given back; a checkpoint replaces the one before. Raises: ConflictError, InvalidInputError."""
    if checkpoint is not None and not 1 <= len(checkpoint) <= TEXT_MAX:
        raise InvalidInputError(f"checkpoint {checkpoint[:40]!r}: expected 1 to {TEXT_MAX} characters")
    _expect_owner(record, owner)
    _expect(record, OPEN)
    return replace(_moved(record, TrialState.RELEASED), checkpoint=checkpoint or record.checkpoint)


def completed(
    record: TrialRecord,
    objective: float,
    *,
    owner: str | None,
    run_id: str | None,
    outcomes: Mapping[str, float] | None,
) -> TrialRecord:
    """The trial done. Raises: InvalidInputError, ConflictError."""
    _check_numbers(objective, outcomes or {})
    _expect_owner(record, owner)
    if record.trial.state is TrialState.DONE:
        _expect_same(record, objective, outcomes)
        return record
    _expect(record, OPEN | {TrialState.DONE})
    done = _moved(record, TrialState.DONE)
    return replace(
        done, trial=replace(done.trial, objective=float(objective)), run_id=run_id, outcomes=dict(outcomes or {})
    )


def failed(record: TrialRecord, reason: str, *, state: TrialState, owner: str | None) -> TrialRecord:
    """The trial over without an objective. Raises: InvalidInputError, ConflictError."""
    endings = ENDED - {TrialState.DONE}
    if state not in endings:
        raise InvalidInputError(f"state is {state}, expected {_names(endings)}")
    _expect_owner(record, owner)
    if record.trial.state is state:
        return record
    _expect(record, OPEN | {state})
    return replace(_moved(record, state), reason=reason)


def status_of(study: Study, records: Sequence[TrialRecord], clock: Callable[[], int]) -> StudyStatus:
    """Return how far the study is with these trials; the clock is asked where the study has hours alone."""
    aim, counts = Aim.of(study), Counter(record.trial.state for record in records)
    ranked, is_over = aim.ranked(records), False
    if aim.ends_ns is not None:
        now_ns = clock()
        is_over = aim.is_over(now_ns) and all(
            record.trial.state not in HELD or _is_lost(record, now_ns, ()) for record in records
        )
    by_state = {state: counts[state] for state in TrialState}
    return StudyStatus(study, by_state, ranked.front, ranked.outside, ranked.unjudged, aim.ends_ns, is_over)


def _moved(record: TrialRecord, state: TrialState) -> TrialRecord:
    return replace(record, trial=replace(record.trial, state=state), lease_expires_ns=None)


def _check_numbers(objective: float, outcomes: Mapping[str, float]) -> None:
    if not math.isfinite(objective):
        raise InvalidInputError(f"objective is {objective}, expected a finite number")
    if len(outcomes) > OUTCOMES_MAX:
        raise InvalidInputError(f"there are {len(outcomes)} outcomes, expected at most {OUTCOMES_MAX}")
    for name, value in outcomes.items():
        if not 1 <= len(name) <= NAME_MAX:
            raise InvalidInputError(f"outcome {name[:40]!r}: expected a name of 1 to {NAME_MAX} characters")
        if not math.isfinite(value):
            raise InvalidInputError(f"outcome {name} is {value}, expected a finite number")


def _expect_same(record: TrialRecord, objective: float, outcomes: Mapping[str, float] | None) -> None:
    stored, trial_id = record.trial.objective, record.trial.trial_id
    if stored != objective:
        raise ConflictError(
            f"trial {trial_id} is done with objective {stored}, expected that again, not {float(objective)}"
        )
    if outcomes is not None and dict(outcomes) != dict(record.outcomes):
        raise ConflictError(f"trial {trial_id} is done with outcomes {dict(record.outcomes)}, expected these again")


def _expect_owner(record: TrialRecord, owner: str | None) -> None:
    if record.trial.state is TrialState.LEASED and owner is not None and owner != record.owner:
        raise ConflictError(f"trial {record.trial.trial_id} is leased by {record.owner!r}, not by {owner!r}")


def _expect(record: TrialRecord, states: Collection[TrialState]) -> None:
    if record.trial.state not in states:
        raise ConflictError(f"trial {record.trial.trial_id} is {record.trial.state}, expected {_names(states)}")


def _names(states: Collection[TrialState]) -> str:
    return " or ".join(sorted(states))

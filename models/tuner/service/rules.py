"""Rules of what may become of a trial, and of a study's budget: the same at every service.

A function gets a trial's record and returns it as it is afterwards; one that changes nothing returns what it got.
Nothing is stored here.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from crosswind.data.schema.answers.studies import StudySources
from crosswind.data.schema.context import split_outcomes, split_reason
from crosswind.data.schema.errors import ConflictError, InvalidInputError
from crosswind.data.schema.report import BATCH_MAX, REPORTS_MAX, Report
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.trial import (
    ENDED,
    TRIALS_MAX,
    Configuration,
    Study,
    StudyState,
    Trial,
    TrialRecord,
    TrialState,
    sources_from_json,
)
from crosswind.models.tuner.search.tuner import OWN
from crosswind.models.tuner.service.service import COUNT_MAX, FREE, HELD, OPEN, DeadJobs, Lease, StudyStatus
from crosswind.models.tuner.study.aim import Aim
from crosswind.models.tuner.study.searches import check_search
from crosswind.models.tuner.study.start import check_start
from crosswind.models.tuner.study.stop_rules import rule_named

NAME_MAX = 200  # characters of a study's or an outcome's name
NOT_A_NAME = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")  # the last ones are of bytes that are no UTF-8
TEXT_MAX = 4_000  # characters of a checkpoint's path
OUTCOMES_MAX = 1_000
PARAMETERS_MAX = 200  # of a study that grows
NO_PARAMETERS: Mapping[str, object] = {"parameters": {}}  # the space of a study that is defined by its runs, at first
NEAR_MAX, NEAR = 3, 0.6  # names in a message, and how alike they are at least


@dataclass(frozen=True)
class SuggestRequest:
    """A request for `count` trials under a lease; the same `key` again gets the same trials.

    `dead` are batch jobs that have ended without a report. Raises: InvalidInputError for an impossible count.
    """

    count: int
    lease: Lease
    key: RequestKey | None = None
    dead: Collection[str] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.count <= COUNT_MAX:
            raise InvalidInputError(f"count is {self.count}, expected 1 to {COUNT_MAX}")


def check_name(name: str) -> None:
    """Refuse a study's new name that cannot be stored, shown or typed. Raises: InvalidInputError."""
    if not 1 <= len(name) <= NAME_MAX:
        raise InvalidInputError(f"study name {name[:40]!r}: expected 1 to {NAME_MAX} characters")
    if NOT_A_NAME.search(name):
        raise InvalidInputError(f"study name {name[:40]!r}: expected no line breaks, control characters or half ones")


def check_study(study: Study) -> None:
    """Refuse a study that cannot be tuned. Raises: InvalidInputError with field, value and expectation."""
    budget = study.trials_max
    if budget is not None and not 1 <= budget <= TRIALS_MAX:
        raise InvalidInputError(f"trials_max is {budget}, expected 1 to {TRIALS_MAX}")
    if "sources" in study.details:  # not as a study has them
        sources_from_json(study.details["sources"])
    from crosswind.models.tuner.space.space import Space  # noqa: PLC0415 - NumPy, which few rules need

    if not (study.define_by_run and study.space == NO_PARAMETERS):
        Space.from_json(study.space)
    Aim.of(study)
    rule_named(study.stop_early)
    check_search(study)
    if study.start:
        check_start(study)


def check_sources(study: Study, studies: Iterable[Study]) -> None:
    """Refuse a study that names a source which is none of the studies. Raises: InvalidInputError with near names."""
    present = {text: study.name for study in studies for text in (study.name, study.study_id)}
    for name in study.sources or ():
        if name not in present:
            near = get_close_matches(name, sorted(set(present.values())), NEAR_MAX, NEAR)
            words = f"near it are {', '.join(near)}" if near else f"others that are there: {len(set(present.values()))}"
            raise InvalidInputError(f"sources: there is no study {name[:60]!r}; {words}")


def jobs_that_died(records: Sequence[TrialRecord], dead_jobs: DeadJobs) -> Collection[str]:
    """Return the batch jobs that hold trials of these and will not report on them; may take time."""
    holders = {record.job for record in records if record.trial.state in HELD and record.job}
    return dead_jobs(holders) if holders else ()


def available(records: Sequence[TrialRecord], request: SuggestRequest, now_ns: int) -> list[TrialRecord]:
    """Return the trials that come before new ones: those of the request's own job, then free and lost ones.

    Both oldest first.
    """
    job = request.lease.job
    own = [record for record in records if job is not None and record.job == job and record.trial.state in OPEN]
    free = [
        record
        for record in records
        if record not in own and (record.trial.state in FREE or _is_lost(record, now_ns, request.dead))
    ]
    return [*own, *free]


def _is_lost(record: TrialRecord, now_ns: int, dead: Collection[str]) -> bool:
    if record.trial.state not in HELD:
        return False
    return record.job in dead or (record.lease_expires_ns or 0) < now_ns


def begun(
    study_id: str, trial_id: str, configuration: Configuration, *, lease: Lease, expires_ns: int | None = None
) -> TrialRecord:
    """Return a new trial under the lease."""
    trial = Trial(dict(configuration), TrialState.LEASED, trial_id=trial_id)
    return TrialRecord(trial, study_id, owner=lease.owner, lease_expires_ns=expires_ns, job=lease.job)


def leased(record: TrialRecord, lease: Lease, expires_ns: int, losses_max: int) -> TrialRecord:
    """Return the trial in new hands; failed where its holders vanished without a word too often."""
    losses = record.losses + (record.trial.state in HELD)
    if losses >= losses_max:
        reason = f"{losses} leases ran out without a word, the last one of {record.owner}"
        return replace(_in_state(record, TrialState.FAILED), reason=reason, losses=losses)
    held = _in_state(record, TrialState.LEASED)
    return replace(held, owner=lease.owner, job=lease.job, lease_expires_ns=expires_ns, losses=losses)


def renewed(record: TrialRecord, lease: Lease, expires_ns: int) -> TrialRecord:
    """Return the trial with its lease renewed. Raises: ConflictError when the owner does not hold it."""
    _expect_owner(record, lease.owner)
    _expect(record, HELD)
    return replace(record, lease_expires_ns=expires_ns)


def released(record: TrialRecord, *, owner: str | None, checkpoint: str | None) -> TrialRecord:
    """Return the trial given back; a checkpoint replaces the one before. Raises: ConflictError, InvalidInputError."""
    if checkpoint is not None and not 1 <= len(checkpoint) <= TEXT_MAX:
        raise InvalidInputError(f"checkpoint {checkpoint[:40]!r}: expected 1 to {TEXT_MAX} characters")
    _expect_owner(record, owner)
    _expect(record, OPEN)
    return replace(_in_state(record, TrialState.RELEASED), checkpoint=checkpoint or record.checkpoint)


def completed(
    record: TrialRecord,
    objective: float,
    *,
    owner: str | None,
    run_id: str | None,
    outcomes: Mapping[str, float] | None,
) -> TrialRecord:
    """Return the trial done; outcomes named `context.NAME` are its context.

    Raises: InvalidInputError, ConflictError.
    """
    _check_numbers(objective, outcomes or {})
    _expect_owner(record, owner)
    if record.trial.state is TrialState.DONE:
        _expect_same(record, objective, outcomes)
        return record
    _expect(record, OPEN | {TrialState.DONE})
    measured, context = split_outcomes(outcomes or {})
    trial = replace(record.trial, state=TrialState.DONE, objective=float(objective), context=context)
    return replace(record, trial=trial, lease_expires_ns=None, run_id=run_id, outcomes=measured)


def failed(
    record: TrialRecord, reason: str, *, state: TrialState, owner: str | None, charged: bool = True
) -> TrialRecord:
    """Return the trial over without an objective; its context may stand behind the reason.

    Not `charged`, it ended for a reason that says nothing about its configuration, and does not count for the budget.

    Raises: InvalidInputError, ConflictError.
    """
    endings = ENDED - {TrialState.DONE}
    if state not in endings:
        raise InvalidInputError(f"state is {state}, expected {_names(endings)}")
    _expect_owner(record, owner)
    if record.trial.state is state:
        return record
    _expect(record, OPEN | {state})
    text, context = split_reason(reason)
    ended = _in_state(record, state)
    return replace(ended, trial=replace(ended.trial, context=context), reason=text, charged=charged)


def status_of(
    study: Study,
    records: Sequence[TrialRecord],
    clock: Callable[[], int],
    sources: StudySources | None = None,
    *,
    looks_ahead: bool = True,
) -> StudyStatus:
    """Return how far the study is with these trials; the clock is read only where the study has hours or was stopped.

    Only where it `looks_ahead` the status says whether a study that stops by itself has found enough: a model tells.
    """
    counts, ranked, is_over = Counter(record.trial.state for record in records), Aim.of(study).ranked(records), False
    is_stopped = study.state is StudyState.STOPPED
    if study.ends_ns is not None or is_stopped:
        now_ns = clock()
        is_over = (is_stopped or study.is_over(now_ns)) and all(
            record.trial.state not in HELD or _is_lost(record, now_ns, ()) for record in records
        )
    by_state = {state: counts[state] for state in TrialState}
    weights = next((record.weights for record in reversed(records) if record.weights), {})
    return StudyStatus(
        study,
        by_state,
        ranked.front,
        ranked.outside,
        ranked.unjudged,
        study.ends_ns,
        is_over,
        sources=(sources or StudySources()).weighed(weights, OWN),
        uncharged=sum(not record.charged for record in records),
        enough=enough_words(study, records) if looks_ahead else "",
    )


def enough_words(study: Study, records: Sequence[TrialRecord]) -> str:
    """Return why no more trials are begun of a study that stops by itself; empty for any other, and while they are."""
    if study.stop is None or (study.define_by_run and study.space == NO_PARAMETERS):
        return ""
    if study.define_by_run:
        from crosswind.models.tuner.search.growing import settled_study  # noqa: PLC0415 - NumPy, see above

        study, records = settled_study(study, records)
    from crosswind.models.tuner.search.enough import prospect_of  # noqa: PLC0415 - a second, and seldom asked for

    prospect = prospect_of(study, records)
    return prospect.sentence if prospect and prospect.is_enough else ""


def check_reports(record: TrialRecord, reports: Sequence[Report], n_before: int, *, owner: str | None) -> None:
    """Refuse reports of a trial that had `n_before`. Raises: InvalidInputError; ConflictError unless it is leased."""
    if not 1 <= len(reports) <= BATCH_MAX:
        raise InvalidInputError(f"there are {len(reports)} reports, expected 1 to {BATCH_MAX}")
    if n_before + len(reports) > REPORTS_MAX:
        raise InvalidInputError(f"trial {record.trial_id} has {n_before} reports, expected at most {REPORTS_MAX}")
    _expect_owner(record, owner)
    _expect(record, HELD)


def grown(study: Study, parameters: Mapping[str, Mapping[str, object]]) -> Study:
    """Return the study with these parameters, too; the same where it has them.

    Raises: InvalidInputError where its space is fixed, a parameter is none or has other values there, or they are too
    many.
    """
    if not study.define_by_run:
        raise InvalidInputError(f"study {study.name!r} has a fixed space, expected one that is defined by its runs")
    there = study.space["parameters"]
    assert isinstance(there, Mapping)  # noqa: S101 - `check_study` has seen it
    for name, parameter in parameters.items():
        if name in there and there[name] != parameter:
            raise InvalidInputError(f"parameter {name} is {there[name]} in study {study.name!r}, not {parameter}")
    both = {**there, **parameters}
    if len(both) > PARAMETERS_MAX:
        raise InvalidInputError(f"study {study.name!r} has {len(both)} parameters, expected at most {PARAMETERS_MAX}")
    larger = replace(study, space={"parameters": both}) if len(both) > len(there) else study
    check_study(larger)
    return larger


def defined(record: TrialRecord, study: Study, configuration: Configuration, *, owner: str | None) -> TrialRecord:
    """Return the trial with the configuration that its program asked for.

    Raises: InvalidInputError for a value that the study's parameters do not have; ConflictError unless it is open.
    """
    from crosswind.models.tuner.space.space import Space  # noqa: PLC0415 - NumPy, which few rules need

    domains = Space.from_json(study.space).domains if configuration else {}
    for name, value in configuration.items():
        if name not in domains:
            raise InvalidInputError(f"parameter {name} is unknown, expected only {', '.join(domains)}")
        if not domains[name].contains(value):
            raise InvalidInputError(f"parameter {name} is {value!r}, expected {domains[name]}")
    _expect_owner(record, owner)
    if record.trial.configuration != configuration:
        _expect(record, OPEN)
    return replace(record, trial=replace(record.trial, configuration=dict(configuration)))


def _in_state(record: TrialRecord, state: TrialState) -> TrialRecord:
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
    stored, trial_id = record.trial.objective, record.trial_id
    if stored != objective:
        raise ConflictError(
            f"trial {trial_id} is done with objective {stored}, expected that again, not {float(objective)}"
        )
    all_stored = record.as_json()["outcomes"]
    if outcomes is not None and dict(outcomes) != all_stored:
        raise ConflictError(f"trial {trial_id} is done with outcomes {all_stored}, expected these again")


def _expect_owner(record: TrialRecord, owner: str | None) -> None:
    if record.trial.state is TrialState.LEASED and owner is not None and owner != record.owner:
        raise ConflictError(f"trial {record.trial_id} is leased by {record.owner!r}, not by {owner!r}")


def _expect(record: TrialRecord, states: Collection[TrialState]) -> None:
    if record.trial.state not in states:
        raise ConflictError(f"trial {record.trial_id} is {record.trial.state}, expected {_names(states)}")


def _names(states: Collection[TrialState]) -> str:
    return " or ".join(sorted(states))

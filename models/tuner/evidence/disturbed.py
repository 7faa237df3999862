"""The verdict whether a known external cause disturbed a trial's run: then it is repeated, not believed.

Where the configuration ran often enough, its explanation tells. A configuration tried once has no cohort: then its run
is held against the study's other runs, which tells less, and the sentence says so.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from crosswind.data.schema.answers.explanations import Explanation, Verdict
from crosswind.data.schema.answers.studies import Disturbance, DisturbanceBasis, LostTime
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import Run
from crosswind.data.schema.trial import Study, TrialRecord
from crosswind.data.schema.words import words
from crosswind.data.store.store import Store
from crosswind.models.explain.cohort.read import read_segments
from crosswind.models.explain.cohort.step_rows import ranks_of, spans_of
from crosswind.models.explain.explain import FEWEST_SEGMENTS, explain_runs
from crosswind.models.tuner.evidence.beside_others import Seen, lost_beside
from crosswind.models.tuner.evidence.external import AGAINST_ITS_OWN, is_made_by
from crosswind.models.tuner.evidence.others_on_cores import others_shares
from crosswind.models.tuner.space.space import Space

LEAST = 0.1  # of the run's time, from which on a trial is not believed
BESIDE = 50  # newest runs of the study that a run is held against


@dataclass(frozen=True)
class _Asked:
    parameters: Collection[str]
    least: float


def disturbance_of(
    store: Store, run_id: str, *, beside: Sequence[str] = (), parameters: Collection[str] = (), least: float = LEAST
) -> Disturbance:
    """Return what external causes took of a trial's run.

    `beside` are the runs of the study's other trials, `parameters` the names that are tuned: what they may have made
    is not external. Raises: NotFoundError, InvalidInputError.
    """
    if not 0 < least < 1:
        raise InvalidInputError(f"least is {least}, expected a share between 0 and 1")
    with store.catalog.read() as session:
        run = session.runs.get(run_id)
        others = [session.runs.get(other_id) for other_id in dict.fromkeys(beside) if other_id != run_id]
    explanation = explain_runs(store, [run])[run_id]
    if explanation.verdict is not Verdict.INSUFFICIENT_EVIDENCE:
        return _by_its_own(explanation, _Asked(parameters, least))
    return _by_others(store, run, others, _Asked(parameters, least))


def disturbance_in(store: Store, study: Study, trials: Sequence[TrialRecord], run_id: str) -> Disturbance:
    """The same of a trial's run in a study, beside the newest runs of its other trials.

    Raises: NotFoundError, InvalidInputError.
    """
    beside = [trial.run_id for trial in trials if trial.run_id][-BESIDE:]
    return disturbance_of(store, run_id, beside=beside, parameters=Space.from_json(study.space).domains)


def _by_its_own(explanation: Explanation, asked: _Asked) -> Disturbance:
    named = {explanation.cause, *explanation.also} & AGAINST_ITS_OWN.keys()
    whole = explanation.measured_seconds or 1.0
    lost = [
        LostTime(
            share.cause, *(seconds / whole for seconds in (share.seconds.value, share.seconds.low, share.seconds.high))
        )
        for share in explanation.shares
        if share.cause in named and not is_made_by(share.cause, asked.parameters)
    ]
    basis = f"told beside {explanation.cohort_runs} runs of the same configuration"
    return _told(
        Disturbance(explanation.run_id, DisturbanceBasis.OWN_RUNS, tuple(lost), is_disturbed=False, sentence=basis),
        asked,
    )


def _by_others(store: Store, run: Run, others: Sequence[Run], asked: _Asked) -> Disturbance:
    runs = [run, *(other for other in others if other.workload == run.workload and other.system == run.system)]
    segments = read_segments(store, runs)
    own = segments.get(run.run_id)
    if own is None or len(own.values) < FEWEST_SEGMENTS:
        reason = f"Nothing tells whether run {run.run_id} was disturbed: expected {FEWEST_SEGMENTS} steps of all ranks."
        return Disturbance(run.run_id, DisturbanceBasis.NOTHING, (), is_disturbed=False, sentence=reason)
    shares = others_shares(store, runs, ranks_of(store, runs), spans_of(store, runs))
    seen = {run_id: Seen(run_segments, shares.get(run_id)) for run_id, run_segments in segments.items()}
    beside = [other for run_id, other in seen.items() if run_id != run.run_id]
    lost = lost_beside(seen[run.run_id], beside, asked.parameters, asked.least)
    basis = f"told beside {len(beside)} runs of other configurations, none of its own"
    return _told(
        Disturbance(run.run_id, DisturbanceBasis.OTHER_RUNS, tuple(lost), is_disturbed=False, sentence=basis), asked
    )


def _told(disturbance: Disturbance, asked: _Asked) -> Disturbance:
    """The same with its verdict; its sentence says so far what it rests on."""
    lost = tuple(sorted(disturbance.lost, key=lambda loss: loss.ratio, reverse=True))
    if sum(loss.ratio for loss in lost) < asked.least:
        nothing = f"No known external cause took {asked.least:.0%} of the time of run {disturbance.run_id}"
        return replace(disturbance, lost=lost, sentence=f"{nothing} ({disturbance.sentence}).")
    causes = ", ".join(f"{words(loss.cause)} {loss.ratio:.0%} [{loss.low:.0%}-{loss.high:.0%}]" for loss in lost)
    sentence = (
        f"Repeat it: external causes took of the time of run {disturbance.run_id}: {causes} ({disturbance.sentence})."
    )
    return replace(disturbance, lost=lost, is_disturbed=True, sentence=sentence)

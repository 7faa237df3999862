"""The verdict whether a known external cause disturbed a trial's run: then it is repeated, not believed.

Where the configuration ran often enough, the explanation of the run decides. A configuration tried once has no cohort:
its run is compared with the study's other runs, which is less sure, and the sentence says so.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from crosswind.data.schema.answers.explanations import Expectation, Explanation
from crosswind.data.schema.answers.studies import Disturbance, DisturbanceBasis, LostTime
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import Run
from crosswind.data.schema.trial import Study, TrialRecord
from crosswind.data.schema.words import words
from crosswind.data.store.store import Store
from crosswind.models.explain.cohort.read import read_segments
from crosswind.models.explain.cohort.step_rows import ranks_of, spans_of
from crosswind.models.explain.explain import FEWEST_SEGMENTS, explain_runs
from crosswind.models.tuner.evidence.external import AGAINST_ITS_OWN, is_made_by
from crosswind.models.tuner.evidence.other_runs import SampledRun, losses_by_others
from crosswind.models.tuner.evidence.others_on_cores import others_shares
from crosswind.models.tuner.space.space import Space

LEAST = 0.1  # of the run's time, from which on a trial is not believed
OTHERS_MAX = 50  # newest runs of the study that a run is compared with


@dataclass(frozen=True)
class _Criteria:
    """The tuned parameters, whose effects are not external, and the share of time from which on a run is disturbed."""

    parameters: Collection[str]
    least: float


def disturbance_of(
    store: Store, run_id: str, *, others: Sequence[str] = (), parameters: Collection[str] = (), least: float = LEAST
) -> Disturbance:
    """Return what external causes took of a trial's run.

    Args:
        store: Holds the runs.
        run_id: The trial's run.
        others: Runs of the study's other trials.
        parameters: Names that are tuned: what they may have caused is not external.
        least: Share of the run's time from which on it counts as disturbed, between 0 and 1.

    Raises:
        NotFoundError, InvalidInputError.
    """
    if not 0 < least < 1:
        raise InvalidInputError(f"least is {least}, expected a share between 0 and 1")
    with store.catalog.read() as session:
        run = session.runs.get(run_id)
        other_runs = [session.runs.get(other_id) for other_id in dict.fromkeys(others) if other_id != run_id]
    explanation = explain_runs(store, [run])[run_id]
    if explanation.expected_from is Expectation.COHORT:
        return _by_explanation(explanation, _Criteria(parameters, least))
    return _by_others(store, run, other_runs, _Criteria(parameters, least))


def disturbance_in(store: Store, study: Study, trials: Sequence[TrialRecord], run_id: str) -> Disturbance:
    """Return the same for a run in a study, compared with the newest runs of its other trials.

    Raises: NotFoundError, InvalidInputError.
    """
    others = [trial.run_id for trial in trials if trial.run_id][-OTHERS_MAX:]
    return disturbance_of(store, run_id, others=others, parameters=Space.from_json(study.space).domains)


def _by_explanation(explanation: Explanation, criteria: _Criteria) -> Disturbance:
    named = {explanation.cause, *explanation.also} & AGAINST_ITS_OWN.keys()
    whole = explanation.measured_seconds or 1.0
    lost = [
        LostTime(
            share.cause, *(seconds / whole for seconds in (share.seconds.value, share.seconds.low, share.seconds.high))
        )
        for share in explanation.shares
        if share.cause in named and not is_made_by(share.cause, criteria.parameters)
    ]
    compared = f"compared with {explanation.cohort_runs} runs of the same configuration"
    return _judged(explanation.run_id, DisturbanceBasis.OWN_RUNS, lost, compared, least=criteria.least)


def _by_others(store: Store, run: Run, others: Sequence[Run], criteria: _Criteria) -> Disturbance:
    runs = [run, *(other for other in others if other.workload == run.workload and other.system == run.system)]
    segments = read_segments(store, runs)
    own = segments.get(run.run_id)
    if own is None or len(own.values) < FEWEST_SEGMENTS:
        reason = f"Nothing tells whether run {run.run_id} was disturbed: expected {FEWEST_SEGMENTS} steps of all ranks."
        return Disturbance(run.run_id, DisturbanceBasis.NOTHING, (), is_disturbed=False, sentence=reason)
    shares = others_shares(store, runs, ranks_of(store, runs), spans_of(store, runs))
    sampled = {run_id: SampledRun(run_segments, shares.get(run_id)) for run_id, run_segments in segments.items()}
    others_sampled = [other for run_id, other in sampled.items() if run_id != run.run_id]
    lost = losses_by_others(sampled[run.run_id], others_sampled, criteria.parameters, criteria.least)
    compared = f"compared with {len(others_sampled)} runs of other configurations, none of its own"
    return _judged(run.run_id, DisturbanceBasis.OTHER_RUNS, lost, compared, least=criteria.least)


def _judged(
    run_id: str, basis: DisturbanceBasis, losses: Sequence[LostTime], compared: str, *, least: float
) -> Disturbance:
    """Return the verdict on a run with these losses, and its sentence, which says with what it was compared."""
    lost = tuple(sorted(losses, key=lambda loss: loss.ratio, reverse=True))
    is_disturbed = sum(loss.ratio for loss in lost) >= least
    if is_disturbed:
        causes = ", ".join(f"{words(loss.cause)} {loss.ratio:.0%} [{loss.low:.0%}-{loss.high:.0%}]" for loss in lost)
        sentence = f"Repeat it: external causes took of the time of run {run_id}: {causes} ({compared})."
    else:
        sentence = f"No known external cause took {least:.0%} of the time of run {run_id} ({compared})."
    return Disturbance(run_id, basis, lost, is_disturbed, sentence)

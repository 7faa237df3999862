"""Explanations of runs: verdict, shares of the excess, their evidence, and what to do next."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosswind.data.schema.answers.explanations import UNKNOWN, Expectation, Explanation, RankLag, Verdict
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run
from crosswind.data.store.store import Store
from crosswind.models.explain.actions import REPEAT, WATCH, advice
from crosswind.models.explain.alone import explained_alone
from crosswind.models.explain.causes import BY_NAME
from crosswind.models.explain.certainty import certainty, redrawn
from crosswind.models.explain.cohort.columns import COLUMNS, OF_RUN
from crosswind.models.explain.cohort.peers import Cohort, cohorts_of
from crosswind.models.explain.cohort.read import cohort_segments
from crosswind.models.explain.cohort.reference import FEWEST_RUNS, Reference
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.culprit_node import with_node
from crosswind.models.explain.ended import with_end
from crosswind.models.explain.gaps import gaps_of
from crosswind.models.explain.masked_time import masked_seconds
from crosswind.models.explain.sentence import Place, is_of_a_rank, more_steps, sentence
from crosswind.models.explain.shares import excess_of, shares_of, unexplained_of
from crosswind.models.explain.significance import ComparedShares, Finding
from crosswind.models.explain.split import Split, split
from crosswind.models.explain.stored import store_explanations, stored_explanations
from crosswind.models.explain.verdict import agreed, in_phase_of, is_behind_it, judged
from crosswind.models.explain.within import Within
from crosswind.models.explain.within.lag import Lag, is_usual_lag, without_artefacts

FEWEST_SEGMENTS = 10
ALIKE_STEPS, HALF = 0.01, 0.5  # of a number of steps, within which another is the same; share of the runs that make it


def explain_run(store: Store, run_id: str) -> Explanation:
    """Explain why this run took as long as it did. Raises: NotFoundError, MalformedError."""
    with store.catalog.read() as session:
        run = session.runs.get(run_id)
    return explain_runs(store, [run])[run_id]


def explain_runs(
    store: Store, runs: Sequence[Run], *, between: Callable[[], None] = lambda: None, with_peers: bool = False
) -> dict[str, Explanation]:
    """Explain every given run against the runs of its cohort that began nearest to it; by run id.

    Explanations that are stored and hold are not computed again. The cohort's other runs count whether they may be
    seen or not: an explanation names none of them. `between` is called now and then, to end all by an error. With
    `with_peers`, peers that have to be read anyway are explained and stored, too.
    Raises: MalformedError; as `between`.
    """
    store = store.whole
    explanations = stored_explanations(store, [run.run_id for run in runs])
    missing = [run for run in runs if run.run_id not in explanations]
    for cohort in cohorts_of(store, missing, between, with_peers=with_peers) if missing else ():
        explanations |= _explained_in(store, cohort, between)
    return {run.run_id: explanations[run.run_id] for run in runs}


def _explained_in(store: Store, cohort: Cohort, between: Callable[[], None]) -> dict[str, Explanation]:
    """Explain the wanted runs of a cohort, and store what comes of it."""
    segments, peers = cohort_segments(store, cohort.members, cohort.features, cohort.whole)
    explanations = {}
    for run in cohort.wanted:
        between()
        own, others = segments.get(run.run_id), [peer for other, peer in peers.items() if other != run.run_id]
        explanation = explain(run.run_id, own, others, within=Within.of_run(store, run, own))
        explanation = with_end(run, replace(explanation, missing=gaps_of(run, own)))
        explanations[run.run_id] = with_node(store, run, explanation)
    store_explanations(store, cohort, explanations)
    return explanations


def explain(
    run_id: str, run: Segments | None, cohort: Sequence[Segments], *, within: Within | None = None
) -> Explanation:
    """Explain one run from its segments and those of the other runs of its cohort.

    `within` is its evidence by itself, None for what its segments show.
    """
    within = Within.of(run) if within is None else within
    if run is None or len(run.values) < FEWEST_SEGMENTS:
        count = 0 if run is None else len(run.values)
        steps = {0: "no step", 1: "only 1 step"}.get(count, f"only {count} steps")
        reason = f"{steps} with watched collectives of all ranks {'is' if count < 2 else 'are'} recorded"
        explanation = Explanation(run_id, *_abstention(reason, WATCH), cohort_runs=len(cohort), steps=count)
        return replace(explanation, formula_seconds=within.formulas)
    if len(cohort) < FEWEST_RUNS:
        others = {0: "no other run is", 1: "only 1 other run is"}.get(len(cohort), f"only {len(cohort)} other runs are")
        reason = f"{others} comparable"
        alone = Explanation(run_id, *_abstention(reason, REPEAT), cohort_runs=len(cohort), steps=len(run.values))
        explanation = explained_alone(run, alone, within)
    else:
        explanation = _explained(without_artefacts(run, within.lag), cohort, within)
    return replace(
        explanation,
        run_id=run_id,
        lag=None if within.lag is None else _lag(within.lag, cohort),
        change=None if within.change is None else within.change.steps,
        formula_seconds=within.formulas,
    )


def _abstention(reason: str, next_action: str) -> tuple[Verdict, str, str]:
    return Verdict.INSUFFICIENT_EVIDENCE, f"Not enough evidence to say: {reason}.", next_action


def _explained(run: Segments, cohort: Sequence[Segments], within: Within) -> Explanation:
    compared, ranks = ComparedShares.of_run(run, cohort), ComparedShares.of_ranks(run, cohort)
    parts, steps = split(run.means, compared.reference), len(run.values)
    is_usual = within.lag is not None and is_usual_lag(within.lag, cohort)
    verdict, named = judged(parts, compared, ranks, lag=within.lag, is_usual_lag=is_usual)
    confidence = None
    if named:
        again = _redrawn(run, named[0], within.lag, (compared, ranks))
        named = agreed(verdict, named, again)
        confidence = certainty(named[0].cause, again) if named else None
    lag = _lag_behind(named[0] if named else None, within.lag)
    named = [in_phase_of(lag, finding) for finding in named]
    first = named[0] if named else None
    usual = _usual_steps(cohort)
    culprit = lag.rank if lag else _culprit(run, parts, compared.reference, first)
    said = sentence(parts, named, verdict=verdict, place=Place(run.numbers, culprit, lag))
    return Explanation(
        run_id=run.run_id,
        verdict=verdict,
        sentence=said + more_steps(run.count, usual, run.time),
        next_action=advice(verdict, first, culprit),
        cohort_runs=len(cohort),
        steps=steps,
        usual_steps=usual,
        measured_seconds=parts.measured_time * steps,
        expected_seconds=parts.expected_time * steps,
        excess=excess_of(parts, steps),
        shares=tuple(shares_of(parts, steps, _masked(run, parts, compared.reference))),
        unexplained=unexplained_of(parts, steps),
        cause=first.cause if first else None,
        also=tuple(finding.cause for finding in named[1:]),
        confidence=confidence,
        culprit_rank=culprit,
        culprit_ratio=None if culprit is None else float(np.mean(run.culprits == culprit)),
        expected_from=Expectation.COHORT,
        phase=first.phase if first else None,
    )


def _usual_steps(cohort: Sequence[Segments]) -> int | None:
    """Return how many steps most of the runs make, to a hundredth; None where they differ."""
    counts = np.array([run.count for run in cohort])
    middle = int(np.median(counts))
    return middle if np.mean(np.abs(counts - middle) <= ALIKE_STEPS * middle) > HALF else None


def _masked(run: Segments, parts: Split, reference: Reference) -> Mapping[str, Floats]:
    """Return masked seconds a segment of each cause that has a share, by name, shape (REPLICATES,)."""
    with_share = [cause for cause in BY_NAME.values() if parts.shares[cause.name] > 0]
    return {cause.name: masked_seconds(run, reference.usual, cause.columns) for cause in with_share}


def _lag_behind(first: Finding | None, lag: Lag | None) -> Lag | None:
    """Return the lag, where the first cause is that lag, or unknown and as large."""
    if first is None or lag is None:
        return None
    is_it = first == lag.finding
    is_as_large = first.cause == UNKNOWN and first.rank is None and is_behind_it(lag, first.seconds)
    return lag if is_it or is_as_large else None


def _redrawn(
    run: Segments, first: Finding, lag: Lag | None, compared: tuple[ComparedShares, ComparedShares | None]
) -> Split:
    """Return the split with redraws that the first finding comes from."""
    if lag is not None and first == lag.finding:
        return lag.parts
    return redrawn(run, first.rank, *compared)


def _culprit(run: Segments, parts: Split, reference: Reference, first: Finding | None) -> int | None:
    """Return the rank with most of the cause's evidence; without a cause the one that arrived last most often.

    None where the cause is no rank's.
    """
    if first and first.rank is not None:
        return run.numbers[first.rank]
    if first and not is_of_a_rank(first.cause, parts):
        return None
    names = [name for name in BY_NAME[first.cause].columns if name not in OF_RUN] if first else []
    columns = [COLUMNS.index(name) for name in names]
    of_ranks = np.nansum(run.contrasts()[:, columns], axis=1)
    if of_ranks.size and of_ranks.max() > 0:
        return run.numbers[int(np.argmax(of_ranks))]
    beyond = np.nan_to_num(np.maximum(run.values[:, columns] - reference.usual[columns], 0.0)).sum(axis=1)
    ranks, places = np.unique(run.culprits, return_inverse=True)
    return int(ranks[np.argmax(np.bincount(places, beyond if beyond.any() else None))])


def _lag(lag: Lag, cohort: Sequence[Segments]) -> RankLag:
    """Return the lag as an answer."""
    is_usual = is_usual_lag(lag, cohort)
    return RankLag(lag.rank, lag.phase, lag.seconds, lag.late_ratio, lag.since_step, lag.cause, is_usual)

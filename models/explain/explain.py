"""Explanations of runs: verdict, shares of the excess, their evidence, and what to do next."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.explanations import CauseShare, Explanation, Interval, Verdict
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run
from crosswind.data.store.features import all_runs, cohort_key
from crosswind.data.store.store import Store
from crosswind.models.explain.causes import BY_NAME
from crosswind.models.explain.causes.cause import Observed
from crosswind.models.explain.cohort.columns import COLUMNS, OF_RUN
from crosswind.models.explain.cohort.read import read_cohort
from crosswind.models.explain.cohort.reference import FEWEST_RUNS, TIME, Reference
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.culprit_node import at_node, culprit_node
from crosswind.models.explain.ended import with_end
from crosswind.models.explain.gaps import gaps_of
from crosswind.models.explain.masked_time import masked_seconds
from crosswind.models.explain.sentence import is_of_a_rank, more_steps, sentence
from crosswind.models.explain.significance import ComparedShares, Finding, findings_of, student_spreads
from crosswind.models.explain.split import UNEXPLAINED, Split, split

FEWEST_SEGMENTS = 10
ALIKE_STEPS, HALF = 0.01, 0.5  # of a number of steps, within which another is the same; share of the runs that make it
SMALLEST_EXCESS = 0.02  # excess / expected, below which no cause that is significant in its cohort makes a run slow
SMALLEST_SLOWDOWN = 0.10  # of the expected time: of a run's excess without a cause, of a rank's lag in a quick run
SPREADS = 3.0  # an excess within so many of the cohort's own robust standard deviations is its usual variability
# Of a share, and a step, that stay uncertain: caches grow cold meanwhile, a sleep lasts longer than asked for.
DOUBT, DOUBT_SECONDS = 0.03, 0.0003


def explain_run(store: Store, run_id: str) -> Explanation:
    """Explain why this run took as long as it did. Raises: NotFoundError, MalformedError."""
    with store.catalog.read() as session:
        run = session.runs.get(run_id)
    return explain_runs(store, [run])[run_id]


def explain_runs(store: Store, runs: Sequence[Run]) -> dict[str, Explanation]:
    """Explain every given run against all stored runs of its cohort; by run id. Raises: MalformedError."""
    wanted = {cohort_key(run) for run in runs}
    peers = [
        peer
        for workload, system in sorted({(run.workload, run.system) for run in runs})
        for peer in all_runs(store, RunFilter(workload=workload, system=system))
        if cohort_key(peer) in wanted
    ]
    segments, others = read_cohort(store, peers, {run.run_id for run in runs})
    cohorts = {run.run_id: cohort_key(run) for run in peers}
    explanations = {}
    for run in runs:
        cohort = [
            peer for other, peer in others.items() if cohorts[other] == cohorts[run.run_id] and other != run.run_id
        ]
        own = segments.get(run.run_id)
        explanation = explain(run.run_id, own, cohort)
        explanation = with_end(run, replace(explanation, missing=gaps_of(run, own)))
        explanations[run.run_id] = at_node(explanation, culprit_node(store, run, explanation))
    return explanations


def explain(run_id: str, run: Segments | None, cohort: Sequence[Segments]) -> Explanation:
    """Explain one run from its segments and those of the other runs of its cohort."""
    if run is None or len(run.values) < FEWEST_SEGMENTS:
        count = 0 if run is None else len(run.values)
        reason = f"only {count} steps with all ranks and their collectives are recorded"
        return Explanation(run_id, *_abstention(reason, WATCH), cohort_runs=len(cohort), steps=count)
    if len(cohort) < FEWEST_RUNS:
        reason = f"only {len(cohort)} other runs are comparable"
        return Explanation(run_id, *_abstention(reason, REPEAT), cohort_runs=len(cohort), steps=len(run.values))
    return _explained(run, cohort)


WATCH = "Record at least 20 steps: for batch in run.steps(loader), and run.watch(model) for its collectives."
REPEAT = "Run the same workload and configuration at least three times: crosswind run -- CMD."


def _abstention(reason: str, next_action: str) -> tuple[Verdict, str, str]:
    return Verdict.INSUFFICIENT_EVIDENCE, f"Not enough evidence to say: {reason}.", next_action


def _explained(run: Segments, cohort: Sequence[Segments]) -> Explanation:
    compared, ranks = ComparedShares.of_run(run, cohort), ComparedShares.of_ranks(run, cohort)
    parts, steps = split(run.means, compared.reference), len(run.values)
    numbers = sorted(run.work) or list(range(run.ranks))
    verdict, named = _named(parts, compared, ranks)
    first = named[0] if named else None
    usual = _usual_steps(cohort)
    has_place = first is None or first.rank is not None or is_of_a_rank(first.cause, parts)
    culprit = _culprit(run, compared.reference, first, numbers) if has_place else None
    return Explanation(
        run_id=run.run_id,
        verdict=verdict,
        sentence=sentence(parts, named, verdict=verdict, culprit=culprit, ranks=numbers)
        + more_steps(run.count, usual, run.time),
        next_action=BY_NAME[first.cause].next_action if first else NOTHING if verdict is Verdict.NORMAL else SAMPLE,
        cohort_runs=len(cohort),
        steps=steps,
        usual_steps=usual,
        measured_seconds=(parts.expected_time + parts.excess) * steps,
        expected_seconds=parts.expected_time * steps,
        excess=interval(parts.excess, parts.replicates["excess"], steps),
        shares=tuple(shares_of(parts, steps, _masked(run, parts, compared.reference))),
        unexplained=interval(parts.shares[UNEXPLAINED], parts.replicates[UNEXPLAINED], steps),
        cause=first.cause if first else None,
        also=tuple(finding.cause for finding in named[1:]),
        confidence=_confidence(first, parts, ranks) if first else None,
        culprit_rank=culprit,
        culprit_ratio=None if culprit is None else float(np.mean(run.culprits == culprit)),
    )


def _usual_steps(cohort: Sequence[Segments]) -> int | None:
    """Return how many steps most of the runs make, to a hundredth; None where they differ."""
    counts = np.array([run.count for run in cohort])
    middle = int(np.median(counts))
    return middle if np.mean(np.abs(counts - middle) <= ALIKE_STEPS * middle) > HALF else None


def _named(parts: Split, compared: ComparedShares, ranks: ComparedShares | None) -> tuple[Verdict, list[Finding]]:
    """Return the verdict, and the causes of a slow run, the first one first."""
    of_pace = SMALLEST_SLOWDOWN * parts.expected_time
    findings = findings_of(compared, ranks, parts.expected_time)
    if parts.excess <= SMALLEST_EXCESS * parts.expected_time:  # not slow, unless for its pace
        findings = [finding for finding in findings if finding.rank is not None and finding.seconds > of_pace]
    largest = max(BY_NAME, key=lambda name: parts.shares[name])
    is_named = parts.shares[largest] > max(parts.shares[UNEXPLAINED], 0.0)
    first = [Finding(largest, parts.shares[largest], None)] if is_named else []
    if _is_significant(parts, compared.reference):
        return Verdict.SLOW, [*first, *(finding for finding in findings if not is_named or finding.cause != largest)]
    if findings:
        return Verdict.SLOW, findings
    return (Verdict.PERHAPS_SLOW, first) if parts.excess > of_pace else (Verdict.NORMAL, [])


def _is_significant(parts: Split, reference: Reference) -> bool:
    usual = student_spreads(reference.runs, SPREADS) * reference.spread[TIME]
    is_beyond = parts.excess > max(SMALLEST_SLOWDOWN * parts.expected_time, usual)
    return is_beyond and _low(parts.replicates["excess"]) > 0


NOTHING = "Nothing to do: this is the cohort's usual time."
SAMPLE = "Record node counters beside the run (crosswind run does), or explain it again when more runs are stored."


def _masked(run: Segments, parts: Split, reference: Reference) -> Mapping[str, Floats]:
    """Return masked seconds a segment of each cause that has a share, by name, shape (REPLICATES,)."""
    with_share = [cause for cause in BY_NAME.values() if parts.shares[cause.name] > 0]
    return {cause.name: masked_seconds(run, reference.usual, cause.columns) for cause in with_share}


def shares_of(parts: Split, steps: int, masked: Mapping[str, Floats] | None = None) -> list[CauseShare]:
    """Return the share of every cause over so many steps, the largest first; causes without one are left out.

    `masked` are the masked seconds of each of them, shape (REPLICATES,): an interval begins at the time that would be
    saved without its cause alone.
    """
    observed = Observed(parts.measured, parts.expected)
    shares = []
    for cause in BY_NAME.values():
        value, replicates = parts.shares[cause.name], parts.replicates[cause.name]
        if value > 0:
            saved = replicates if masked is None else np.maximum(replicates - masked[cause.name], 0.0)
            doubt = max(DOUBT * value, DOUBT_SECONDS)
            low, high = _low(saved) - doubt, float(np.quantile(replicates, 0.95)) + doubt
            seconds = Interval(value * steps, max(low, 0.0) * steps, high * steps)
            shares.append(CauseShare(cause.name, seconds, cause.evidence(observed)))
    return sorted(shares, key=lambda share: share.seconds.value, reverse=True)


def interval(value: float, replicates: Floats, steps: int) -> Interval:
    """Return an estimate a step, and its replicates, as seconds over so many steps."""
    low, high = np.quantile(replicates, (0.05, 0.95))
    return Interval(value * steps, float(low) * steps, float(high) * steps)


def _low(replicates: Floats) -> float:
    return float(np.quantile(replicates, 0.05))


def _confidence(first: Finding, parts: Split, ranks: ComparedShares | None) -> float:
    """Return the share of replicates in which the first cause is the largest, in its rank or in the run."""
    if first.rank is not None and ranks is not None:
        parts = split(ranks.means[first.rank], ranks.reference)
    others = [values for name, values in parts.replicates.items() if name in BY_NAME and name != first.cause]
    others.append(parts.replicates[UNEXPLAINED])
    return float(np.mean(parts.replicates[first.cause] > np.max(others, axis=0)))


def _culprit(run: Segments, reference: Reference, first: Finding | None, numbers: Sequence[int]) -> int:
    """Return the rank with most of the cause's evidence; without a cause the one that arrived last most often."""
    if first and first.rank is not None:
        return numbers[first.rank]
    names = [name for name in BY_NAME[first.cause].columns if name not in OF_RUN] if first else []
    columns = [COLUMNS.index(name) for name in names]
    of_ranks = np.nansum(run.contrasts()[:, columns], axis=1)
    if of_ranks.size and of_ranks.max() > 0:
        return numbers[int(np.argmax(of_ranks))]
    beyond = np.nan_to_num(np.maximum(run.values[:, columns] - reference.usual[columns], 0.0)).sum(axis=1)
    ranks, places = np.unique(run.culprits, return_inverse=True)
    return int(ranks[np.argmax(np.bincount(places, beyond if beyond.any() else None))])

"""Explanations of runs: verdict, shares of the excess, what speaks for them, and what to do next."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.explanations import CauseShare, Explanation, Interval, Verdict
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run
from crosswind.data.store.features import all_runs, cohort_key
from crosswind.data.store.store import Store
from crosswind.models.explain.causes import CAUSES
from crosswind.models.explain.causes.cause import Observed
from crosswind.models.explain.cohort import read_cohort
from crosswind.models.explain.culprit_node import at_node, culprit_node
from crosswind.models.explain.hidden import hidden
from crosswind.models.explain.missing import missing_of
from crosswind.models.explain.notable import BY_NAME, Compared, Notable, notable, spreads_of
from crosswind.models.explain.reference import FEWEST_RUNS, TIME, Reference
from crosswind.models.explain.segments import COLUMNS, OF_RUN, Segments
from crosswind.models.explain.sentence import is_of_a_rank, more_steps, sentence
from crosswind.models.explain.split import UNEXPLAINED, Split, split

FEWEST_SEGMENTS = 10
ALIKE_STEPS, HALF = 0.01, 0.5  # of a number of steps, which are as many; share of the runs that make as many
SMALLEST_EXCESS = 0.02  # excess / expected below which no cause makes a run slow that stands out against its cohort
SMALLEST_SLOWDOWN = 0.10  # of the expected time: of a run's excess without a cause, of a rank's lag in a quick run
SPREADS = 3.0  # an excess within so many of the cohort's own robust standard deviations is its usual variability
# Of a share, and a step, which nobody knows better: caches grow cold meanwhile, a wait lasts longer than asked for.
DOUBT, DOUBT_SECONDS = 0.03, 0.0003


def explain_run(store: Store, run_id: str) -> Explanation:
    """Why this run took as long as it did. Raises: NotFoundError."""
    with store.catalog.read() as session:
        run = session.runs.get(run_id)
    return explain_runs(store, [run])[run_id]


def explain_runs(store: Store, runs: Sequence[Run]) -> dict[str, Explanation]:
    """An explanation of every given run against all stored runs of its cohort, by run id."""
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
        explanation = replace(explanation, missing=missing_of(run, own))
        explanations[run.run_id] = at_node(explanation, culprit_node(store, run, explanation))
    return explanations


def explain(run_id: str, run: Segments | None, cohort: Sequence[Segments]) -> Explanation:
    """The explanation of one run from its segments and those of the other runs of its cohort."""
    if run is None or len(run.values) < FEWEST_SEGMENTS:
        count = 0 if run is None else len(run.values)
        reason = f"only {count} steps with all ranks and their collectives are recorded"
        return Explanation(run_id, *_abstention(reason, WATCH), cohort_runs=len(cohort), steps=count)
    if len(cohort) < FEWEST_RUNS:
        reason = f"only {len(cohort)} other runs are comparable"
        return Explanation(run_id, *_abstention(reason, REPEAT), cohort_runs=len(cohort), steps=len(run.values))
    return _told(run, cohort)


WATCH = "Record at least 20 steps: for batch in run.steps(loader), and run.watch(model) for its collectives."
REPEAT = "Run the same workload and configuration at least three times: crosswind run -- CMD."


def _abstention(reason: str, next_action: str) -> tuple[Verdict, str, str]:
    return Verdict.INSUFFICIENT_EVIDENCE, f"Not enough evidence to say: {reason}.", next_action


def _told(run: Segments, cohort: Sequence[Segments]) -> Explanation:
    whole, ranks = Compared.whole(run, cohort), Compared.ranks(run, cohort)
    parts, steps = split(run.means, whole.reference), len(run.values)
    numbers = sorted(run.work) or list(range(run.ranks))
    verdict, named = _named(parts, whole, ranks)
    first = named[0] if named else None
    usual = _usual_steps(cohort)
    has_place = first is None or first.rank is not None or is_of_a_rank(first.cause, parts)
    culprit = _culprit(run, whole.reference, first, numbers) if has_place else None
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
        shares=tuple(shares_of(parts, steps, _hidden(run, parts, whole.reference))),
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


def _named(parts: Split, whole: Compared, ranks: Compared | None) -> tuple[Verdict, list[Notable]]:
    """The verdict, and the causes of a run's being slow, the first one first."""
    of_pace = SMALLEST_SLOWDOWN * parts.expected_time
    findings = notable(whole, ranks, parts.expected_time)
    if parts.excess <= SMALLEST_EXCESS * parts.expected_time:  # but for its pace it might be
        findings = [finding for finding in findings if finding.rank is not None and finding.seconds > of_pace]
    largest = max(BY_NAME, key=lambda name: parts.shares[name])
    is_scalar = parts.shares[largest] > max(parts.shares[UNEXPLAINED], 0.0)
    first = [Notable(largest, parts.shares[largest], None)] if is_scalar else []
    if _stands_out(parts, whole.reference):
        return Verdict.SLOW, [*first, *(finding for finding in findings if not is_scalar or finding.cause != largest)]
    if findings:
        return Verdict.SLOW, findings
    return (Verdict.PERHAPS_SLOW, first) if parts.excess > of_pace else (Verdict.NORMAL, [])


def _stands_out(parts: Split, reference: Reference) -> bool:
    usual = spreads_of(reference.runs, SPREADS) * reference.spread[TIME]
    is_beyond = parts.excess > max(SMALLEST_SLOWDOWN * parts.expected_time, usual)
    return is_beyond and _low(parts.replicates["excess"]) > 0


NOTHING = "Nothing to do: this is the cohort's usual time."
SAMPLE = "Record node counters beside the run (crosswind run does), or explain it again when more runs are stored."


def _hidden(run: Segments, parts: Split, reference: Reference) -> Mapping[str, Floats]:
    """Return what each cause hid, by name, as `hidden` draws it."""
    taking = [cause for cause in CAUSES if parts.shares[cause.name] > 0]
    return {cause.name: hidden(run, reference.usual, cause.columns) for cause in taking}


def shares_of(parts: Split, steps: int, hid: Mapping[str, Floats] | None = None) -> list[CauseShare]:
    """Return what each cause took over so many steps, the largest first; those that took nothing are left out.

    `hid` is what each of them hid, in replicates: its interval begins at what would be saved without it alone.
    """
    observed = Observed(parts.measured, parts.expected)
    shares = []
    for cause in CAUSES:
        value, replicates = parts.shares[cause.name], parts.replicates[cause.name]
        if value > 0:
            saved = replicates if hid is None else np.maximum(replicates - hid[cause.name], 0.0)
            doubt = max(DOUBT * value, DOUBT_SECONDS)
            low, high = _low(saved) - doubt, float(np.quantile(replicates, 0.95)) + doubt
            seconds = Interval(value * steps, max(low, 0.0) * steps, high * steps)
            shares.append(CauseShare(cause.name, seconds, cause.evidence(observed)))
    return sorted(shares, key=lambda share: share.seconds.value, reverse=True)


def interval(value: float, replicates: Floats, steps: int) -> Interval:
    """An estimate a step, and its replicates, as seconds over so many steps."""
    low, high = np.quantile(replicates, (0.05, 0.95))
    return Interval(value * steps, float(low) * steps, float(high) * steps)


def _low(replicates: Floats) -> float:
    return float(np.quantile(replicates, 0.05))


def _confidence(first: Notable, parts: Split, ranks: Compared | None) -> float:
    """The share of replicates in which it is the largest, where it was found to be that."""
    if first.rank is not None and ranks is not None:
        parts = split(ranks.means[first.rank], ranks.reference)
    others = [values for name, values in parts.replicates.items() if name in BY_NAME and name != first.cause]
    others.append(parts.replicates[UNEXPLAINED])
    return float(np.mean(parts.replicates[first.cause] > np.max(others, axis=0)))


def _culprit(run: Segments, reference: Reference, first: Notable | None, numbers: Sequence[int]) -> int:
    """The rank with most of what speaks for the cause; without a cause the one that came last most often."""
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

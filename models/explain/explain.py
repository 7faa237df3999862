"""Explanations of runs: verdict, shares of the excess, what speaks for them, and what to do next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.features import all_runs, cohort_key
from crosswind.data.prediction import Floats
from crosswind.data.run import Run
from crosswind.data.store import Store
from crosswind.models.explain.causes import CAUSES
from crosswind.models.explain.causes.cause import Cause, Observed, milliseconds
from crosswind.models.explain.evidence import read_segments
from crosswind.models.explain.explanation import Explanation, Interval, Share, Verdict
from crosswind.models.explain.reference import FEWEST_RUNS, TIME, Reference, reference_of
from crosswind.models.explain.segments import COLUMNS, PHASES, Segments
from crosswind.models.explain.split import UNEXPLAINED, Split, split

FEWEST_SEGMENTS = 10
SMALLEST_SLOWDOWN = 0.10  # excess / expected below which a run is not called slow, whatever its interval
SMALLEST_SHARE = 0.05  # of the expected time, below which a cause makes no run slow
SPREADS = 3.0  # an excess within so many of the cohort's own robust standard deviations is its usual variability
SHARE_SPREADS = 3.0  # the same of one cause's share
ALL = 1.1  # of an excess, which is as much as all of it: something else went a little quicker
BY_NAME: Mapping[str, Cause] = {cause.name: cause for cause in CAUSES}


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
    segments = read_segments(store, peers)
    cohorts = {run.run_id: cohort_key(run) for run in peers}
    explanations = {}
    for run in runs:
        cohort = [
            found for other, found in segments.items() if cohorts[other] == cohorts[run.run_id] and other != run.run_id
        ]
        explanations[run.run_id] = explain(run.run_id, segments.get(run.run_id), cohort)
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
    whole = _finding(run, cohort)
    parts, steps = whole.parts, len(run.values)
    lag = _finding(run.lag(), [other.lag() for other in cohort]) if run.ranks > 1 else whole
    expected = parts.expected_time
    is_slow = any(_stands_out(each, expected) or _largest(each, expected) for each in (whole, lag))
    told, cause = _told_by([whole, lag], expected) if is_slow else (whole, None)
    culprit, culprit_ratio = _culprit(run, told.reference, cause)
    return Explanation(
        run_id=run.run_id,
        verdict=Verdict.SLOW if is_slow else Verdict.NORMAL,
        sentence=_sentence(whole, told, is_slow=is_slow, cause=cause, who=f"rank {culprit}"),
        next_action=BY_NAME[cause].next_action if cause else NOTHING if not is_slow else SAMPLE,
        cohort_runs=len(cohort),
        steps=steps,
        measured_seconds=(parts.expected_time + parts.excess) * steps,
        expected_seconds=parts.expected_time * steps,
        excess=interval(parts.excess, parts.replicates["excess"], steps),
        shares=tuple(shares_of(parts, steps)),
        unexplained=interval(parts.shares[UNEXPLAINED], parts.replicates[UNEXPLAINED], steps),
        cause=cause,
        confidence=_confidence(cause, told.parts.replicates) if cause else None,
        culprit_rank=culprit,
        culprit_ratio=culprit_ratio,
    )


@dataclass(frozen=True)
class _Finding:
    """A run, or its lag behind its peers, against the cohort's; the spread in seconds."""

    parts: Split
    reference: Reference


def _finding(run: Segments, cohort: Sequence[Segments]) -> _Finding:
    reference = reference_of(cohort)
    return _Finding(split(run, reference), reference)


def _stands_out(finding: _Finding, expected_time: float) -> bool:
    smallest = max(SMALLEST_SLOWDOWN * expected_time, SPREADS * finding.reference.spread[TIME])
    return finding.parts.excess > smallest and _low(finding.parts.replicates["excess"]) > 0


def _largest(finding: _Finding, expected_time: float) -> str | None:
    """The cause with the largest share of those that stand out by themselves, above what the runs differ by."""
    shares = finding.parts.shares
    beyond = [cause.name for cause in CAUSES if _is_beyond(cause, finding, expected_time)]
    return max(beyond, key=lambda name: shares[name], default=None)


def _is_beyond(cause: Cause, finding: _Finding, expected_time: float) -> bool:
    usual = np.nansum([finding.reference.spread[column] for column in cause.columns])
    smallest = max(SMALLEST_SHARE * expected_time, SHARE_SPREADS * float(usual))
    return finding.parts.shares[cause.name] > smallest


def _told_by(findings: Sequence[_Finding], expected_time: float) -> tuple[_Finding, str | None]:
    """The finding that names a cause, and that; the first that stands out where none does."""
    for name in (_named, _largest):
        for finding in findings:
            if cause := name(finding, expected_time):
                return finding, cause
    return next((each for each in findings if _stands_out(each, expected_time)), findings[0]), None


def _named(finding: _Finding, expected_time: float) -> str | None:
    """The cause with the largest share, if the whole stands out and it is larger than what stays unexplained."""
    shares = finding.parts.shares
    largest = max(BY_NAME, key=lambda name: shares[name])
    is_whole = _stands_out(finding, expected_time) and shares[largest] > max(shares[UNEXPLAINED], 0.0)
    return largest if is_whole or _is_beyond(BY_NAME[largest], finding, expected_time) else None


NOTHING = "Nothing to do: this is the cohort's usual time."
SAMPLE = "Record node counters beside the run (crosswind run does), or explain it again when more runs are stored."


def shares_of(parts: Split, steps: int) -> list[Share]:
    """What each cause took over so many steps, the largest first; those that took nothing are left out."""
    observed = Observed(parts.measured, parts.expected)
    shares = [
        Share(
            cause.name,
            interval(parts.shares[cause.name], parts.replicates[cause.name], steps),
            cause.evidence(observed),
        )
        for cause in CAUSES
        if parts.shares[cause.name] > 0
    ]
    return sorted(shares, key=lambda share: share.seconds.value, reverse=True)


def interval(value: float, replicates: Floats, steps: int) -> Interval:
    """An estimate a step, and its replicates, as seconds over so many steps."""
    low, high = np.quantile(replicates, (0.05, 0.95))
    return Interval(value * steps, float(low) * steps, float(high) * steps)


def _low(replicates: Floats) -> float:
    return float(np.quantile(replicates, 0.05))


def _confidence(cause: str, replicates: Mapping[str, Floats]) -> float:
    others = [values for name, values in replicates.items() if name in BY_NAME and name != cause]
    others.append(replicates[UNEXPLAINED])
    return float(np.mean(replicates[cause] > np.max(others, axis=0)))


def _culprit(run: Segments, reference: Reference, cause: str | None) -> tuple[int, float]:
    """The rank with most of what speaks for the cause, else the one that came last most often; how often it did."""
    columns = [COLUMNS.index(name) for name in BY_NAME[cause].columns] if cause else []
    beyond = np.nan_to_num(np.maximum(run.values[:, columns] - reference.usual[columns], 0.0)).sum(axis=1)
    weights = beyond if beyond.any() else np.ones(len(run.culprits))
    ranks, places = np.unique(run.culprits, return_inverse=True)
    top = int(np.argmax(np.bincount(places, weights)))
    return int(ranks[top]), float(np.mean(places == top))


def _sentence(whole: _Finding, told: _Finding, *, is_slow: bool, cause: str | None, who: str) -> str:
    expected = whole.parts.expected_time
    low, high = 1 + np.quantile(whole.parts.replicates["excess"], (0.05, 0.95)) / expected
    times = f"{1 + whole.parts.excess / expected:.3g}x the expected step time [{low:.3g}-{high:.3g}]"
    if not is_slow:
        return f"Not slow: {times}, within what this cohort usually shows."
    behind = ""
    if told is not whole:
        lag = sum(told.parts.measured[name] for name in PHASES)
        behind = f"; {who} arrives {milliseconds(lag)} a step after the others"
    slow = "Slow" if whole.parts.excess > SMALLEST_SHARE * expected else "Slow for its pace"
    if cause is None:
        return f"{slow}: {times}{behind}; no cause has enough evidence."
    where = f" on {who}" if is_of_a_rank(BY_NAME[cause]) else ""
    taken = _taken(told.parts, cause, "of that" if behind else "of the excess")
    return f"{slow}: {times}{behind}. {cause.replace('_', ' ').capitalize()}{where} {taken}."


def is_of_a_rank(cause: Cause) -> bool:
    """Whether one rank is its place; what keeps the collectives is nobody's who came last."""
    return "fabric" not in cause.columns


def _taken(parts: Split, cause: str, of_what: str) -> str:
    share = parts.shares[cause]
    if 0 < share <= ALL * parts.excess:
        return f"took {min(share / parts.excess, 1):.0%} {of_what}"
    return f"cost {milliseconds(share)} a step, while other things went quicker than usual"

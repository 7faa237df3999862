"""Evidence of a run from comparing it with others: seconds that runs alike take, and shares of compute lost."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from crosswind.data.schema.run import cohort_key
from crosswind.models.explain.cohort.columns import COMPUTE_LOST, RUNS_ALIKE
from crosswind.models.explain.cohort.reference import FEWEST_RUNS, usual_of
from crosswind.models.explain.cohort.segments import PeerEvidence
from crosswind.models.explain.evidence.indicators import ComparedRun, RunsAlike


def peer_evidence(runs: Sequence[ComparedRun]) -> dict[str, PeerEvidence]:
    """Return by run id the evidence of every run that the others of its cohort and its system give."""
    seconds: dict[str, dict[str, float]] = {compared.run.run_id: {} for compared in runs}
    for alike in RUNS_ALIKE:
        for run_id, by_column in seconds_of_runs_alike(alike, runs):
            seconds[run_id] |= by_column
    shares = {lost.column: lost.shares(runs) for lost in COMPUTE_LOST}
    return {
        run_id: PeerEvidence(
            by_column, {column: of_runs[run_id] for column, of_runs in shares.items() if run_id in of_runs}
        )
        for run_id, by_column in seconds.items()
    }


def seconds_of_runs_alike(alike: RunsAlike, runs: Sequence[ComparedRun]) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield run id and, by column, the usual seconds of the *other* runs with its mark.

    Only of cohorts that are divided, with three others at least on either side. That runs alike ran at other times as
    well as with another mark, nothing here can separate.
    """
    for members in _cohorts(runs):
        means = np.array([[compared.phases[phase] for phase in alike.phases] for compared in members])
        marks = alike.marks(members)
        sizes = Counter(marks)
        for place, (compared, mark) in enumerate(zip(members, marks, strict=True)):
            if mark and sizes[mark] > FEWEST_RUNS and len(members) - sizes[mark] >= FEWEST_RUNS:
                others = [other_mark == mark and other != place for other, other_mark in enumerate(marks)]
                yield compared.run.run_id, dict(zip(alike.columns, usual_of(means[others]).tolist(), strict=True))


def _cohorts(runs: Sequence[ComparedRun]) -> list[list[ComparedRun]]:
    cohorts: dict[str, list[ComparedRun]] = {}
    for compared in runs:
        cohorts.setdefault(cohort_key(compared.run), []).append(compared)
    return list(cohorts.values())

"""Explanations that were computed before and hold: of what is stored of their run, and of nearly the same cohort."""

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict

import msgspec

from crosswind.data.catalog.database import NO_ANSWER
from crosswind.data.schema.answers.explanations import Explanation
from crosswind.data.schema.run_verdict import RunVerdict
from crosswind.data.store.store import Store
from crosswind.models.explain.cohort.features import FORM
from crosswind.models.explain.cohort.peers import Cohort

FEW_RUNS = 20  # in a cohort: with fewer every other run may change a verdict
CHANGED_SHARE = 0.1  # of its runs, by which a larger cohort may change before its verdicts are computed again


def stored_explanations(store: Store, run_ids: Collection[str], *, is_current: bool = True) -> dict[str, Explanation]:
    """Return the explanations that hold, by run; unless `is_current`, also those that are to be computed again."""
    with store.catalog.read() as session:
        texts = session.verdicts.explanations(run_ids, FORM, is_current=is_current)
    return {run_id: msgspec.convert(json.loads(text), Explanation) for run_id, text in texts.items()}


def store_explanations(store: Store, cohort: Cohort, explanations: Mapping[str, Explanation]) -> None:
    """Store the explanations of runs that have ended, as far as the store can be written."""
    kept = {run_id: one for run_id, one in explanations.items() if run_id in cohort.revisions}
    if not kept:
        return
    with suppress(*NO_ANSWER), store.catalog.write() as session:
        for run_id, explanation in sorted(kept.items()):  # in one order, as whoever locks several rows
            text, revision = json.dumps(asdict(explanation)), cohort.revisions[run_id]
            session.verdicts.put_verdict(
                verdict_of(explanation), text, revision=revision, allowed=allowed_changes(explanation.cohort_runs)
            )


def allowed_changes(cohort_runs: int) -> int:
    """Return how many runs of a cohort may come or change before a verdict in it is computed again."""
    return 0 if cohort_runs < FEW_RUNS else int(CHANGED_SHARE * cohort_runs)


def verdict_of(explanation: Explanation) -> RunVerdict:
    """Return what lists show of an explanation."""
    excess = explanation.excess
    return RunVerdict(
        explanation.run_id,
        verdict=explanation.verdict,
        cause=explanation.cause,
        measured_seconds=explanation.measured_seconds,
        expected_seconds=explanation.expected_seconds,
        excess_seconds=None if excess is None else excess.value,
        excess_low_seconds=None if excess is None else excess.low,
        excess_high_seconds=None if excess is None else excess.high,
    )

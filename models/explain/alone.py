"""Explanations of runs that no others can be compared with: by their own steps, by their ranks, and by formulas."""

from dataclasses import replace

from crosswind.data.schema.answers.explanations import Expectation, Explanation, Interval, Verdict
from crosswind.data.schema.words import capital
from crosswind.models.explain.actions import advice
from crosswind.models.explain.causes.cause import milliseconds
from crosswind.models.explain.certainty import certainty
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.sentence import Place, causes, change_sentence, formula_words, lag_sentence
from crosswind.models.explain.shares import excess_of, shares_of, unexplained_of
from crosswind.models.explain.significance import Finding
from crosswind.models.explain.split import Split
from crosswind.models.explain.verdict import first_of, in_phase_of, is_behind_it, low
from crosswind.models.explain.within import Within
from crosswind.models.explain.within.change import Change
from crosswind.models.explain.within.lag import Lag


def explained_alone(run: Segments, explanation: Explanation, within: Within) -> Explanation:
    """Return the explanation, which abstains, with a verdict from the run itself, as far as it allows one."""
    if within.change is not None and low(within.change.parts.replicates["excess"]) > 0:
        return _slowed(run, explanation, within.change, within.lag)
    if within.lag is not None:
        return _delayed(run, explanation, within.lag)
    if within.formulas is not None and run.time > within.formulas.high:
        return _beyond_formulas(run, explanation, within.formulas)
    return replace(explanation, sentence=_abstention(explanation, run, within))


def _slowed(run: Segments, explanation: Explanation, change: Change, lag: Lag | None) -> Explanation:
    """Return that it is slower than its own earlier steps."""
    behind = lag if lag is not None and is_behind_it(lag, change.parts.excess) else None
    first = in_phase_of(behind, first_of(change.parts))
    rank = None if behind is None else behind.rank
    named = causes(change.parts, [first], Place(run.numbers, rank))
    late = "" if behind is None else f" {capital(lag_sentence(behind, run.ranks))}"
    said = f"Slow: {change_sentence(change.steps)}. {named}{late}"
    verdict = replace(explanation, verdict=Verdict.SLOW, sentence=said, expected_from=Expectation.OWN_STEPS)
    return _with_numbers(run, verdict, change.parts, (first, rank))


def _delayed(run: Segments, explanation: Explanation, lag: Lag) -> Explanation:
    """Return that its ranks wait for one of them."""
    first = lag.finding
    times = f"{milliseconds(run.time - lag.cost)} instead of {milliseconds(run.time)}"
    said = f"One rank delays it: {lag_sentence(lag, run.ranks)} Without that a step would take {times}."
    verdict = replace(
        explanation, verdict=Verdict.ONE_RANK_DELAYS, sentence=said, expected_from=Expectation.OTHER_RANKS
    )
    return _with_numbers(run, verdict, lag.parts, (first, lag.rank))


def _with_numbers(
    run: Segments, explanation: Explanation, parts: Split, named: tuple[Finding, int | None]
) -> Explanation:
    """Return the explanation with the split's numbers; named: the first cause and its rank."""
    (first, rank), steps = named, len(run.values)
    return replace(
        explanation,
        next_action=advice(explanation.verdict, first, rank),
        measured_seconds=parts.measured_time * steps,
        expected_seconds=parts.expected_time * steps,
        excess=excess_of(parts, steps),
        shares=tuple(shares_of(parts, steps)),
        unexplained=unexplained_of(parts, steps),
        cause=first.cause,
        confidence=certainty(first.cause, parts),
        culprit_rank=rank,
        culprit_ratio=None if rank is None else float((run.culprits == rank).mean()),
        phase=first.phase,
    )


def _beyond_formulas(run: Segments, explanation: Explanation, formulas: Interval) -> Explanation:
    """Return that it took longer than formulas expect, which is not surely slow: their constants are guesses."""
    steps, excess = len(run.values), run.time - formulas.value
    beyond = Interval(excess * steps, (run.time - formulas.high) * steps, (run.time - formulas.low) * steps)
    return replace(
        explanation,
        verdict=Verdict.PERHAPS_SLOW,
        sentence=f"Perhaps slow: {formula_words(formulas, run.time)}; no other run tells how long it usually takes.",
        measured_seconds=run.time * steps,
        expected_seconds=formulas.value * steps,
        excess=beyond,
        unexplained=beyond,
        expected_from=Expectation.FORMULAS,
    )


def _abstention(explanation: Explanation, run: Segments, within: Within) -> str:
    """Return the sentence with what the run shows by itself."""
    shown = []
    if run.ranks > 1:
        shown.append("no rank keeps the others waiting")
    shown.append("its own steps did not become slower")
    if within.formulas is not None:
        shown.append(formula_words(within.formulas, run.time))
    return f"{explanation.sentence.removesuffix('.')}. By itself: {'; '.join(shown)}."

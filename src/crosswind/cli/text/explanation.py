"""Explanations as a terminal shows them, in 80 columns."""

from crosswind.cli.text.output import colour
from crosswind.dashboards.wording import cause_words, certainty, count, estimate, seconds
from crosswind.data.schema.answers.explanations import CauseShare, Expectation, Explanation, Interval, Verdict
from crosswind.data.schema.words import words

BAR = 24
COMPARED_WITH = {
    Expectation.OTHER_RANKS: "its other ranks",
    Expectation.OWN_STEPS: "its own steps before",
    Expectation.FORMULAS: "formulas",
}
MARKS = {
    Verdict.SLOW: ("▲", "31"),
    Verdict.PERHAPS_SLOW: ("◆", "33"),
    Verdict.ONE_RANK_DELAYS: ("■", "33"),
    Verdict.NORMAL: ("●", "32"),
    Verdict.INSUFFICIENT_EVIDENCE: ("?", "90"),
}


def verdict_line(explanation: Explanation) -> str:
    """Mark and sentence."""
    mark, code = MARKS[explanation.verdict]
    return f"{colour(mark, code)} {explanation.sentence}"


def explanation_text(explanation: Explanation) -> str:
    """Verdict, waterfall from expected to measured, evidence, next action."""
    lines = [f"{colour('✖', '31')} Failed: {explanation.failure}."] if explanation.failure else []
    lines.append(verdict_line(explanation))
    if explanation.excess and explanation.unexplained:
        lines += ["", *_waterfall(explanation, explanation.excess, explanation.unexplained), ""]
        lines += [
            f"evidence: {words(share.cause)}: {share.evidence}" for share in _notable(explanation, explanation.excess)
        ]
    if explanation.cause:
        lines.append(f"cause: {cause_words(explanation)}")
        lines += _where(explanation)
        lines.append(f"sure: {_sure(explanation.confidence)}")
    lines += _by_itself(explanation)
    if explanation.also:
        lines.append(f"also: {', '.join(map(words, explanation.also))}")
    lines += [f"missing: {gap}" for gap in explanation.missing]
    lines += [
        f"next: {explanation.next_action}",
        f"from: {count(explanation.steps, 'step')}, compared with {_compared_with(explanation)}",
    ]
    return "\n".join(lines)


def _sure(confidence: float | None) -> str:
    if confidence is None:
        return "of the place alone; redraws of the evidence disagree about the cause"
    return f"{certainty(confidence)} of redrawn evidence has this cause first"


def _compared_with(explanation: Explanation) -> str:
    others, origin = count(explanation.cohort_runs, "other run"), explanation.expected_from
    if origin in (None, Expectation.COHORT):
        return f"{others} of its cohort"
    return f"{COMPARED_WITH[origin]} ({others} of its cohort stored)"


def _by_itself(explanation: Explanation) -> list[str]:
    """Return what the run shows without other runs."""
    lines = []
    if (lag := explanation.lag) is not None:
        band = estimate(lag.seconds.value, lag.seconds.low, lag.seconds.high).removeprefix("+")
        usual = "; most other runs of its cohort show the same" if lag.is_usual else ""
        lines.append(f"lag: rank {lag.rank} comes {band} a step after its peers, in {lag.phase}{usual}")
    if (change := explanation.change) is not None:
        until = "" if change.last_step is None else f" to {change.last_step}"
        before, since = seconds(change.before_seconds), seconds(change.since_seconds)
        lines.append(f"since: step {change.first_step}{until}: {since} a step, {before} before")
    if (formulas := explanation.formula_seconds) is not None:
        low, high = seconds(formulas.low), seconds(formulas.high)
        lines.append(f"formulas: {seconds(formulas.value)} a step [{low} to {high}]")
    return lines


def _where(explanation: Explanation) -> list[str]:
    node, rank = explanation.culprit_node, explanation.culprit_rank
    if node is None:
        return []
    if rank is None:
        return [f"where: node {node}, on its links"]
    return [f"where: node {node}, its rank {rank} came last in {explanation.culprit_ratio:.0%} of the steps"]


def _waterfall(explanation: Explanation, excess: Interval, unexplained: Interval) -> list[str]:
    rows = [(share.cause, share.seconds) for share in explanation.shares]
    rows.append(("unexplained", unexplained))
    scale = max(abs(excess.value), *(abs(interval.value) for _, interval in rows)) or 1.0
    bars = [bar(name, interval, scale) for name, interval in rows]
    head = f"  {'expected':<16} {'':<{BAR}} {seconds(explanation.expected_seconds)}"
    return [head, *bars, f"  {'measured':<16} {'':<{BAR}} {seconds(explanation.measured_seconds)}"]


def bar(name: str, interval: Interval, scale: float) -> str:
    """A line of a waterfall: a name, its part of the scale, and the estimate."""
    filled = "█" * round(BAR * abs(interval.value) / scale)
    return f"  {words(name):<16} {filled:<{BAR}} {estimate(interval.value, interval.low, interval.high)}"


def _notable(explanation: Explanation, excess: Interval) -> list[CauseShare]:
    return [share for share in explanation.shares if share.seconds.value > 0.05 * abs(excess.value)]

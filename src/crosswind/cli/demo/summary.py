"""What the demo found, as a terminal shows it."""

from collections.abc import Sequence

from crosswind.cli.demo.loop import Checked, DemoResult, Explained, Tuned
from crosswind.cli.output import plain, table
from crosswind.cli.predicted_text import answer_text
from crosswind.cli.render import explanation_text
from crosswind.dashboards.wording import NONE, configuration_words, seconds
from crosswind.models.explain.explanation import Verdict

HEADINGS = ("run", "injected", "verdict", "cause named", "sure", "step time", "expected", "right")


def summary(result: DemoResult) -> str:
    """The whole story: each run's verdict beside what was injected, prediction and check, tuning."""
    slowest = max(result.explained, key=_excess_ratio)
    parts = [
        table(HEADINGS, [_row(run) for run in result.explained]),
        score_line(result.explained),
        f"The slowest, run {slowest.run_id}:\n{_indented(explanation_text(slowest.explanation))}",
        f"The next undisturbed run, predicted and then measured:\n{_indented(_check_text(result.checked))}",
    ]
    if result.tuned:
        parts.append(_tuned_text(result.tuned))
    return "\n\n".join(parts)


def score_line(explained: Sequence[Explained]) -> str:
    """How many disturbed runs got their cause named, and how many undisturbed ones were called slow."""
    disturbed = [run for run in explained if run.plan.truth]
    named = sum(run.explanation.cause == run.plan.truth for run in disturbed)
    alarms = sum(is_false_alarm(run) for run in explained)
    return (
        f"{named} of {len(disturbed)} disturbed runs: the injected cause was named. "
        f"{alarms} of {len(explained) - len(disturbed)} undisturbed runs were called slow."
    )


def is_false_alarm(run: Explained) -> bool:
    """Whether an undisturbed run was called slow."""
    return run.plan.truth is None and run.explanation.verdict is Verdict.SLOW


def _row(run: Explained) -> tuple[str, ...]:
    explanation = run.explanation
    steps = explanation.steps or 1
    right = explanation.cause == run.plan.truth and not is_false_alarm(run)
    return (
        run.run_id[-6:],
        run.plan.injected,
        str(explanation.verdict),
        explanation.cause or NONE,
        f"{explanation.confidence:.0%}" if explanation.confidence is not None else NONE,
        seconds(None if explanation.measured_seconds is None else explanation.measured_seconds / steps),
        seconds(None if explanation.expected_seconds is None else explanation.expected_seconds / steps),
        "yes" if right else "NO",
    )


def _excess_ratio(run: Explained) -> float:
    explanation = run.explanation
    if explanation.excess is None or not explanation.expected_seconds:
        return 0.0
    return explanation.excess.value / explanation.expected_seconds


def _check_text(checked: Checked) -> str:
    measured = f"measured: {seconds(checked.measured_seconds)} a step"
    if checked.answer is None:
        return f"not predicted: {checked.abstained}\n{measured}"
    low, high = (float(checked.answer.prediction.at(level)[0]) for level in (0.05, 0.95))
    verdict = "inside" if low <= checked.measured_seconds <= high else "outside"
    return f"{answer_text(plain(checked.answer))}\n{measured}, {verdict} the interval"


def _tuned_text(tuned: Tuned) -> str:
    best = tuned.best.objective or 0.0
    configuration = configuration_words(tuned.best.configuration)
    change = tuned.default / best if best else 1.0
    return (
        f"Tuned in {tuned.trials} trials: {configuration} takes {seconds(best)} per 1000 samples, "
        f"the default {seconds(tuned.default)} ({change:.3g}x)."
    )


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())

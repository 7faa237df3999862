"""Results of the demo, as a terminal shows them."""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from crosswind.cli.text.explanation import explanation_text
from crosswind.cli.text.output import table
from crosswind.cli.text.prediction import answer_text
from crosswind.cli.verbs.demo.disturbance import LARGEST_SHARE
from crosswind.cli.verbs.demo.loop import WORKLOAD, Checked, DemoResult, Explained, Tuned
from crosswind.cli.verbs.demo.plan import CONFIGURATION, RANKS
from crosswind.dashboards.wording import NONE, certainty, configuration_words, scalar, seconds
from crosswind.models.next_run.quantiles import distribution

HEADINGS = ("run", "injected", "verdict", "cause named", "sure", "step time", "expected", "right")


def summary(result: DemoResult) -> str:
    """Return all results: verdicts and injected disturbances of runs, prediction and check, tuning."""
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


def next_commands(home: Path, result: DemoResult) -> list[str]:
    """Return what to type to ask more about the demo's runs, in a shell of this folder."""
    crosswind, slowest = _program(), max(result.explained, key=_excess_ratio)
    configuration = " ".join(f"--config {name}={scalar(value)}" for name, value in CONFIGURATION.items())
    elsewhere = [name for name in ("CROSSWIND_DATABASE", "CROSSWIND_SERVER") if os.environ.get(name)]
    return [
        *([f"unset {' '.join(elsewhere)}"] if elsewhere else []),
        f"export CROSSWIND_HOME={shlex.quote(str(home))}",
        f"{crosswind} runs",
        f"{crosswind} explain {slowest.run_id[-6:]}",
        f"{crosswind} predict --workload {WORKLOAD} --ranks {RANKS} {configuration}",
        f"{crosswind} stragglers",
    ]


def _program() -> str:
    """Return the command as this shell has it."""
    if shutil.which("crosswind"):
        return "crosswind"
    program = Path(sys.executable).with_name("crosswind")
    here = Path.cwd()
    return shlex.quote(str(program.relative_to(here) if program.is_relative_to(here) else program))


def score_line(explained: Sequence[Explained]) -> str:
    """Return how many injected causes were named, and how many other runs called slow, of the undisturbed runs."""
    counted = [run for run in explained if run.disturbance is None]
    lines = [_score(counted)] if counted else []
    if left_out := len(explained) - len(counted):
        lines.append(
            f"{left_out} of {len(explained)} runs do not count: the hypervisor or other programs took "
            f"{LARGEST_SHARE:.0%} or more of the cores' time, as the kernel counts it."
        )
    return "\n".join(lines)


def _score(counted: Sequence[Explained]) -> str:
    injected = [run for run in counted if run.plan.truth]
    named = sum(run.is_right for run in injected)
    alarms = sum(not run.is_right for run in counted if not run.plan.truth)
    return (
        f"{named} of {len(injected)} injected causes were named. "
        f"{alarms} of {len(counted) - len(injected)} runs with nothing injected were called slow."
    )


def _row(run: Explained) -> tuple[str, ...]:
    explanation = run.explanation
    steps = explanation.steps or 1
    return (
        run.run_id[-6:],
        run.plan.injected,
        str(explanation.verdict),
        explanation.cause or NONE,
        certainty(explanation.confidence),
        seconds(None if explanation.measured_seconds is None else explanation.measured_seconds / steps),
        seconds(None if explanation.expected_seconds is None else explanation.expected_seconds / steps),
        _right(run),
    )


def _right(run: Explained) -> str:
    if run.disturbance:
        return f"disturbed by: {run.disturbance}"
    return "yes" if run.is_right else "NO"


def _excess_ratio(run: Explained) -> float:
    explanation = run.explanation
    if explanation.excess is None or not explanation.expected_seconds:
        return 0.0
    return explanation.excess.value / explanation.expected_seconds


def _check_text(checked: Checked) -> str:
    measured = f"measured: {seconds(checked.measured_seconds)} a step"
    if checked.answer is None:
        return f"not predicted: {checked.abstained}\n{measured}"
    low, high = (float(distribution(checked.answer).at(level)[0]) for level in (0.05, 0.95))
    verdict = "inside" if low <= checked.measured_seconds <= high else "outside"
    return f"{answer_text(checked.answer)}\n{measured}, {verdict} the interval"


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

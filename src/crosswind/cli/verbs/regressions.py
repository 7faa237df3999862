"""`crosswind regressions`: when workloads became slower or faster for good, and what changed just then."""

import argparse

from crosswind.cli.arguments import configure_server
from crosswind.cli.progress import Progress
from crosswind.cli.quantities import whole
from crosswind.cli.text.output import printable, say_answer
from crosswind.client.connection import connect
from crosswind.dashboards.wording import count, percent, times, utc
from crosswind.data.schema.answers.stragglers import ChangedFact, Regression, Regressions
from crosswind.data.schema.question import REGRESSION_RUNS
from crosswind.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--workload", help="of this one alone (default: of all)")
    parser.add_argument("--system", help="on this system alone (default: on all)")
    parser.add_argument(
        "--runs",
        type=whole,
        default=REGRESSION_RUNS,
        help=f"the newest completed to look at (default {REGRESSION_RUNS})",
    )
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the lasting changes."""
    with connect(arguments.server, settings=settings) as client, Progress("looking for changes"):
        answer = client.regressions(arguments.system, arguments.workload, runs=arguments.runs)
    say_answer(answer, regressions_text, as_json=arguments.json)
    return 0


def regressions_text(answer: Regressions) -> str:
    """Return every change in a line, with its suspects below."""
    lines = [line for change in answer.changes for line in _change(change)]
    if not lines:
        lines = [f"No lasting change in {count(answer.runs, 'completed run')}."]
    lines.append(f"from: {count(answer.runs, 'run')} of {count(answer.workloads, 'workload')}")
    if answer.too_few:
        lines.append(f"too few runs: {printable(', '.join(answer.too_few[:10]))}")
    return "\n".join([*lines, *(f"warning: {warning}" for warning in answer.warnings)])


def _change(change: Regression) -> list[str]:
    words = "slower" if change.ratio > 1 else "faster"
    compared = f"{count(change.runs_since, 'run')} against {change.runs_before}"
    name = printable(f"{change.workload} on {change.system}")
    head = f"{name}: {words} since {utc(change.since_ns)}, {times(change.ratio)} the time of before ({compared})"
    return [head, *(f"  {_suspect(one)}" for one in change.suspects)] + (
        [] if change.suspects else ["  no recorded fact of the runs changed with it"]
    )


def _suspect(suspect: ChangedFact) -> str:
    off = "at that very run" if not suspect.runs_off else f"{count(suspect.runs_off, 'run')} off"
    often = "" if suspect.switches == 1 else f", of {suspect.switches} changes in all"
    changed = printable(f"{suspect.fact}: {suspect.before[:60]} -> {suspect.since[:60]}")
    return f"{changed} ({off}{often}; exact to {percent(suspect.exactness)})"

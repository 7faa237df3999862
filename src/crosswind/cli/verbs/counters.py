"""`crosswind counters`: which counters of the nodes go with slow runs of a workload."""

import argparse
from collections.abc import Sequence
from functools import partial
from math import isnan

from crosswind.cli.arguments import configure_server
from crosswind.cli.progress import Progress
from crosswind.cli.quantities import whole
from crosswind.cli.text.output import printable, say_answer, table
from crosswind.client.connection import connect
from crosswind.dashboards.wording import NONE, count, percent, times
from crosswind.data.schema.answers.effects import CounterEffect, CounterRanking, Interference
from crosswind.settings import Settings

ROWS = 20


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--workload", help="of this one alone (default: all, each run against its own cohort)")
    parser.add_argument("--system", help="of which system (default: this system)")
    parser.add_argument("--limit", type=whole, default=ROWS, help=f"how many to show (default {ROWS})")
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the counters that go with slow runs."""
    with connect(arguments.server, settings=settings) as client, Progress("comparing counters"):
        answer = client.counters(arguments.workload, arguments.system or settings.system)
    say_answer(answer, partial(counters_text, limit=arguments.limit), as_json=arguments.json)
    return 0


def counters_text(answer: CounterRanking, limit: int) -> str:
    """Return the runs compared, the first counters in a table, and warnings."""
    tested = [counter for counter in answer.counters if not counter.follows_duration]
    mattering = sum(counter.matters for counter in tested)
    lines = [*heading(answer), _tested(answer, len(tested), mattering)]
    if tested:
        lines += ["", _table(tested[:limit])]
    if len(tested) > limit:
        lines.append(f"and {count(len(tested) - limit, 'counter')} more: --limit")
    return "\n".join([*lines, *(f"warning: {warning}" for warning in answer.warnings)])


def heading(answer: CounterRanking | Interference) -> list[str]:
    """Return the line about the runs compared."""
    whose = f"{printable(answer.workload)} on " if answer.workload else ""
    compared = f"{answer.compared_runs} of {count(answer.runs, 'completed run')} compared with their cohorts"
    return [f"{whose}{printable(answer.system)}: {compared}"]


def _tested(answer: CounterRanking, tested: int, mattering: int) -> str:
    following = len(answer.counters) - tested
    if not answer.counters:
        return f"no counter was tested, {answer.sampled} were sampled"
    tested_words = count(len(answer.counters), "counter")
    rest = f"{following} only follow the run's length, {answer.constant} more did not vary in enough runs"
    return f"{mattering} of {tested_words} go with slow runs (q < 0.05); {rest}"


def _table(effects: Sequence[CounterEffect]) -> str:
    headings = ("counter", "rho", "90 %", "per deviation", "q", "steady", "trees", "distance")
    return table(headings, [_row(effect) for effect in effects])


def _row(effect: CounterEffect) -> tuple[str, ...]:
    return (
        ("* " if effect.matters else "  ") + effect.shown.name,
        f"{effect.rho:+.2f}",
        f"[{effect.rho_low:+.2f} .. {effect.rho_high:+.2f}]",
        times(effect.deviation_ratio),
        f"{effect.q:.2g}",
        percent(effect.stability),
        percent(effect.importance),
        NONE if isnan(effect.distance_correlation) else f"{effect.distance_correlation:.2f}",
    )

"""`crosswind counters`: which counters of the nodes go with slow runs of a workload."""

import argparse
from collections.abc import Mapping
from importlib import import_module
from typing import Any
from urllib.parse import urlencode

from crosswind.cli.asking import configure_server, get, server_of
from crosswind.cli.output import printable, say, say_json, table
from crosswind.cli.quantities import whole
from crosswind.dashboards.wording import NONE, count, percent, times
from crosswind.settings import Settings

ROWS = 20
Told = Mapping[str, Any]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--workload", help="of this one alone (default: all, each run against its own cohort)")
    parser.add_argument("--system", help="of which system (default: this system)")
    parser.add_argument("--limit", type=whole, default=ROWS, help=f"how many to show (default {ROWS})")
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Says which counters go with slow runs."""
    system = arguments.system or settings.system
    if server := server_of(arguments):
        asked = {"workload": arguments.workload, "system": system}
        told = get(server, f"/v1/counters?{urlencode({name: value for name, value in asked.items() if value})}")
    else:
        told = import_module("crosswind.cli.effects_at_hand").counters(settings, arguments.workload, system)
    if arguments.json:
        say_json(told)
    else:
        say(counters_text(told, arguments.limit))
    return 0


def counters_text(told: Told, limit: int) -> str:
    """What was compared, the first counters in a table, and what cannot be said."""
    tested = [each for each in told["counters"] if not each["follows_duration"]]
    mattering = sum(each["matters"] for each in tested)
    lines = [*heading(told), _found(told, len(tested), mattering)]
    if tested:
        lines += ["", _table(tested[:limit])]
    if len(tested) > limit:
        lines.append(f"and {count(len(tested) - limit, 'counter')} more: --limit")
    return "\n".join([*lines, *(f"warning: {each}" for each in told["warnings"])])


def heading(told: Told) -> list[str]:
    """Whose runs were compared."""
    whose = f"{printable(told['workload'])} on " if told["workload"] else ""
    compared = f"{told['compared_runs']} of {count(told['runs'], 'completed run')} compared with their cohorts"
    return [f"{whose}{printable(told['system'])}: {compared}"]


def _found(told: Told, tested: int, mattering: int) -> str:
    following = len(told["counters"]) - tested
    if not told["counters"]:
        return f"no counter was tested, {told['sampled']} were sampled"
    tested_words = count(len(told["counters"]), "counter")
    rest = f"{following} only follow the run's length, {told['constant']} more did not vary in enough runs"
    return f"{mattering} of {tested_words} go with slow runs (q < 0.05); {rest}"


def _table(effects: list[Told]) -> str:
    headings = ("counter", "rho", "90 %", "per deviation", "q", "steady", "trees", "distance")
    return table(headings, [_row(each) for each in effects])


def _row(told: Told) -> tuple[str, ...]:
    return (
        ("* " if told["matters"] else "  ") + told["shown"]["name"],
        f"{told['rho']:+.2f}",
        f"[{told['rho_low']:+.2f} .. {told['rho_high']:+.2f}]",
        times(told["deviation_ratio"]),
        f"{told['q']:.2g}",
        percent(told["stability"]),
        percent(told["importance"]),
        NONE if told["distance_correlation"] is None else f"{told['distance_correlation']:.2f}",
    )

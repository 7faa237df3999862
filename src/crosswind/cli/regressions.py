"""`crosswind regressions`: when workloads became slower or faster for good, and what changed just then."""

import argparse
from collections.abc import Mapping
from importlib import import_module
from typing import Any
from urllib.parse import urlencode

from crosswind.cli.asking import configure_server, get, server_of
from crosswind.cli.output import printable, say, say_json
from crosswind.cli.quantities import whole
from crosswind.dashboards.wording import count, percent, times, utc
from crosswind.settings import Settings

RUNS = 5000
Told = Mapping[str, Any]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--workload", help="of this one alone (default: of all)")
    parser.add_argument("--system", help="on this system alone (default: on all)")
    parser.add_argument("--runs", type=whole, default=RUNS, help=f"the newest completed to look at (default {RUNS})")
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Says what changed."""
    asked = {name: getattr(arguments, name) for name in ("system", "workload", "runs")}
    if server := server_of(arguments):
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        told = get(server, f"/v1/regressions?{query}")
    else:
        told = import_module("crosswind.cli.stragglers_at_hand").changes(settings, asked)
    if arguments.json:
        say_json(told)
    else:
        say(regressions_text(told))
    return 0


def regressions_text(told: Told) -> str:
    """Every change in a line, with what is suspected below it."""
    lines = [line for each in told["changes"] for line in _change(each)]
    if not lines:
        lines = [f"No lasting change in {count(told['runs'], 'completed run')}."]
    lines.append(f"from: {count(told['runs'], 'run')} of {count(told['workloads'], 'workload')}")
    if told["too_few"]:
        lines.append(f"too few runs to tell: {printable(', '.join(told['too_few'][:10]))}")
    return "\n".join([*lines, *(f"warning: {each}" for each in told["warnings"])])


def _change(each: Told) -> list[str]:
    words = "slower" if each["ratio"] > 1 else "faster"
    compared = f"{count(each['runs_since'], 'run')} against {each['runs_before']}"
    name = printable(f"{each['workload']} on {each['system']}")
    head = f"{name}: {words} since {utc(each['since_ns'])}, {times(each['ratio'])} the time of before ({compared})"
    return [head, *(f"  {_suspect(one)}" for one in each["suspects"] or ())] + (
        [] if each["suspects"] else ["  nothing that is recorded of the runs changed with it"]
    )


def _suspect(each: Told) -> str:
    off = "at that very run" if not each["runs_off"] else f"{count(each['runs_off'], 'run')} off"
    often = "" if each["switches"] == 1 else f", of {each['switches']} changes in all"
    changed = printable(f"{each['fact']}: {each['before'][:60]} -> {each['since'][:60]}")
    return f"{changed} ({off}{often}; exact to {percent(each['exactness'])})"

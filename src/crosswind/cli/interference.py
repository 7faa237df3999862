"""`crosswind interference`: which neighbours go with slow runs, by user, workload and job; users by pseudonym."""

import argparse
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from crosswind.cli.asking import configure_server, get, server_of
from crosswind.cli.counters import heading
from crosswind.cli.output import printable, say, say_json, table
from crosswind.cli.quantities import whole
from crosswind.dashboards.wording import count, percent, times
from crosswind.data.errors import InvalidInputError
from crosswind.settings import Settings

ROWS = 20
Told = Mapping[str, Any]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--workload", help="slow runs of this one alone (default: all, each against its own cohort)")
    parser.add_argument("--system", help="of which system (default: this system)")
    parser.add_argument(
        "--topology",
        type=Path,
        metavar="FILE",
        help="Slurm's topology.conf, or what `scontrol show topology` prints: neighbours on the same switch count too",
    )
    parser.add_argument("--limit", type=whole, default=ROWS, help=f"how many to show (default {ROWS})")
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Says who goes with slow runs."""
    told = _asked(arguments, settings)
    if arguments.json:
        say_json(told)
    else:
        say(interference_text(told, arguments.limit))
    return 0


def _asked(arguments: argparse.Namespace, settings: Settings) -> Told:
    system = arguments.system or settings.system
    if server := server_of(arguments):
        if arguments.topology is not None:
            raise InvalidInputError("--topology: a server does not read files of here; expected it without --server")
        asked = {"workload": arguments.workload, "system": system}
        return get(server, f"/v1/interference?{urlencode({name: value for name, value in asked.items() if value})}")
    groups = None
    if arguments.topology is not None:
        groups = import_module("crosswind.data.topology").switches_of(arguments.topology)
    at_hand = import_module("crosswind.cli.effects_at_hand")
    told: Told = at_hand.interference(settings, arguments.workload, system, groups=groups)
    return told


def interference_text(told: Told, limit: int) -> str:
    """What was compared, who was beside, the surest candidates in a table, and what cannot be said."""
    suspects = told["suspects"]
    lines = [*heading(told), _beside(told), *map(_blamed, (each for each in suspects if each["is_blamed"]))]
    if suspects and not any(each["is_blamed"] for each in suspects):
        lines.append("nobody is held to slow runs down: what is seen may be luck (q < 0.05 would not)")
    if suspects:
        lines += ["", _table(suspects[:limit])]
    if len(suspects) > limit:
        lines.append(f"and {count(len(suspects) - limit, 'candidate')} more: --limit")
    return "\n".join([*lines, *(f"warning: {each}" for each in told["warnings"])])


def _beside(told: Told) -> str:
    seen = ", ".join(count(told["seen"][kind], kind) for kind in ("user", "workload", "job"))
    tested = f"{count(told['candidates'], 'candidate')} often enough to be tested"
    apart = f", {told['inseparable']} of them cannot be told from drift" if told["inseparable"] else ""
    return f"{count(told['accompanied_runs'], 'run')} had somebody beside: {seen}; {tested}{apart}"


def _blamed(told: Told) -> str:
    by = f"[{times(told['slowdown_low_ratio'])} .. {times(told['slowdown_high_ratio'])}]"
    rising = None if told["dose"] is None else told["dose"]["is_rising"]
    more = "" if rising is None else f"; {'more' if rising else 'no more'} delay with more of it"
    where = "" if told["candidate"]["scope"] == "node" else " on the same switch"
    return (
        f"{_name(told['candidate'])}{where}: {count(told['exposed_runs'], 'run')} beside it took "
        f"{times(told['slowdown_ratio'])} the time {by} (q {told['q']:.2g}){more}"
    )


def _table(suspects: list[Told]) -> str:
    headings = ("beside", "where", "runs", "share", "time", "90 %", "q", "steady", "explained by")
    return table(headings, [_row(each) for each in suspects])


def _row(told: Told) -> tuple[str, ...]:
    return (
        ("* " if told["is_blamed"] else "  ") + _name(told["candidate"]),
        told["candidate"]["scope"],
        str(told["exposed_runs"]),
        percent(told["mean_share"]),
        times(told["slowdown_ratio"]),
        f"[{told['slowdown_low_ratio']:.2f} .. {told['slowdown_high_ratio']:.2f}]",
        f"{told['q']:.2g}",
        percent(told["stability"]),
        _name(told["rides_with"]) if told["rides_with"] else "",
    )


def _name(candidate: Told) -> str:
    return printable(f"{candidate['kind']} {candidate['name']}")

"""`crosswind interference`: which neighbours go with slow runs, by user, workload and job; users by pseudonym."""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from crosswind.cli.arguments import configure_server, local
from crosswind.cli.progress import Progress
from crosswind.cli.quantities import whole
from crosswind.cli.text.output import printable, say_answer, table
from crosswind.cli.verbs.counters import heading
from crosswind.client.connection import connect
from crosswind.client.protocol import Client
from crosswind.dashboards.wording import count, percent, times
from crosswind.data.schema.answers.effects import Interference, Neighbour, NeighbourEffect, NeighbourKind
from crosswind.data.schema.topology import switches_of
from crosswind.settings import Settings

ROWS = 20


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
    """Print the neighbours that go with slow runs."""
    with connect(arguments.server, settings=settings) as client, Progress("comparing neighbours"):
        answer = _answer(client, arguments, arguments.system or settings.system)
    say_answer(answer, partial(interference_text, limit=arguments.limit), as_json=arguments.json)
    return 0


def _answer(client: Client, arguments: argparse.Namespace, system: str) -> Interference:
    if arguments.topology is None:
        return client.interference(arguments.workload, system)
    return local(client, "--topology").interference(arguments.workload, system, groups=switches_of(arguments.topology))


def interference_text(answer: Interference, limit: int) -> str:
    """Return the runs compared, their neighbours, the surest candidates in a table, and warnings."""
    suspects = answer.suspects
    lines = [
        *heading(answer),
        _neighbours(answer),
        *map(_blamed, (suspect for suspect in suspects if suspect.is_blamed)),
    ]
    if suspects and not any(suspect.is_blamed for suspect in suspects):
        lines.append("no neighbour is shown to slow runs down: the differences may be chance (no q is below 0.05)")
    if suspects:
        lines += ["", _table(suspects[:limit])]
    if len(suspects) > limit:
        lines.append(f"and {count(len(suspects) - limit, 'candidate')} more: --limit")
    return "\n".join([*lines, *(f"warning: {warning}" for warning in answer.warnings)])


def _neighbours(answer: Interference) -> str:
    seen = ", ".join(count(answer.seen[kind], kind) for kind in NeighbourKind)
    tested = f"{count(answer.candidates, 'candidate')} often enough to be tested"
    apart = f", {answer.inseparable} of them cannot be distinguished from drift" if answer.inseparable else ""
    return f"{count(answer.accompanied_runs, 'run')} had neighbours: {seen}; {tested}{apart}"


def _blamed(suspect: NeighbourEffect) -> str:
    by = f"[{times(suspect.slowdown_low_ratio)} .. {times(suspect.slowdown_high_ratio)}]"
    rising = None if suspect.dose is None else suspect.dose.is_rising
    more = "" if rising is None else f"; {'more' if rising else 'no more'} delay with more of it"
    where = "" if suspect.candidate.scope == "node" else " on the same switch"
    return (
        f"{_name(suspect.candidate)}{where}: {count(suspect.exposed_runs, 'run')} next to it took "
        f"{times(suspect.slowdown_ratio)} the time {by} (q {suspect.q:.2g}){more}"
    )


def _table(suspects: Sequence[NeighbourEffect]) -> str:
    headings = ("neighbour", "where", "runs", "share", "time", "90 %", "q", "steady", "explained by")
    return table(headings, [_row(suspect) for suspect in suspects])


def _row(suspect: NeighbourEffect) -> tuple[str, ...]:
    return (
        ("* " if suspect.is_blamed else "  ") + _name(suspect.candidate),
        suspect.candidate.scope,
        str(suspect.exposed_runs),
        percent(suspect.mean_share),
        times(suspect.slowdown_ratio),
        f"[{suspect.slowdown_low_ratio:.2f} .. {suspect.slowdown_high_ratio:.2f}]",
        f"{suspect.q:.2g}",
        percent(suspect.stability),
        _name(suspect.rides_with) if suspect.rides_with else "",
    )


def _name(candidate: Neighbour) -> str:
    return printable(f"{candidate.kind} {candidate.name}")

"""`crosswind stragglers`: which rank places, devices, nodes and switches are slower than their peers, since when."""

import argparse
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any
from urllib.parse import quote, urlencode

from crosswind.cli.asking import configure_server, get, server_of
from crosswind.cli.output import printable, say, say_json, table
from crosswind.cli.quantities import above_zero, whole
from crosswind.dashboards.wording import count, percent, seconds, times, utc
from crosswind.data.errors import InvalidInputError
from crosswind.settings import Settings

RUNS, LIMIT = 20_000, 20
HEADINGS = ("", "kind", "name", "ratio", "90 %", "slower", "runs", "since", "before", "from")
EPISODE_HEADINGS = ("who", "phase", "steps", "noticed after", "lag a step", "of the step")
Told = Mapping[str, Any]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--workload", help="of its runs alone (default: of all)")
    parser.add_argument("--system", help="of its runs alone (default: of all)")
    parser.add_argument("--runs", type=whole, default=RUNS, help=f"the newest to look at (default {RUNS})")
    parser.add_argument("--limit", type=whole, default=LIMIT, help=f"rows to show (default {LIMIT})")
    parser.add_argument("--topology", metavar="FILE", help="Slurm's topology.conf, to rank switches too")
    parser.add_argument("--live", metavar="RUN", help="instead: whom the ranks of this run wait for")
    parser.add_argument("--follow", type=above_zero, metavar="SECONDS", help="with --live: look again until it ends")
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Says who is slow."""
    if arguments.follow is not None and not arguments.live:
        raise InvalidInputError("--follow: expected together with --live RUN")
    if arguments.live:
        return _live(arguments, settings)
    asked = {name: getattr(arguments, name) for name in ("system", "workload", "runs", "limit")}
    if server := server_of(arguments):
        if arguments.topology:
            raise InvalidInputError("--topology: expected without a server, which does not read this file")
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        told = get(server, f"/v1/stragglers?{query}")
    else:
        told = import_module("crosswind.cli.stragglers_at_hand").ranking(settings, asked, arguments.topology)
    if arguments.json:
        say_json(told)
    else:
        say(ranking_text(told))
    return 0


def _live(arguments: argparse.Namespace, settings: Settings) -> int:
    shown: list[str] = []
    for told in _looks(arguments, settings):
        if arguments.json:
            say_json(told)
            continue
        text = live_text(told)
        if shown != [text]:
            say(text)
        shown = [text]
    return 0


def _looks(arguments: argparse.Namespace, settings: Settings) -> Iterator[Told]:
    if server := server_of(arguments):
        if arguments.follow is not None:
            raise InvalidInputError("--follow: expected without a server")
        yield get(server, f"/v1/runs/{quote(arguments.live, safe='')}/stragglers")
        return
    yield from import_module("crosswind.cli.stragglers_at_hand").watched(settings, arguments.live, arguments.follow)


def ranking_text(told: Told) -> str:
    """A verdict, the table, and what to beware of."""
    named = [each for each in told["ranked"] if each["named"]]
    lines = [_verdict(told, named)]
    if told["ranked"]:
        lines += ["", table(HEADINGS, [_row(each) for each in told["ranked"]]), ""]
    runs = f"from: {count(told['runs'], 'run')}, {told['compared_runs']} with ranks on several nodes"
    more = f"; {told['timed_runs']} by their time alone" if told["timed_runs"] else ""
    noise = told["noise_ratio"]
    lines.append(runs + more + ("" if noise is None else f"; a node differs by {percent(noise)} from run to run"))
    return "\n".join([*lines, *(f"warning: {each}" for each in told["warnings"])])


def _verdict(told: Told, named: list[Any]) -> str:
    if not named:
        return f"No straggler: none of {told['compared']} compared is slower by more than 5 % with 95 % certainty."
    worst = max(named, key=lambda each: float(each["low_ratio"]))
    since = f" since {utc(worst['since_ns'])}" if worst["since"] != "first run" else ""
    who = f"{worst['kind']} {printable(worst['name'])}"
    more = f"; {count(len(named) - 1, 'other')} named" if len(named) > 1 else ""
    advice = f"\n#SBATCH --exclude={printable(worst['name'])}" if worst["kind"] == "node" else ""
    return f"{who} takes {times(worst['ratio'])} the time of its peers{since}{more}.{advice}"


def _row(each: Told) -> tuple[str, ...]:
    since = each["since"] if each["since_ns"] is None else f"{each['since']} {utc(each['since_ns'])}"
    return (
        "*" if each["named"] else "",
        each["kind"],
        each["name"],
        times(each["ratio"]),
        f"[{each['low_ratio']:.2f} .. {each['high_ratio']:.2f}]",
        percent(each["chance_slower"]),
        str(each["runs"]),
        since if each["kind"] == "node" else "",
        "" if each["was_ratio"] is None else times(each["was_ratio"]),
        each["basis"],
    )


def live_text(told: Told) -> str:
    """Whom the run waits for now, then everybody it waited for."""
    now = [each for each in told["episodes"] if each["last_step"] is None]
    lines = [f"{printable(told['run_id'])} ({told['state']}, {count(told['ranks'], 'rank')}): {_now(told, now)}"]
    if told["episodes"]:
        lines += ["", table(EPISODE_HEADINGS, [_episode(each) for each in told["episodes"]]), ""]
    lines += _what_if(told["slowdown"])
    lines.append(f"from: {count(told['steps'], 'step')}; noticed from the newest rows at the time")
    return "\n".join([*lines, *(f"warning: {each}" for each in told["warnings"])])


def _what_if(slowdown: Told | None) -> list[str]:
    if slowdown is None:
        return []
    most = max(range(len(slowdown["without"])), key=lambda rank: float(slowdown["without"][rank]))
    mended = f"with rank {most} alone as the others {times(slowdown['without'][most])}"
    return [f"what if: with equal ranks it would be {times(slowdown['whole'])} faster, {mended}"]


def _now(told: Told, now: list[Any]) -> str:
    if not told["steps"]:
        return "nothing can be told"
    is_running = told["state"] == "running"
    among = now if is_running else told["episodes"]
    if not among:
        return "nobody is waited for" if is_running else "nobody was waited for"
    each = max(among, key=lambda one: float(one["lag_seconds"]) * (1 if is_running else _length(told, one)))
    part = "" if each["rank"] is None else f" in {each['phase']}"
    when = f"since step {each['first_step']}" if is_running else f"in steps {_steps(each)}"
    waits = "waits" if is_running else "waited most"
    return f"{waits} for {_who(each)}{part}, {seconds(each['lag_seconds'])} a step {when}"


def _length(told: Told, each: Told) -> int:
    last = told["newest_step"] if each["last_step"] is None else each["last_step"]
    return int(last - each["first_step"] + 1)


def _steps(each: Told) -> str:
    return f"{each['first_step']} to {'the end' if each['last_step'] is None else each['last_step']}"


def _who(each: Told) -> str:
    return "the fabric" if each["rank"] is None else f"rank {each['rank']}"


def _episode(each: Told) -> tuple[str, ...]:
    return (
        _who(each),
        each["phase"],
        _steps(each),
        seconds(each["noticed_after_seconds"]),
        seconds(each["lag_seconds"]),
        percent(each["lag_ratio"]),
    )

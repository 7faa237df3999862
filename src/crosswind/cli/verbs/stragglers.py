"""`crosswind stragglers`: which rank places, devices, nodes and switches are slower than their peers, since when."""

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from crosswind.cli.arguments import configure_server, local
from crosswind.cli.progress import Progress
from crosswind.cli.quantities import above_zero, whole
from crosswind.cli.text.output import printable, say, say_answer, say_json, table
from crosswind.cli.text.replay import replay_text
from crosswind.cli.text.waiting import steps_words, waiting_words, who
from crosswind.client.connection import connect
from crosswind.client.protocol import Client
from crosswind.client.run_names import RUN_HELP, run_named
from crosswind.dashboards.wording import count, percent, seconds, times, utc
from crosswind.data.schema.answers.stragglers import Episode, PeerRanking, RankedPeer, RunStragglers, Slowdown
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.question import RANKED_RUNS
from crosswind.data.schema.topology import switches_of
from crosswind.settings import Settings

LIMIT = 20
HEADINGS = ("", "kind", "name", "ratio", "90 %", "slower", "runs", "since", "before", "from")
EPISODE_HEADINGS = ("who", "phase", "steps", "noticed after", "lag a step", "of the step")


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--workload", help="of its runs alone (default: of all)")
    parser.add_argument("--system", help="of its runs alone (default: of all)")
    parser.add_argument(
        "--runs", type=whole, default=RANKED_RUNS, help=f"the newest to look at (default {RANKED_RUNS})"
    )
    parser.add_argument("--limit", type=whole, default=LIMIT, help=f"rows to show (default {LIMIT})")
    parser.add_argument("--topology", metavar="FILE", help="Slurm's topology.conf, to rank switches too")
    parser.add_argument(
        "--live", metavar="RUN", help=f"instead: the ranks that others in this run, {RUN_HELP}, wait for"
    )
    parser.add_argument(
        "--replay", metavar="RUN", help="instead: the run's time if its ranks were equal, and who makes the difference"
    )
    parser.add_argument("--follow", type=above_zero, metavar="SECONDS", help="with --live: look again until it ends")
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the stragglers."""
    if arguments.follow is not None and not arguments.live:
        raise InvalidInputError("--follow: expected together with --live RUN")
    if arguments.live and arguments.replay:
        raise InvalidInputError("--live and --replay: expected one of them")
    with connect(arguments.server, settings=settings) as client:
        if arguments.live:
            _show_live(client, arguments)
        elif arguments.replay:
            _show_replay(client, arguments)
        else:
            _show_ranking(client, arguments)
    return 0


def _show_ranking(client: Client, arguments: argparse.Namespace) -> None:
    scope, size = (arguments.system, arguments.workload), {"runs": arguments.runs, "limit": arguments.limit}
    with Progress("comparing peers"):
        if arguments.topology:
            here = local(client, "--topology")
            answer = here.stragglers(*scope, **size, switches=switches_of(Path(arguments.topology)))
        else:
            answer = client.stragglers(*scope, **size)
    say_answer(answer, ranking_text, as_json=arguments.json)


def _show_replay(client: Client, arguments: argparse.Namespace) -> None:
    answer = client.replay(run_named(client, arguments.replay).run_id)
    say_answer(answer, partial(replay_text, limit=arguments.limit), as_json=arguments.json)


def _show_live(client: Client, arguments: argparse.Namespace) -> None:
    shown = ""
    for answer in _looks(client, arguments):
        if arguments.json:
            say_json(answer)
            continue
        text = live_text(answer)
        if text != shown:
            say(text)
        shown = text


def _looks(client: Client, arguments: argparse.Namespace) -> Iterator[RunStragglers]:
    run_id = run_named(client, arguments.live).run_id
    if arguments.follow is None:
        yield client.run_stragglers(run_id)
    else:
        yield from local(client, "--follow").watch(run_id, arguments.follow)


def ranking_text(answer: PeerRanking) -> str:
    """Return a verdict, the table, and warnings."""
    lines = [_verdict(answer)]
    if answer.ranked:
        lines += ["", table(HEADINGS, [_row(candidate) for candidate in answer.ranked]), ""]
    runs = f"from: {count(answer.runs, 'run')}, {answer.compared_runs} with ranks on several nodes"
    more = f"; {answer.timed_runs} by their time alone" if answer.timed_runs else ""
    noise = answer.noise_ratio
    lines.append(runs + more + ("" if noise is None else f"; a node differs by {percent(noise)} from run to run"))
    return "\n".join([*lines, *(f"warning: {warning}" for warning in answer.warnings)])


def _verdict(answer: PeerRanking) -> str:
    named = answer.named
    if not named:
        return f"No straggler: none of {answer.compared} compared is slower by more than 5 % with 95 % certainty."
    worst = max(named, key=lambda candidate: candidate.low_ratio)
    since = f" since {utc(worst.since_ns)}" if worst.since != "first run" else ""
    who = f"{worst.kind} {printable(worst.name)}"
    more = f"; {count(len(named) - 1, 'other')} named" if len(named) > 1 else ""
    advice = f"\n#SBATCH --exclude={printable(worst.name)}" if worst.kind == "node" else ""
    return f"{who} takes {times(worst.ratio)} the time of its peers{since}{more}.{advice}"


def _row(candidate: RankedPeer) -> tuple[str, ...]:
    since = candidate.since if candidate.since_ns is None else f"{candidate.since} {utc(candidate.since_ns)}"
    return (
        "*" if candidate.named else "",
        candidate.kind,
        candidate.name,
        times(candidate.ratio),
        f"[{candidate.low_ratio:.2f} .. {candidate.high_ratio:.2f}]",
        percent(candidate.chance_slower),
        str(candidate.runs),
        since if candidate.kind == "node" else "",
        "" if candidate.was_ratio is None else times(candidate.was_ratio),
        candidate.basis,
    )


def live_text(answer: RunStragglers) -> str:
    """Return the rank that the run waits for now, then all that it waited for."""
    lines = [f"{printable(answer.run_id)} ({answer.state}, {count(answer.ranks, 'rank')}): {waiting_words(answer)}"]
    if answer.episodes:
        lines += ["", table(EPISODE_HEADINGS, [_episode(episode) for episode in answer.episodes]), ""]
    lines += _what_if(answer.slowdown)
    lines.append(f"from: {count(answer.steps, 'step')}; noticed from the newest rows at the time")
    return "\n".join([*lines, *(f"warning: {warning}" for warning in answer.warnings)])


def _what_if(slowdown: Slowdown | None) -> list[str]:
    if slowdown is None:
        return []
    most = max(range(len(slowdown.without)), key=lambda rank: slowdown.without[rank])
    mended = f"with rank {most} alone as the others {times(slowdown.without[most])}"
    return [f"what if: with equal ranks it would be {times(slowdown.whole)} faster, {mended}"]


def _episode(episode: Episode) -> tuple[str, ...]:
    return (
        who(episode),
        episode.phase,
        steps_words(episode),
        seconds(episode.noticed_after_seconds),
        seconds(episode.lag_seconds),
        percent(episode.lag_ratio),
    )

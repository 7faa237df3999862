"""`crosswind nodes`: nodes that send samples, newest first, and the state of their agents; or one and its history."""

import argparse
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict

from crosswind.cli.arguments import configure_server
from crosswind.cli.moment import moment_of
from crosswind.cli.text.output import say, say_json, table
from crosswind.client.connection import connect
from crosswind.dashboards.wording import NONE, number, percent, seconds
from crosswind.data.schema.answers.nodes import NodeState
from crosswind.data.schema.node_question import HistoryQuestion
from crosswind.settings import Settings

HEADINGS = ("node", "last sweep", "sweeps", "late p99", "missed", "lost", "core", "memory", "clock", "up", "down")
DOWN_HEADINGS = ("down", "nodes", "which", "why")
EVER_SECONDS = 2**32  # since before 1970
NAMED = 3  # nodes of a source that is down; the others are counted
REASON = 100  # letters of why


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("node", nargs="?", help="one node: its jobs, runs, checks, place among stragglers, and gaps")
    help_text = "how far to look back: 90s, 5m, 1h, 2d, or a date such as 2026-11-01 (default 1h; of one node 7d)"
    parser.add_argument("--since", metavar="TIME", help=help_text)
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Lists them."""
    now_ns = time.time_ns()
    if arguments.node:
        return _show_node(arguments, settings, now_ns)
    since = arguments.since or "1h"
    since_seconds = max(1, int(now_ns / 1e9) - moment_of(since, now_ns / 1e9))
    with connect(arguments.server, settings=settings) as client:
        states = sorted(client.nodes(since_seconds), key=lambda state: state.last_sweep_ns, reverse=True)
        has_samples = bool(states or client.nodes(EVER_SECONDS, limit=1))
    if arguments.json:
        say_json([asdict(state) for state in states])
    elif states:
        say(table(HEADINGS, [_line(state, now_ns) for state in states]))
        _print_down(states)
    elif has_samples:
        say(f"No samples with --since {since}: --since 30d looks further back.")
    else:
        say("No samples yet: run crosswind agent, then crosswind ingest or crosswind sync.")
    return 0


def _show_node(arguments: argparse.Namespace, settings: Settings, now_ns: int) -> int:
    from crosswind.cli.text.node import node_text  # noqa: PLC0415 - of one node alone

    question = HistoryQuestion(moment_of(arguments.since or "7d", now_ns / 1e9) * 1_000_000_000, now_ns)
    with connect(arguments.server, settings=settings) as client:
        report, history = client.fleet.node(arguments.node), client.fleet.node_history(arguments.node, question)
    if arguments.json:
        say_json({"now": report, "history": history})
    else:
        say(node_text(report, history))
    return 0


def _line(state: NodeState, now_ns: int) -> tuple[str, ...]:
    memory = state.resident_bytes
    return (
        state.node,
        f"{seconds((now_ns - state.last_sweep_ns) / 1e9)} ago",
        number(state.sweeps),
        seconds(state.lateness_p99_seconds),
        number(state.missed_ticks),
        number(state.lost_sweeps),
        percent(state.cpu_ratio),
        NONE if memory is None else f"{memory / 2**20:.0f} MiB",
        _clock(state),
        str(len(state.sources_up)),
        str(len(state.sources_down)),
    )


def _clock(state: NodeState) -> str:
    return "not kept" if state.clock_synchronized is False else seconds(state.clock_error_seconds)


def _print_down(states: Sequence[NodeState]) -> None:
    """Print the sources that are down with reasons and nodes, most often the same on many nodes."""
    nodes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for state in states:
        for source in state.sources_down:
            nodes[source.name, source.reason or NONE].append(state.node)
    if nodes:
        lines = [
            (name, str(len(where)), _some(sorted(where)), reason[:REASON])
            for (name, reason), where in sorted(nodes.items())
        ]
        say()
        say(table(DOWN_HEADINGS, lines))


def _some(nodes: Sequence[str]) -> str:
    return ", ".join(nodes[:NAMED]) + (", ..." if len(nodes) > NAMED else "")

"""`crosswind walltime`: the shortest time limit that a run keeps with the asked confidence, as a line for sbatch."""

import argparse
from collections.abc import Mapping
from typing import Any

from crosswind.cli.asking import at_hand, configure_run, post, run_of, server_of
from crosswind.cli.output import say, say_json
from crosswind.cli.predicted_text import basis_lines, line
from crosswind.cli.quantities import above_zero, zero_or_more
from crosswind.dashboards.wording import percent, seconds
from crosswind.settings import Settings

CONFIDENCE = 0.95


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    configure_run(parser)
    parser.add_argument(
        "--confidence",
        type=above_zero,
        default=CONFIDENCE,
        help=f"that it is enough, 0.5 to 0.99 (default {CONFIDENCE})",
    )
    parser.add_argument(
        "--startup", type=zero_or_more, metavar="SECONDS", help="before the run begins (default: as measured)"
    )
    parser.add_argument("--directive", action="store_true", help="print the line for sbatch alone")


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Says what to ask for."""
    asked = {**run_of(arguments, settings), "confidence": arguments.confidence, "startup_seconds": arguments.startup}
    server = server_of(arguments)
    answer = post(server, "/v1/walltime-advice", asked) if server else at_hand("walltime", settings, asked)
    if arguments.json:
        say_json(answer)
    elif arguments.directive:
        say(answer["limit"]["directive"])
    else:
        say(_text(answer))
    return 0


def _text(answer: Mapping[str, Any]) -> str:
    limit, begun = answer["limit"], answer["startup_seconds"]
    before = f", after {seconds(begun)} of starting up" if begun else ""
    taken = f"with {percent(limit['confidence'])}: the run takes at most {seconds(limit['quantile_seconds'])}{before}"
    return "\n".join([limit["directive"], line("enough", taken), *basis_lines(answer["answer"])])

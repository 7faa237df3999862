"""`crosswind walltime`: the shortest time limit that a run keeps with a confidence, as a line for sbatch."""

import argparse

from crosswind.cli.arguments import configure_run, question_of
from crosswind.cli.progress import Progress
from crosswind.cli.quantities import above_zero, zero_or_more
from crosswind.cli.text.output import notice, say, say_json
from crosswind.cli.text.prediction import walltime_text
from crosswind.client.connection import connect
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
    """Print the limit to request."""
    question = question_of(arguments, settings)
    with connect(arguments.server, settings=settings, notice=notice) as client, Progress("predicting"):
        answer = client.advise_walltime(question, arguments.confidence, startup_seconds=arguments.startup)
    if arguments.json:
        say_json(answer)
    elif arguments.directive:
        say(answer.limit.directive)
    else:
        say(walltime_text(answer))
    return 0

"""`crosswind explain`: the causes of a run's time."""

import argparse
from dataclasses import asdict

from crosswind.cli.arguments import configure_server
from crosswind.cli.progress import Progress
from crosswind.cli.text.explanation import explanation_text
from crosswind.cli.text.output import printable, say, say_json
from crosswind.client.connection import connect
from crosswind.client.run_names import LATEST, run_named
from crosswind.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("run", nargs="?", default=LATEST, help="run id, the end of one, or `latest` (default)")
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Explains it."""
    with connect(arguments.server, settings=settings) as client, Progress("explaining"):
        run = run_named(client, arguments.run)
        explanation = client.explain(run.run_id)
        waits = client.waits(run.run_id) if arguments.json else None
    if arguments.json:
        say_json({**asdict(explanation), "waits": waits})
    else:
        say(printable(f"run {run.run_id} of {run.workload} on {run.system}"))
        say(explanation_text(explanation))
    return 0

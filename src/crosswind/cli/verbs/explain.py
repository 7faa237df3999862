"""`crosswind explain`: the causes of a run's time."""

import argparse
from dataclasses import asdict

from crosswind.cli.text.explanation import explanation_text
from crosswind.cli.text.output import printable, say, say_json
from crosswind.cli.verbs.show import run_named
from crosswind.data.store.store import Store
from crosswind.models.explain.explain import explain_run
from crosswind.models.explain.victims import victims_of
from crosswind.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("run", nargs="?", default="latest", help="run id, the end of one, or `latest` (default)")


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Explains it."""
    with Store.open(settings.home, database=settings.database) as store:
        run = run_named(store, arguments.run)
        explanation = explain_run(store, run.run_id)
        waits = victims_of(store, run.run_id) if arguments.json else None
    if arguments.json:
        say_json({**asdict(explanation), "waits": waits})
    else:
        say(printable(f"run {run.run_id} of {run.workload} on {run.system}"))
        say(explanation_text(explanation))
    return 0

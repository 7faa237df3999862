"""`crosswind remaining RUN`: how long a run that is in progress will still take."""

import argparse

from crosswind.cli.arguments import configure_server
from crosswind.cli.quantities import whole
from crosswind.cli.text.output import say_answer
from crosswind.cli.text.prediction import band, line
from crosswind.client.connection import connect
from crosswind.client.run_names import RUN_HELP, run_named
from crosswind.dashboards.wording import count, seconds
from crosswind.data.schema.answers.weather import Remaining
from crosswind.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("run_id", metavar="RUN", help=f"the run in progress, {RUN_HELP}")
    parser.add_argument(
        "--steps",
        type=whole,
        metavar="COUNT",
        help="of the whole run (default: its parameter `steps`, or its cohort's)",
    )
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the remaining time."""
    with connect(arguments.server, settings=settings) as client:
        run_id = run_named(client, arguments.run_id).run_id
        answer = client.remaining(run_id, total_steps=arguments.steps)
    say_answer(answer, _text, as_json=arguments.json)
    return 0


def _text(answer: Remaining) -> str:
    lines = [
        f"step {answer.steps_done} of {answer.total_steps} after {seconds(answer.seconds_done)} of steps",
        f"remaining: {band(answer.remaining)}",
        f"all steps: {band(answer.total)}",
    ]
    if answer.next_step:
        lines.append(f"next step: {band(answer.next_step)}")
    if answer.changed_at:
        lines.append(line("pace", f"changed at step {', '.join(map(str, answer.changed_at))}"))
    earlier = f"{count(answer.earlier_runs, 'earlier run')} of the workload"
    return "\n".join([*lines, line("from", f"{earlier}, {answer.cohort_runs} of this configuration and scale")])

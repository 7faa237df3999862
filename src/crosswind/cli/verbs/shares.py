"""`crosswind shares RUN`: samples for each rank so that ranks of unequal speed finish together."""

import argparse

from crosswind.cli.arguments import configure_server
from crosswind.cli.text.output import say_answer, table
from crosswind.client.connection import connect
from crosswind.client.run_names import RUN_HELP, run_named
from crosswind.dashboards.wording import NONE, seconds
from crosswind.data.schema.answers.advice import BatchShares
from crosswind.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("run_id", metavar="RUN", help=f"the run whose ranks were measured, {RUN_HELP}")
    parser.add_argument(
        "--batch", type=int, help="samples a step of all ranks together, to be shared (default: as now)"
    )
    parser.add_argument("--now-batch", type=int, help="the same as the run had it (default: as its parameters say)")
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the samples for each rank."""
    with connect(arguments.server, settings=settings) as client:
        run_id = run_named(client, arguments.run_id).run_id
        answer = client.batch_shares(run_id, batch=arguments.batch, now_batch=arguments.now_batch)
    say_answer(answer, shares_text, as_json=arguments.json)
    return 0


def shares_text(answer: BatchShares) -> str:
    """Return a row for each rank, then the gain."""
    rows = [
        (
            str(rank.rank),
            rank.node or NONE,
            seconds(rank.compute_seconds),
            f"{rank.samples_now:g}",
            str(rank.samples),
            seconds(rank.shared_compute_seconds),
        )
        for rank in answer.ranks
    ]
    before, after = seconds(answer.equal_step_seconds), seconds(answer.shared_step_seconds)
    interval = f"[{answer.gain_low_ratio:+.1%} .. {answer.gain_high_ratio:+.1%}]"
    lines = [
        table(("rank", "node", "computes", "samples now", f"of {answer.batch}", "would compute"), rows),
        "",
        f"gain: {answer.gain_ratio:+.1%} {interval} of the step, {before} with equal shares and {after} with these",
        f"from: {answer.steps} steps at {answer.now_batch:g} samples ({answer.present})",
    ]
    return "\n".join([*lines, *(f"warning: {warning}" for warning in answer.warnings)])

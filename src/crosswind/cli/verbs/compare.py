"""`crosswind compare`: the causes by which one run took longer than another."""

import argparse

from crosswind.cli.arguments import configure_server
from crosswind.cli.progress import Progress
from crosswind.cli.text.explanation import bar
from crosswind.cli.text.output import printable, say_answer
from crosswind.client.connection import connect
from crosswind.client.run_names import run_named
from crosswind.dashboards.wording import seconds
from crosswind.data.schema.answers.explanations import Comparison
from crosswind.data.schema.words import words
from crosswind.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    for name in ("first", "second"):
        parser.add_argument(name, metavar=name.upper(), help="run id, the end of one, or `latest`")
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Compares them."""
    with connect(arguments.server, settings=settings) as client, Progress("comparing"):
        first, second = (run_named(client, name).run_id for name in (arguments.first, arguments.second))
        comparison = client.compare(first, second)
    say_answer(comparison, _text, as_json=arguments.json)
    return 0


def _text(comparison: Comparison) -> str:
    rows = [(share.cause, share.seconds) for share in comparison.shares] + [("unexplained", comparison.unexplained)]
    scale = max(abs(comparison.difference.value), *(abs(interval.value) for _, interval in rows)) or 1.0
    lines = [
        comparison.sentence,
        "",
        f"  {comparison.faster}: {seconds(comparison.faster_seconds)} in {comparison.faster_steps} steps",
    ]
    if comparison.more_steps_seconds:
        lines.append(
            f"  {comparison.slower_steps - comparison.faster_steps:+} steps: {seconds(comparison.more_steps_seconds)}"
        )
    lines += [bar(name, interval, scale) for name, interval in rows]
    lines += [f"  {comparison.slower}: {seconds(comparison.slower_seconds)} in {comparison.slower_steps} steps", ""]
    lines += [f"evidence: {words(share.cause)}: {share.evidence}" for share in comparison.shares[:3]]
    differing = [f"differs: {name}: {one}, {other}" for name, (one, other) in comparison.differing.items()]
    return "\n".join(printable(line) for line in [*lines, *differing])

"""`crosswind compare`: by what one run took longer than another."""

import argparse

from crosswind.cli.output import printable, say, say_json
from crosswind.cli.render import bar
from crosswind.cli.show import run_named
from crosswind.dashboards.wording import seconds
from crosswind.data.store import Store
from crosswind.data.words import words
from crosswind.models.explain.compare import Comparison, compare_runs
from crosswind.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    for name in ("first", "second"):
        parser.add_argument(name, metavar=name.upper(), help="run id, the end of one, or `latest`")


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Compares them."""
    with Store.open(settings.home, database=settings.database) as store:
        first, second = (run_named(store, name).run_id for name in (arguments.first, arguments.second))
        found = compare_runs(store, first, second)
    if arguments.json:
        say_json(found)
    else:
        say("\n".join(_lines(found)))
    return 0


def _lines(found: Comparison) -> list[str]:
    rows = [(share.cause, share.seconds) for share in found.shares] + [("unexplained", found.unexplained)]
    scale = max(abs(found.difference.value), *(abs(interval.value) for _, interval in rows)) or 1.0
    lines = [found.sentence, "", f"  {found.faster}: {seconds(found.faster_seconds)} in {found.faster_steps} steps"]
    if found.more_steps_seconds:
        lines.append(f"  {found.slower_steps - found.faster_steps:+} steps: {seconds(found.more_steps_seconds)}")
    lines += [bar(name, interval, scale) for name, interval in rows]
    lines += [f"  {found.slower}: {seconds(found.slower_seconds)} in {found.slower_steps} steps", ""]
    lines += [f"evidence: {words(share.cause)}: {share.evidence}" for share in found.shares[:3]]
    differing = [f"differs: {name}: {one}, {other}" for name, (one, other) in found.differing.items()]
    return [printable(line) for line in [*lines, *differing]]

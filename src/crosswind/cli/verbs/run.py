"""`crosswind run -- CMD`: runs a program, records it, stores what was recorded."""

import argparse
import importlib.util
import sys

from crosswind.cli.text.output import say_json
from crosswind.data.schema.errors import InvalidInputError
from crosswind.ingest.reader.step_lines import FORMS
from crosswind.ingest.wrapper.wrapper import Launch, launch
from crosswind.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--workload", help="what is run, whatever the configuration (default: the program's name)")
    parser.add_argument("--tag", action="append", default=[], metavar="NAME=VALUE", help="a fact to keep with the run")
    parser.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help="between samples of this node")
    parser.add_argument("--no-agent", action="store_true", help="do not sample this node")
    parser.add_argument("--no-inject", action="store_true", help="record only ranks that use crosswind.run themselves")
    parser.add_argument(
        "--step-lines",
        metavar="PATTERN",
        help=f"read steps off the output: {', '.join(FORMS)}, or a regular expression with named groups: docs/run.md",
    )
    parser.add_argument("--no-ingest", action="store_true", help="leave the record in the spool")
    parser.add_argument("command", nargs="*", metavar="CMD", help="the program and its arguments, after --")


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Runs the program; its exit code is ours."""
    wanted = Launch(
        command=tuple(arguments.command),
        spool=settings.spool,
        workload=arguments.workload,
        tags=dict(tag_of(text) for text in arguments.tag),
        agent_seconds=None if arguments.no_agent else arguments.interval,
        injects=not arguments.no_inject,
        step_lines=arguments.step_lines,
    )
    outcome = launch(wanted)
    note = "left in the spool" if arguments.no_ingest else store_or_keep(settings)
    if arguments.json:
        say_json(outcome)
    else:
        sys.stderr.write(f"crosswind: run {outcome.run_id} exit {outcome.exit_code}, {note}\n")
    return outcome.exit_code


def tag_of(text: str) -> tuple[str, str]:
    """Name and value of NAME=VALUE. Raises: InvalidInputError."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise InvalidInputError(f"--tag {text!r}: expected NAME=VALUE")
    return name, value


def store_or_keep(settings: Settings) -> str:
    """Return what became of the spool: stored, or kept where that is not possible now."""
    if importlib.util.find_spec("pyarrow") is None:
        return f"kept in {settings.spool}: crosswind ingest stores it where crosswind[server] is installed"
    try:
        from crosswind.cli.verbs.ingest.taking import store_spool  # noqa: PLC0415 - a compute node has no store to load

        loaded = store_spool(settings)
    except Exception as error:  # noqa: BLE001 - the program's exit code is ours, whatever becomes of the store
        return f"kept in {settings.spool}: {error}"
    problems = "".join(f"; {problem}" for problem in loaded.problems)
    return f"{loaded.rows} rows stored in {settings.home}{problems}"

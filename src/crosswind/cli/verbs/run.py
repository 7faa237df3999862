"""`crosswind run -- CMD`: runs a program, records it, and leaves the record where the next verb reads it."""

import argparse
import sys

from crosswind.cli.text.output import printable, say_json
from crosswind.data.schema.command.arguments import value_of
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import RunState
from crosswind.data.schema.trial import Configuration
from crosswind.ingest.capture.wanted import OFF, Budget, Wanted, bytes_of
from crosswind.ingest.probe.place import node_name
from crosswind.ingest.reader.step_lines import FORMS
from crosswind.ingest.spool.collected import hand_over, is_collected
from crosswind.ingest.wrapper.defining import Rule
from crosswind.ingest.wrapper.wrapper import Launch, Outcome, launch
from crosswind.settings import Settings

HAND_OVER_SECONDS = 0.15
TRACES = "traces"  # folder of the store's home


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--workload", help="what is run, whatever the configuration (default: the program's name)")
    parser.add_argument("--tag", action="append", default=[], metavar="NAME=VALUE", help="a fact to keep with the run")
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the configuration, in addition to those on the program's command line",
    )
    parser.add_argument(
        "--define",
        action="append",
        default=[],
        metavar="NAME",
        help="an argument (or a pattern, as data.*) that defines the configuration although the rule says no",
    )
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="NAME", help="one that does not, although the rule says so"
    )
    parser.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help="between samples of this node")
    parser.add_argument("--no-agent", action="store_true", help="do not sample this node")
    parser.add_argument("--no-inject", action="store_true", help="record only ranks that use crosswind.run themselves")
    parser.add_argument(
        "--step-lines",
        metavar="PATTERN",
        help=f"read steps off the output: {', '.join(FORMS)}, or a regular expression with named groups: docs/run.md",
    )
    _configure_captures(parser)
    parser.add_argument("--no-ingest", action="store_true", help="leave the record in the spool")
    parser.add_argument("command", nargs="*", metavar="CMD", help="the program and its arguments, after --")


def _configure_captures(parser: argparse.ArgumentParser) -> None:
    budget = Budget()
    parser.add_argument(
        "--trace",
        default=OFF,
        metavar="auto|RANKS[:STEPS]",
        help="profile a few steps of the ranks that others wait for, of one that waits and of an ordinary one, by "
        "torch.profiler (auto), or those asked for, as 0,3 or 0-3:100-102: docs/traces.md (default: off)",
    )
    for name, default, unit, text in (
        ("bytes", "200M", "SIZE", "of all trace files of a run, compressed"),
        ("steps", budget.steps, "N", "of a capture"),
        ("ranks", budget.ranks, "N", "of a capture"),
        ("captures", budget.captures, "N", "of a run"),
        ("pause", budget.pause_seconds, "SECONDS", "between two captures, at least"),
    ):
        parser.add_argument(f"--trace-{name}", default=default, type=type(default), metavar=unit, help=text)


def captures_of(arguments: argparse.Namespace) -> Wanted | None:
    """Return the captures that the options ask for. Raises: InvalidInputError."""
    budget = Budget(
        size_bytes=bytes_of(arguments.trace_bytes),
        steps=arguments.trace_steps,
        ranks=arguments.trace_ranks,
        captures=arguments.trace_captures,
        pause_seconds=arguments.trace_pause,
    )
    return Wanted.parse(arguments.trace, budget)


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
        configuration=configuration_of(arguments.config),
        rule=Rule(tuple(arguments.define), tuple(arguments.ignore)),
        captures=captures_of(arguments),
        traces=settings.home / TRACES,
    )
    outcome = launch(wanted)
    place = f"left in {settings.spool}" if arguments.no_ingest else kept(settings)
    if arguments.json:
        say_json(outcome)
    else:
        sys.stderr.write("".join(f"crosswind: {printable(line)}\n" for line in _lines(outcome, place)))
    return outcome.exit_code


def _lines(outcome: Outcome, place: str) -> list[str]:
    suffix = " (stopped)" if outcome.state is RunState.STOPPED else ""
    lines = [f"run {outcome.run_id} exit {outcome.exit_code}{suffix}, {place}"]
    if outcome.failure:
        lines.append(f"failed: {outcome.failure}")
    if outcome.no_steps:
        lines.append(f"no steps recorded: {outcome.no_steps}")
    if outcome.traces:
        lines.append(outcome.traces)
    return lines


def configuration_of(texts: list[str]) -> Configuration:
    """Return the parameters of `--config NAME=VALUE`. Raises: InvalidInputError."""
    pairs = [text.partition("=") for text in texts]
    for text, (name, equals, _) in zip(texts, pairs, strict=True):
        if not name or not equals:
            raise InvalidInputError(f"--config {text!r}: expected NAME=VALUE")
    return {name: value_of(value) for name, _, value in pairs}


def tag_of(text: str) -> tuple[str, str]:
    """Name and value of NAME=VALUE. Raises: InvalidInputError."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise InvalidInputError(f"--tag {text!r}: expected NAME=VALUE")
    return name, value


def kept(settings: Settings) -> str:
    """Return where the record is now and what comes next: it is taken by a collector, or lies in the store's folder."""
    if is_collected(settings.spool):
        return f"collected from {settings.spool}"
    done = hand_over(settings.spool, settings.home, node=node_name(), seconds=HAND_OVER_SECONDS)
    if done.problem is not None:
        return f"{done.left} files stay in {settings.spool} ({done.problem}): crosswind ingest {settings.spool}"
    return f"kept in {settings.home}: crosswind explain, show or compare reads it"

"""The arguments of `crosswind tune exec`."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crosswind.cli.verbs.tune.context import configure_context

LEASE_SECONDS = 600.0  # without a heartbeat; one comes every quarter of it
GRACE_SECONDS = 20.0  # Slurm kills 30 s after SIGTERM where KillWait is as it comes


class ActionParser(argparse.ArgumentParser):
    """The parser of one action; where it `takes_program`, what follows the first `--` is the `command`."""

    takes_program = False

    def parse_known_args(  # type: ignore[override]  # one signature for all of typeshed's overloads
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Return what argparse says, and the command."""
        if not self.takes_program:
            return super().parse_known_args(args, namespace)
        words = list(sys.argv[1:] if args is None else args)
        end = words.index("--") if "--" in words else len(words)
        parsed, rest = super().parse_known_args(words[:end], namespace)
        if rest and not rest[0].startswith("-") and end == len(words):
            program = shlex.join(words[words.index(rest[0]) :])
            self.error(f"expected -- before the program, as in crosswind tune exec {parsed.study} -- {program[:200]}")
        parsed.command = words[end + 1 :]
        return parsed, rest

    def format_usage(self) -> str:
        """One line that shows where the command goes."""
        return f"usage: {self.prog} [options] STUDY -- CMD ...\n" if self.takes_program else super().format_usage()


def configure_exec(parser: ActionParser) -> None:
    """Adds the action's arguments."""
    parser.takes_program = True
    parser.epilog = "CMD may hold {parameter}, {parameter:VALUE WHERE ABSENT}, {trial}, {checkpoint}, {config_file}."
    _configure_program(parser)
    parser.add_argument("--trials", type=int, default=1, metavar="N", help="evaluate so many, one after another")
    parser.add_argument(
        "--ahead", type=int, default=0, metavar="N", help="keep N trials in the spool for when no service answers"
    )
    parser.add_argument("--lease", type=float, default=LEASE_SECONDS, metavar="SECONDS", help="without a heartbeat")
    parser.add_argument(
        "--limit", type=float, metavar="SECONDS", help="stop a trial after that long; it counts as pruned"
    )
    parser.add_argument(
        "--stop-early",
        action="store_true",
        help="stop a trial whose steps are surely slower than the best one's; it counts as pruned",
    )
    parser.add_argument(
        "--believe", action="store_true", help="do not measure a trial again whose run an external cause disturbed"
    )
    parser.add_argument(
        "--grace", type=float, default=GRACE_SECONDS, metavar="SECONDS", help="for a checkpoint after SIGTERM"
    )
    configure_context(parser, "numbers of the input, by which the trial is chosen")
    parser.add_argument("--shared", type=Path, metavar="DIR", help="where rank 0 tells the others their trial")
    parser.add_argument("--wait", type=float, default=600.0, metavar="SECONDS", help="of other ranks for rank 0")


def _configure_program(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workload", help="what is run, whatever the configuration (default: the program's name)")
    parser.add_argument("--export", action="append", default=[], metavar="PARAMETER=VARIABLE", help="export it so, too")
    parser.add_argument("--config-file", metavar="PATH", help="write the configuration there: .json .yaml .toml")
    parser.add_argument(
        "--checkpoint", metavar="PATH", help="where the program keeps its state, such as ckpt/{trial}.pt"
    )
    parser.add_argument(
        "--objective-from", metavar="FILE", help="the program writes its result there (a number or JSON)"
    )
    parser.add_argument(
        "--objective-pattern", metavar="REGEX", help="of the result in that file, or else on the output"
    )
    parser.add_argument(
        "--infeasible", action="append", type=int, default=[], metavar="CODE", help="exit code of what cannot run"
    )
    parser.add_argument("--step-lines", metavar="PATTERN", help="read steps off the output: docs/run.md")
    parser.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help="between samples of this node")
    parser.add_argument("--no-agent", action="store_true", help="do not sample this node")
    parser.add_argument("--no-inject", action="store_true", help="record only ranks that use crosswind.run themselves")
    parser.add_argument("--no-ingest", action="store_true", help="leave the record in the spool")

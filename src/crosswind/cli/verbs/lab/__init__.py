"""`crosswind lab`: hosts on this machine, training between them, and faults whose truth is known."""

import argparse
from importlib import import_module
from pathlib import Path

from crosswind.ingest.lab.plans import PLANS
from crosswind.settings import Settings

__all__ = ["configure", "execute"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    run = _action(actions, "run", "measures the runs of a plan that are not in the store yet; needs root")
    run.add_argument("--plan", choices=list(PLANS), default="quick", help="quick (8 runs) by default")
    run.add_argument("--seed", type=int, metavar="N", help="another order of runs; of most plans, also other faults")
    run.add_argument("--only", type=int, metavar="N", help="measure at most N runs now")
    _action(actions, "faults", "what can be injected")
    wanted = _action(actions, "export", "writes measured runs and their truth as sample data")
    wanted.add_argument("folder", type=Path, metavar="DIR")
    _action(actions, "clean", "removes what a killed lab left in the kernel and in the store; needs root")


def _action(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, help_text: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=help_text, description=f"{help_text}.")
    if name != "faults":
        parser.add_argument("--store", type=Path, metavar="DIR", help="default: `lab` below this installation's store")
    # Suppressed, so that its absence here does not undo a --json before the action.
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON for machines")
    return parser


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Does the action."""
    code: int = import_module("crosswind.cli.verbs.lab.actions").execute(arguments, settings)
    return code

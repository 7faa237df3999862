"""`crosswind models`: trained models and their versions; which one answers; a new one."""

import argparse
from importlib import import_module

from crosswind.settings import Settings

__all__ = ["configure", "execute"]

USAGE = "[NAME] | promote NAME VERSION | rollback NAME | train NAME"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help=f"{USAGE}: nothing lists every model, a name its versions"
    )
    parser.add_argument(
        "--because", metavar="REASON", help="why: needed by rollback, and to promote what does not beat the baselines"
    )
    parser.add_argument(
        "--cluster", metavar="WHERE", help="train: learn from every run on a Dask cluster: its address, local or slurm"
    )
    parser.add_argument(
        "--leave-out-damaged", action="store_true", help="with --cluster: learn without the runs that cannot be read"
    )


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Lists models, or changes one."""
    code: int = import_module("crosswind.cli.verbs.models.actions").execute(arguments, settings)
    return code

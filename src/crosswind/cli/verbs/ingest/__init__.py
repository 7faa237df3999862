"""`crosswind ingest`: stores the spool, or other tools' files, exactly once."""

import argparse
from importlib import import_module

from crosswind.settings import Settings

__all__ = ["configure", "execute"]

TAKING = "crosswind.cli.verbs.ingest.taking"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.epilog = _formats()
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="files, folders, spools or URLs of files (default: this spool)"
    )
    parser.add_argument("--format", help="the files' format (default: detected from their content)")
    parser.add_argument("--map", metavar="FILE", help="of tables: which column is what, in which unit (docs/tables.md)")
    parser.add_argument("--dry-run", action="store_true", help="show what the files would become, and store nothing")
    parser.add_argument(
        "--again",
        action="store_true",
        help="of spools: also segments so old, or kept as .rejected, that they may have been stored before",
    )
    parser.add_argument("--system", help="the system that the files are about (default: this one)")
    parser.add_argument("--workload", default="", help="of runs whose files name none")
    parser.add_argument("--run", metavar="RUN", help="store the files as traces of this run's ranks (docs/traces.md)")
    parser.add_argument("--node", default="", help="of samples whose files name none")
    parser.add_argument(
        "--fact",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="about the system or software of runs that do not state it, such as accelerator=A40",
    )
    parser.add_argument("--time-zone", default="UTC", metavar="NAME", help="of times that name none (default: UTC)")


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Store everything that is named; exit code 2 when a file could not be read at all."""
    code: int = import_module(TAKING).execute(arguments, settings)
    return code


def _formats() -> str:
    try:
        words: str = import_module(TAKING).formats_words()
    except ModuleNotFoundError:  # the plain installation, which has no store
        return "Formats: crosswind[server] lists and reads them; docs/readers.md describes them."
    return words

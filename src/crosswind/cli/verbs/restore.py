"""`crosswind restore`: the store of a backup, where none is yet."""

import argparse
from dataclasses import asdict
from pathlib import Path

from crosswind.cli.text.output import say, say_json
from crosswind.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("source", type=Path, metavar="FILE|DIR", help="a backup")
    parser.add_argument("--check", action="store_true", help="check the backup, and restore nothing")
    parser.epilog = (
        "To the folder of CROSSWIND_HOME, the database of CROSSWIND_DATABASE and the object store of CROSSWIND_LAKE; "
        "they must hold nothing."
    )


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Restores or checks it. Raises: ConflictError, UnavailableError, MalformedError."""
    from crosswind.data.backup.store import check_backup, restore  # noqa: PLC0415 - heavy

    if arguments.check:
        done, words = check_backup(arguments.source), "is whole, and nothing was restored"
    else:
        done = restore(arguments.source, settings.home, database=settings.database, lake=settings.lake)
        words = f"is restored to {settings.home}"
    if arguments.json:
        say_json(asdict(done))
    else:
        say(f"{done.path} {words}: {done.files} files, {done.bytes} B.")
    return 0

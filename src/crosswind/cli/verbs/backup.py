"""`crosswind backup`: catalog, lake and models of one instant, also while a server writes."""

import argparse
from dataclasses import asdict
from pathlib import Path

from crosswind.cli.text.output import say, say_json
from crosswind.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("target", type=Path, metavar="FILE|DIR", help="a new file (tar), or an empty folder")
    parser.epilog = "It holds names, hashes of tokens and the key of the pseudonyms: its owner alone may read it."


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Makes it and reads it again. Raises: ConflictError, UnavailableError, MalformedError."""
    from crosswind.client.installed_store import open_store  # noqa: PLC0415
    from crosswind.data.backup.store import back_up, check_backup  # noqa: PLC0415 - heavy

    with open_store(settings) as store:
        back_up(store, arguments.target)
    made = check_backup(arguments.target)
    if arguments.json:
        say_json(asdict(made))
    else:
        say(f"{made.path}: {made.files} files, {made.bytes} B, each read again and right.")
    return 0

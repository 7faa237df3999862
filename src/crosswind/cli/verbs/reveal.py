"""`crosswind reveal`: whose pseudonym it is; the audit trail keeps who asked."""

import argparse

from crosswind.cli.arguments import configure_server
from crosswind.cli.text.output import say, say_json
from crosswind.client.connection import connect
from crosswind.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("pseudonym", help="as `crosswind interference` names a user: u-0123456789abcdef")
    parser.epilog = "That you asked is kept: crosswind audit."
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Says it. Raises: NotFoundError, ForbiddenError."""
    with connect(arguments.server, settings=settings) as client:
        name = client.own.reveal(arguments.pseudonym)
    if arguments.json:
        say_json({"pseudonym": arguments.pseudonym, "name": name})
    else:
        say(name)
    return 0

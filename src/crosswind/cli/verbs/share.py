"""`crosswind share`: lets everybody see a run, or take part in a study."""

import argparse

from crosswind.cli.arguments import configure_server
from crosswind.cli.text.output import say, say_json
from crosswind.client.connection import connect
from crosswind.client.run_names import run_named
from crosswind.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("name", help="run id, the end of one, or `latest`; with --study a study's name or id")
    parser.add_argument("--study", action="store_true", help="a study, in which everybody may take part then")
    parser.add_argument("--off", action="store_true", help="no longer")
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Does it. Raises: NotFoundError; ForbiddenError for what is another's."""
    with connect(arguments.server, settings=settings) as client:
        if arguments.study:
            name, shared = arguments.name, client.own.share_study(arguments.name, shared=not arguments.off)
        else:
            name = run_named(client, arguments.name).run_id
            shared = client.own.share_run(name, shared=not arguments.off)
    what = "study" if arguments.study else "run"
    if arguments.json:
        say_json({what: name, "shared": shared})
    else:
        say(f"{what} {name} is shared with everybody" if shared else f"{what} {name} is not shared")
    return 0

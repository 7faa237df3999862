"""`crosswind watch RUN`: a run in progress until its end."""

import argparse
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from crosswind.cli.arguments import configure_server
from crosswind.cli.quantities import whole
from crosswind.cli.verbs.sync import storing, take_all
from crosswind.cli.watching.arrivals import Arrivals, taking
from crosswind.cli.watching.look import Looker
from crosswind.cli.watching.screen import Screen
from crosswind.client.connection import connect, server_address
from crosswind.client.protocol import Client
from crosswind.client.run_names import RUN_HELP, run_named
from crosswind.data.schema.run import RunState
from crosswind.settings import Settings

FAILED = 1
TICK_SECONDS = 1.0
LOOK_SECONDS = 30.0  # between two looks where no event says that there is something new


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("run_id", metavar="RUN", help=f"the run in progress, {RUN_HELP}")
    parser.add_argument(
        "--steps",
        type=whole,
        metavar="COUNT",
        help="of the whole run (default: its parameter `steps`, or its cohort's)",
    )
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Show the run until it ends; the exit code is 0 if it completed, and else 1."""
    with connect(arguments.server, settings=settings) as client, _taking(arguments, settings):
        run = run_named(client, arguments.run_id)
        return watch(client, Looker(client, run.run_id, arguments.steps), run.run_id, Screen(as_json=arguments.json))


def watch(client: Client, looker: Looker, run_id: str, screen: Screen) -> int:
    """Show looks at a run until it ends; return the exit code."""
    arrivals = Arrivals(client, run_id)
    look, looked = looker.look(), time.monotonic()
    while True:
        screen.show(look)
        if look.run.state is not RunState.RUNNING:
            return 0 if look.run.state is RunState.COMPLETED else FAILED
        is_news = bool(arrivals.within(TICK_SECONDS))
        if is_news or time.monotonic() - looked > LOOK_SECONDS:
            look, looked = looker.look(), time.monotonic()
        elif screen.is_live:
            look = replace(look, at_ns=time.time_ns())


def _taking(arguments: argparse.Namespace, settings: Settings) -> AbstractContextManager[None]:
    """Return what stores the finished parts of the spool here; a server stores what it is sent."""
    if server_address(arguments.server):
        return nullcontext()
    take = storing(settings)
    return taking(lambda: take_all([settings.spool], take, settings.home))

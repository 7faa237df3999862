"""`crosswind serve`: pages and API over what is stored."""

import argparse
from pathlib import Path

from crosswind.api import server
from crosswind.api.settings import ServerSettings
from crosswind.cli.output import say, say_json
from crosswind.data.store import Store
from crosswind.settings import Settings

PORT = 8321


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument("--port", type=int, default=PORT, help=f"default {PORT}; 0 takes a free one")
    parser.add_argument("--uds", type=Path, metavar="PATH", help="listen on this Unix socket instead of a port")
    parser.add_argument("--root-path", default="", help="prefix under which a proxy shows the pages")
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="a further name of this server"
    )


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Serves until it is told to stop."""
    wanted = ServerSettings(
        host=arguments.host,
        port=arguments.port,
        token=settings.token,
        root_path=arguments.root_path,
        hosts=tuple(arguments.allow_host),
        uds=arguments.uds,
    )
    return serve(settings, wanted, as_json=arguments.json)


def serve(settings: Settings, wanted: ServerSettings, *, as_json: bool = False) -> int:
    """Serves a store, and says where once the port is taken."""

    def ready(url: str) -> None:
        if as_json:
            say_json({"url": url})
        else:
            say(f"Pages and API: {url}  (Ctrl-C ends it)")

    with Store.open(settings.home, database=settings.database) as store:
        server.serve(store, wanted, ready=ready)
    return 0

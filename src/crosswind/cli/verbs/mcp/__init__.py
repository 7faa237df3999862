"""`crosswind mcp`: a door for agents, which speaks the Model Context Protocol."""

import argparse
import sys
from importlib.util import find_spec

from crosswind.cli.arguments import configure_server
from crosswind.cli.text.output import notice, say, say_json
from crosswind.client.connection import connect, server_address
from crosswind.data.schema.errors import InvalidInputError
from crosswind.settings import Settings

PORT = 8322
PORT_MAX = 65_535


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument("--http", action="store_true", help="listen on this machine instead of standard input")
    parser.add_argument("--port", type=int, default=PORT, help=f"for --http (default {PORT}; 0 takes a free one)")
    parser.add_argument("--read-only", action="store_true", help="leave out the tools that change studies")
    parser.add_argument("--check", action="store_true", help="call the tools once as an agent would, and end")
    configure_server(parser)


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Serve the tools until the agent leaves, or Ctrl-C."""
    if find_spec("mcp") is None:
        raise ModuleNotFoundError("No module named 'mcp'", name="mcp")
    if not 0 <= arguments.port <= PORT_MAX:
        raise InvalidInputError(f"--port {arguments.port}: expected 0 to {PORT_MAX}")
    if arguments.check:
        return _check(arguments, settings)
    return _serve_http(arguments, settings) if arguments.http else _serve_one(arguments, settings)


def _serve_one(arguments: argparse.Namespace, settings: Settings) -> int:
    from crosswind.cli.verbs.mcp.door import door, for_one  # noqa: PLC0415 - heavy

    with connect(arguments.server, settings=settings) as client:
        if sys.stdin.isatty():
            notice("an agent starts this and speaks MCP over standard input: docs/mcp.md")
        door(for_one(client), reads_only=arguments.read_only).run("stdio")
    return 0


def _serve_http(arguments: argparse.Namespace, settings: Settings) -> int:
    from crosswind.cli.verbs.mcp.serving import serve  # noqa: PLC0415 - heavy

    def ready(url: str) -> None:
        say_json({"url": url}) if arguments.json else say(f"MCP: {url}  (Ctrl-C ends it)")

    serve(server_address(arguments.server), settings, arguments.port, reads_only=arguments.read_only, ready=ready)
    return 0


def _check(arguments: argparse.Namespace, settings: Settings) -> int:
    from crosswind.cli.verbs.mcp.self_check import self_check  # noqa: PLC0415 - heavy

    with connect(arguments.server, settings=settings) as client:
        checked = self_check(client, reads_only=arguments.read_only)
    if arguments.json:
        say_json(checked)
    else:
        say("\n".join(f"{name}: {said}" for name, said in checked.items()))
    return 0

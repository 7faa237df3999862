"""The agent door over HTTP, on this machine alone."""

import socket
from collections.abc import Callable

import uvicorn

from crosswind.api.server import listen, url_of
from crosswind.api.settings import ServerSettings
from crosswind.cli.verbs.mcp.callers import of_server, of_store
from crosswind.cli.verbs.mcp.door import PATH, http_app, keeping
from crosswind.client.local import Local
from crosswind.settings import Settings

CONNECTIONS = 100
STOP_SECONDS = 5


def serve(server: str | None, settings: Settings, port: int, *, reads_only: bool, ready: Callable[[str], None]) -> None:
    """Serve until stopped, over the server at this URL or else the store here; `ready` is called with our URL.

    Raises: UnavailableError where nobody can listen on the port.
    """
    wanted = ServerSettings(port=port)
    with listen(wanted) as listening:
        if server:
            _run(uvicorn_config_of(server, None, reads_only=reads_only), listening, wanted, ready)
            return
        with Local.open(settings) as client:
            _run(uvicorn_config_of(client, settings.token, reads_only=reads_only), listening, wanted, ready)


def uvicorn_config_of(source: str | Local, token: str | None, *, reads_only: bool = False) -> uvicorn.Config:
    """Return what serves the tools over a server's URL or a store's client."""
    visitor_of = of_server(source) if isinstance(source, str) else of_store(keeping(source), token)
    app = http_app(visitor_of, reads_only=reads_only)
    limits = {"limit_concurrency": CONNECTIONS, "timeout_graceful_shutdown": STOP_SECONDS}
    return uvicorn.Config(app, log_config=None, log_level="warning", server_header=False, **limits)  # type: ignore[arg-type]


def _run(
    config: uvicorn.Config, listening: socket.socket, wanted: ServerSettings, ready: Callable[[str], None]
) -> None:
    ready(f"{url_of(listening, wanted).rstrip('/')}{PATH}")
    uvicorn.Server(config).run(sockets=[listening])

"""The choice between the client of this machine and that of a server."""

import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict, Unpack

from crosswind.data.schema.paths import is_incoming
from crosswind.settings import Settings

if TYPE_CHECKING:
    from crosswind.client.protocol import Client  # which no verb needs that only asks for the server's address

SERVER = "CROSSWIND_SERVER"
logger = logging.getLogger("crosswind")


class ServerOptions(TypedDict, total=False):
    """The token, the certificates and the patience with which a server is asked."""

    token: str | None
    ca_file: str | None
    deadline_seconds: float


def connect(
    server: str | None = None,
    *,
    settings: Settings | None = None,
    notice: Callable[[str], None] = lambda _: None,
    **options: Unpack[ServerOptions],
) -> "Client":
    """Return a client of the server at this URL or $CROSSWIND_SERVER; without one, of the store of this machine.

    `notice` hears, in a sentence, of work in this process that takes seconds. The options are for a server.
    Use it as a context manager, or close it: `with crosswind.connect() as client: client.explain(run_id)`.
    """
    address = server_address(server)
    if address:
        from crosswind.client.remote import Remote  # noqa: PLC0415 - one of the two is needed

        return Remote(address, **options)
    from crosswind.client.local import Local  # noqa: PLC0415

    wanted = settings or Settings.from_environment()
    if is_incoming(wanted.home):
        _take_incoming(wanted)
    return Local.open(wanted, notice)


def _take_incoming(settings: Settings) -> None:
    """Store what `crosswind run` has left in the store's folder."""
    from crosswind.ingest.load.incoming import store_incoming  # noqa: PLC0415 - heavy, and seldom needed

    for problem in store_incoming(settings.home, settings.database, lambda: settings.lake):
        logger.warning("%s", problem)


def server_address(server: str | None) -> str | None:
    """Return the URL of the server that is named, else that of $CROSSWIND_SERVER; empty or None without one."""
    return server or os.environ.get(SERVER)

"""Service of the application on a socket."""

import asyncio
import errno
import gc
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import cast

import uvicorn
from fastapi import FastAPI

from crosswind.api.app import LOOPBACK, create_app
from crosswind.api.background import background
from crosswind.api.edge.connection import Connection
from crosswind.api.edge.edge import Edge
from crosswind.api.housekeeping import housekeeping
from crosswind.api.live.deliveries import delivering
from crosswind.api.live.feed import Feed
from crosswind.api.observe.traces import Traces, wants_traces
from crosswind.api.settings import ServerSettings
from crosswind.api.state.observed import Observed
from crosswind.api.verdict_upkeep import verdict_upkeep
from crosswind.api.workers import prompt_threads
from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.store.store import Store

GRACE_SECONDS = 1  # for connections, once requests have been answered or had their time: edge.ENDING_SECONDS


def serve(store: Store, settings: ServerSettings = LOOPBACK, *, ready: Callable[[str], None] | None = None) -> None:
    """Serve until SIGINT or SIGTERM; `ready` is called with the URL once the port is bound.

    Raises: UnavailableError when the port is taken or the address is not this machine's.
    """
    traces = Traces(version("crosswind")) if wants_traces() else None
    with listen(settings) as listening:
        if traces is not None:
            traces.watch(store)
        app = create_app(store, settings, traces=traces)
        server, observed = server_of(app), Observed.of(app)
        logging.getLogger().addHandler(observed.errors)
        with _signals_end(server):
            if ready:
                ready(url_of(listening, settings))
            gc.freeze()  # scanning the loaded modules again and again took a fifth of the time
            try:
                tidying = housekeeping(store, app.state.tokens.note_uses, settings=settings)
                sending = delivering(store, settings.webhook_networks, app.state.callers.still_holds)
                with prompt_threads(), ExitStack() as threads:
                    beside = (tidying, background(app.state.runner), verdict_upkeep(store), sending)
                    observed.beats = tuple(map(threads.enter_context, beside))
                    server.run(sockets=[listening])
            finally:
                logging.getLogger().removeHandler(observed.errors)
                gc.unfreeze()
                if traces is not None:
                    traces.end()
                if settings.uds is not None:
                    settings.uds.unlink(missing_ok=True)


def server_of(app: FastAPI) -> "Server":
    """Return the server of an application, for sockets that are passed to its `run`."""
    edge: Edge = app.state.edge
    config = uvicorn.Config(
        app,
        http=cast(type[asyncio.Protocol], partial(Connection, edge=edge)),
        ws="none",
        access_log=False,  # /metrics counts requests; the log keeps what went wrong here, and not what clients send
        log_config=None,  # the same lines as all others: observe/logs.py
        server_header=False,
        proxy_headers=False,
        callback_notify=edge.sweep,
        timeout_notify=0,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return Server(config, edge, app.state.feed)


class Server(uvicorn.Server):
    """A server that goes on answering that it stops, until the requests in progress are answered.

    Streams of events are ended, as they would not end by themselves.
    """

    def __init__(self, config: uvicorn.Config, edge: Edge, feed: Feed) -> None:
        super().__init__(config)
        self._edge = edge
        self._feed = feed

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop; at a second signal at once."""
        if self._edge.is_ending:
            super().handle_exit(sig, frame)
        else:
            self._edge.end()
            self._captured_signals.append(sig)

    async def on_tick(self, counter: int) -> bool:
        """Return whether to stop; called ten times a second."""
        if self._edge.is_ending:
            self._feed.end()
        return await super().on_tick(counter) or self._edge.has_ended

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop."""
        self._feed.end()
        await super().shutdown(sockets)


@contextmanager
def _signals_end(server: uvicorn.Server) -> Iterator[None]:
    """Within the context, SIGINT and SIGTERM end the server and not the process, also before uvicorn handles them.

    uvicorn raises a signal again after it has ended.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(_number: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def listen(settings: ServerSettings) -> socket.socket:
    """Return a listening socket. Raises: UnavailableError, InvalidInputError."""
    if settings.uds is not None:
        return _listen_at(settings.uds, settings.uds_mode)
    host = settings.host.strip("[]")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, settings.port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, UnicodeError) as error:
        raise InvalidInputError(f"host {settings.host!r}: expected a name or address of this machine") from error
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(1024)
    except OSError as error:
        listening.close()
        hint = ": choose another port, or 0 for any free one" if error.errno == errno.EADDRINUSE else ""
        raise UnavailableError(f"cannot listen on {settings.host}:{settings.port}, {error.strerror}{hint}") from error
    return listening


def _listen_at(path: Path, mode: int) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)  # the socket is its owner's alone from its first moment
    try:
        _remove_abandoned(path)
        listening.bind(str(path))
        path.chmod(mode)
        listening.listen(1024)
    except OSError as error:
        listening.close()
        raise UnavailableError(f"cannot listen on {path}, {error.strerror or error}") from error
    finally:
        os.umask(mask)
    return listening


def _remove_abandoned(path: Path) -> None:
    """Remove the socket of a server that was killed, not that of one which answers."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)


def url_of(listening: socket.socket, settings: ServerSettings) -> str:
    """Return the server's URL for browsers and senders on this machine."""
    if settings.uds is not None:
        return f"unix://{settings.uds.absolute()}"
    host = settings.host.strip("[]")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - only shown
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}{settings.root_path}/"

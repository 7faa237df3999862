"""Servers over a store, for the time of a test."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import uvicorn
from fastapi import FastAPI
from starlette.testclient import TestClient

from crosswind.api.app import LOOPBACK, create_app
from crosswind.api.background_answers import BackgroundAnswers
from crosswind.api.example import Example
from crosswind.api.peer import PEER, Peer
from crosswind.api.server import listen, server_of, url_of
from crosswind.api.settings import ServerSettings
from crosswind.data.store.store import Store


def patient_app(store: Store, settings: ServerSettings = LOOPBACK) -> FastAPI:
    """Return an application whose pages wait for their answers however busy the machine is."""
    app = create_app(store, settings)
    app.state.page_client.compute = BackgroundAnswers(app.state.client.compute, wait_seconds=600)
    app.state.example = Example(wait_seconds=600)
    return app


def own_client(
    app: FastAPI, base_url: str = "http://localhost:8000", *, raise_server_exceptions: bool = True
) -> TestClient:
    """Return a client within this process, as if this user had connected over loopback."""
    client = TestClient(app, base_url, raise_server_exceptions=raise_server_exceptions)
    client.app_state[PEER] = Peer("127.0.0.1", os.geteuid())
    return client


@contextmanager
def serving(
    home: Path, *words: str, stderr: int | IO[str] | None = None, environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """Yield the URL and the process of `crosswind serve` with these words; without any, at a free port.

    Where the process does not matter, `answering` is much faster.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CROSSWIND_")}
    own = {"CROSSWIND_HOME": str(home), "CROSSWIND_SYSTEM": "lab", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "crosswind.cli.main", "serve", "--json", *(words or ("--port", "0"))]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=kept | own | environment
    ) as process:
        assert process.stdout
        try:
            yield json.loads(process.stdout.readline())["url"], process
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(timeout=20)


@contextmanager
def running(server: uvicorn.Server, listening: socket.socket) -> Iterator[None]:
    """Let a server answer at this socket, in a thread of this process."""
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(timeout=30)


@contextmanager
def answering(home: Path, *hosts: str, port: int = 0, **further: Any) -> Iterator[str]:
    """Yield the URL of a server in this process, which spares another one the imports.

    It has these further names and settings.
    """
    settings = ServerSettings(port=port, hosts=hosts, **further)
    with (
        Store.open(home) as store,
        listen(settings) as listening,
        running(server_of(create_app(store, settings)), listening),
    ):
        yield url_of(listening, settings)

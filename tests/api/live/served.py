"""A server in this process that a test ends when it wants."""

import threading

from fastapi import FastAPI

from crosswind.api.app import create_app
from crosswind.api.edge.limits import Limits
from crosswind.api.server import listen, server_of, url_of
from crosswind.api.settings import ServerSettings
from crosswind.data.store.store import Store


class Served:
    """A server in this process over a store."""

    def __init__(self, store: Store, limits: Limits | None = None, port: int = 0) -> None:
        settings = ServerSettings(port=port, limits=limits or Limits())
        self.store = store
        self._listening = listen(settings)
        self.port: int = self._listening.getsockname()[1]
        self.url = url_of(self._listening, settings)
        self.app: FastAPI = create_app(store, settings)
        self._server = server_of(self.app)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listening]})
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=20)
        self._listening.close()

    @property
    def streams(self) -> int:
        count: int = self.app.state.feed.stream_count
        return count

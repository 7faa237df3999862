"""Open connections to a server, which requests of several threads share one after another."""

import os
import threading
import weakref
from collections import deque

from crosswind.ingest.ship.address import Way
from crosswind.ingest.ship.connection import Connection

IDLE_MAX = 32


class Connections:
    """Connections to one server, of which a request has one to itself."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self._lock = threading.Lock()
        self._idle: deque[Connection] = deque(maxlen=IDLE_MAX)
        self._process = os.getpid()
        weakref.finalize(self, _close, self._idle)

    def take(self) -> Connection:
        """Return one that is open where there is one, the last used first, else one that will be opened."""
        with self._lock:
            if self._process != os.getpid():  # a fork shares them with its parent, whose answers are not for both
                self._process = os.getpid()
                self._idle.clear()
            while self._idle:
                connection = self._idle.pop()
                if connection.is_open:
                    return connection
                connection.close()
        return self.fresh()

    def fresh(self) -> Connection:
        """Return one that will be opened."""
        return Connection(self._way)

    def give_back(self, connection: Connection) -> None:
        """Keep it open for the next request."""
        with self._lock:
            surplus = self._idle.popleft() if len(self._idle) == IDLE_MAX else None
            self._idle.append(connection)
        if surplus:
            surplus.close()

    def close(self) -> None:
        """Close those that no request has."""
        with self._lock:
            _close(self._idle)


def _close(idle: deque[Connection]) -> None:
    while idle:
        idle.pop().close()

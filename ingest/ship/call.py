"""The time that a request with its repeats may take, and the way to give it up from another thread."""

import math
import socket
import threading
import time
from contextlib import suppress

from crosswind.data.schema.errors import ProjectError


class GivenUpError(ProjectError):
    """The caller has no use for the answer any more."""


class GivingUp:
    """A sign that another thread sets: nothing more is sent, and what waits for an answer ends."""

    def __init__(self) -> None:
        self._is_set = threading.Event()
        self._lock = threading.Lock()
        self._waiting: socket.socket | None = None

    def set(self) -> None:
        """End the wait for an answer now, and every later one."""
        with self._lock:
            self._is_set.set()
            if self._waiting:
                with suppress(OSError):
                    socket.socket.shutdown(self._waiting, socket.SHUT_RDWR)  # that of TLS would end the reading thread

    def waits_at(self, connection: socket.socket | None) -> None:
        """Note the connection that an answer is awaited from; None: no more. Raises: GivenUpError."""
        with self._lock:
            self._waiting = connection
            self.check()

    def check(self) -> None:
        """Raises: GivenUpError once it is set."""
        if self._is_set.is_set():
            raise GivenUpError("the request was given up")

    def pause(self, seconds: float) -> None:
        """Wait so long. Raises: GivenUpError as soon as it is set."""
        self._is_set.wait(seconds)
        self.check()


class Call:
    """One request with its repeats, and the moment at which all of it is over."""

    def __init__(self, seconds: float = math.inf, giving_up: GivingUp | None = None) -> None:
        self.seconds = seconds
        self.giving_up = giving_up or GivingUp()
        self._began = time.monotonic()

    @property
    def seconds_used(self) -> float:
        """Return the seconds since it began."""
        return time.monotonic() - self._began

    def seconds_left(self, at_most: float) -> float:
        """Return the seconds that a wait may take. Raises: TimeoutError when none are left, GivenUpError."""
        self.giving_up.check()
        left = self.seconds - self.seconds_used
        if left <= 0:
            raise TimeoutError(f"no whole answer within {self.seconds:g} s")
        return min(left, at_most)

"""HTTP over one connection, every wait of which ends with the call that it is for."""

import io
import select
import socket
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any

from crosswind.ingest.ship.address import TIMEOUT_SECONDS, Way
from crosswind.ingest.ship.call import Call

CONNECT_SECONDS = 10.0


class Connection:
    """A connection, opened when first needed, and again when it was closed.

    Raises: OSError, HTTPException where there is no answer.
    """

    def __init__(self, way: Way) -> None:
        self._way = way
        self._http: HTTPConnection | None = None

    @property
    def is_open(self) -> bool:
        """Return whether it is open, and the server has not closed it since."""
        if self._http is None or self._http.sock is None:
            return False
        look = select.poll()
        look.register(self._http.sock, select.POLLIN)
        return not look.poll(0)  # there is nothing to read but the end

    def open(self, call: Call) -> None:
        """Connect, unless it is connected."""
        self._opened(call)

    def exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], *, call: Call
    ) -> HTTPResponse:
        """Return the answer, whose content has to be read before the next exchange."""
        http, sent = self._opened(call), {**self._way.headers, **headers}
        call.giving_up.waits_at(http.sock)
        http.sock.settimeout(call.seconds_left(TIMEOUT_SECONDS))
        http.response_class = partial(_Answer, call=call)  # type: ignore[assignment]
        try:
            http.request(method, self._way.prefix + path, body, sent)
        except (BrokenPipeError, ConnectionResetError):  # it may have answered before it had read everything
            with suppress(OSError, HTTPException):
                return http.getresponse()
            raise
        return http.getresponse()

    def _opened(self, call: Call) -> HTTPConnection:
        if self._http is None or self._http.sock is None:
            self._http = self._way.connect()
            self._http.timeout = call.seconds_left(CONNECT_SECONDS)
            self._http.connect()
        return self._http

    def close(self) -> None:
        """Close it."""
        if self._http is not None:
            self._http.close()
            self._http = None


class _Answer(HTTPResponse):
    """An answer whose reading ends with its call."""

    def __init__(self, connection: socket.socket, *arguments: Any, call: Call, **options: Any) -> None:
        super().__init__(connection, *arguments, **options)
        self.fp = io.BufferedReader(_Bytes(self.fp.detach(), connection, call))


class _Bytes(io.RawIOBase):
    """The bytes that come over a connection as long as the call lasts."""

    def __init__(self, bytes_: io.RawIOBase, connection: socket.socket, call: Call) -> None:
        self._bytes, self._connection, self._call = bytes_, connection, call

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._connection.settimeout(self._call.seconds_left(TIMEOUT_SECONDS))
        count = self._bytes.readinto(buffer)
        self._call.giving_up.check()
        return count

    def close(self) -> None:
        self._bytes.close()
        super().close()

"""Client of one Redfish service: over one connection, bounded in bytes and time, without redirects."""

import base64
import http
import http.client
import json
import os
import ssl
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Self
from urllib.parse import SplitResult, urlsplit

from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError

MAX_BYTES = 4 * 1024 * 1024
CHUNK_BYTES = 64 * 1024
LOOPBACK = ("127.0.0.1", "localhost", "::1")
REFUSALS = (403, 429, 503)  # the caller's fault, rather than the resource's
Resource = Mapping[str, object]


@dataclass(frozen=True)
class Access:
    """The address of the service and the credentials; the password is read every time, so that it can change."""

    url: str
    user: str = ""
    credential_file: str = ""
    ca_file: str = ""
    timeout_seconds: float = 20.0  # for all resources of one look

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if not _is_origin(parts):
            raise InvalidInputError(f"sources.redfish.url: {self.url!r:.200}, expected https://HOST[:PORT]")
        if parts.scheme == "http" and parts.hostname not in LOOPBACK:
            raise InvalidInputError(f"sources.redfish.url: {self.url!r:.200}, expected https beyond this machine")
        if bool(self.user) != bool(self.credential_file):
            raise InvalidInputError("sources.redfish: expected user and credential_file together")

    def headers(self) -> dict[str, str]:
        """Return the headers of every request. Raises: UnavailableError, InvalidInputError."""
        headers = {"Accept": "application/json", "OData-Version": "4.0"}
        if self.user:
            word = f"{self.user}:{secret_in(self.credential_file)}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(word).decode()}"
        return headers


class RefusedError(UnavailableError):
    """The service refuses this user and password."""


class RedfishClient:
    """One round of requests to a service, limited in time.

    Source: DMTF DSP0266, Redfish Specification (HTTP Basic authentication, `@odata.id` links)
    """

    def __init__(self, access: Access, headers: Mapping[str, str]) -> None:
        self._access = access
        self._until = time.monotonic() + access.timeout_seconds
        self._headers = headers
        self._connection = _connection(access)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def get(self, path: str) -> Resource | None:
        """Return the resource; None if the service has none of that name, or no data of it.

        Raises: RefusedError; UnavailableError when it is not there, is busy or takes too long; MalformedError for
        anything but a JSON object of bounded size.
        """
        place = f"{self._access.url}{path}"
        try:
            status, body = self._answer(path)
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise UnavailableError(f"{place}: {type(error).__name__}: {error!s:.200}") from error
        if status == 200:
            return _parsed(body, place)
        if status == http.HTTPStatus.UNAUTHORIZED:
            raise RefusedError(f"{place}: status 401: expected another user or password")
        if status < 400 or status in REFUSALS:  # a redirect too: the password is for this host alone
            raise UnavailableError(f"{place}: status {status}, expected 200")
        return None

    def _answer(self, path: str) -> tuple[int, bytes]:
        self._hurry()
        self._connection.request("GET", path, headers=self._headers)
        self._hurry()
        with self._connection.getresponse() as response:
            body = b""
            while chunk := response.read1(CHUNK_BYTES):
                body += chunk
                if len(body) > MAX_BYTES:
                    self._connection.close()
                    raise MalformedError(f"{self._access.url}{path}: expected at most {MAX_BYTES} bytes")
                self._hurry()
            return response.status, body

    def _hurry(self) -> None:
        """Limit the next wait to the time that is left. Raises: TimeoutError."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"no answer within {self._access.timeout_seconds} s")
        self._connection.timeout = left
        if self._connection.sock is not None:
            self._connection.sock.settimeout(left)


def secret_in(path: str) -> str:
    """Return the one line of a file that nobody else may read. Raises: UnavailableError, InvalidInputError."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            status = os.fstat(fd)
            content = os.read(fd, 4096)
        finally:
            os.close(fd)
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}") from error
    if not stat.S_ISREG(status.st_mode) or stat.S_IMODE(status.st_mode) & 0o077:
        raise InvalidInputError(f"{path}: expected a file that only its owner may read (chmod 600)")
    with suppress(UnicodeDecodeError):
        secret = content.decode("utf-8").removesuffix("\n")
        if secret and secret.isprintable():
            return secret
    raise InvalidInputError(f"{path}: expected one line of text")


def _is_origin(parts: SplitResult) -> bool:
    try:
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    rest = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    return parts.scheme in ("https", "http") and has_host and not rest


def _connection(access: Access) -> http.client.HTTPConnection:
    parts = urlsplit(access.url)
    host = parts.hostname or ""
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, parts.port, timeout=access.timeout_seconds)
    try:
        context = ssl.create_default_context(cafile=access.ca_file or None)
    except OSError as error:
        raise UnavailableError(f"{access.ca_file}: {error!s:.200}") from error
    return http.client.HTTPSConnection(host, parts.port, timeout=access.timeout_seconds, context=context)


def _parsed(body: bytes, place: str) -> Resource:
    try:
        value = json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"{place}: expected JSON: {error!s:.200}") from error
    if not isinstance(value, dict):
        raise MalformedError(f"{place}: expected a JSON object, found {type(value).__name__}")
    return value


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON")

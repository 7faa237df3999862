"""HTTP requests to a server over one connection."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse, IncompleteRead
from time import time

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.ship.address import way_to

ANSWER_BYTES = 1024 * 1024
SUCCESS = 200
LONGEST_WAIT_SECONDS = 3600.0  # the longest wait that a server can impose


@dataclass(frozen=True)
class Answer:
    """The answer of a server or of a proxy before it: its JSON object, `said`, or else its `content`."""

    status: int
    media_type: str = ""
    said: Mapping[str, object] = field(default_factory=dict)
    retry_after_seconds: float = 0.0
    codings: tuple[str, ...] = ()
    content: bytes = b""


class Client:
    """A connection to a server, opened when first needed and again when the server closed it.

    It reads at most `answer_bytes` of an answer.
    """

    def __init__(self, url: str, token: str | None, *, answer_bytes: int = ANSWER_BYTES) -> None:
        self._url = url
        self._answer_bytes = answer_bytes
        self._way = way_to(url)
        self._headers = {**self._way.headers, **(_credentials(token) if token else {})}
        self._connection: HTTPConnection | None = None

    def get(self, path: str) -> Answer:
        """Return the answer, whatever its status. Raises: UnavailableError when there is none."""
        return self._ask("GET", path, None, {})

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Return the answer, whatever its status. Raises: UnavailableError when there is none."""
        return self._ask("POST", path, body, headers)

    def open(self, path: str, headers: Mapping[str, str]) -> HTTPResponse | Answer:
        """Return the answer to a GET as it comes, to be read line by line; one that is no success as a whole.

        Raises: UnavailableError when there is none.
        """
        connection = self._connection = self._way.connect()
        try:
            connection.request("GET", self._way.prefix + path, headers={**self._headers, **headers})
            response = connection.getresponse()
            return response if response.status == SUCCESS else self._answer(response)
        except (OSError, HTTPException) as error:
            self.close()
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise UnavailableError(f"{self._url} does not answer: {reason}") from error

    def _ask(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        is_reused = self._connection is not None
        try:
            return self._sent(method, path, body, headers)
        except (OSError, HTTPException) as error:
            self.close()
            if not is_reused:
                reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
                raise UnavailableError(f"{self._url} does not answer: {reason}") from error
        # The server may have closed an idle connection; sending twice does no harm.
        return self._ask(method, path, body, headers)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _sent(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        if self._connection is None:
            self._connection = self._way.connect()
        try:
            self._connection.request(method, self._way.prefix + path, body, {**self._headers, **headers})
        except (BrokenPipeError, ConnectionResetError):  # it may have answered before it had read everything
            with suppress(OSError, HTTPException):
                return self._answer(self._connection.getresponse())
            raise
        return self._answer(self._connection.getresponse())

    def _answer(self, response: HTTPResponse) -> Answer:
        with response:
            content = response.read(self._answer_bytes)
            if response.length and len(content) < self._answer_bytes:  # with a limit, http.client does not report it
                raise IncompleteRead(content, response.length)
            if response.will_close or response.length:
                self.close()
        names = response.headers.get("Accept-Encoding", "").replace(" ", "").split(",")
        said = _json_object(content)
        return Answer(
            response.status,
            response.headers.get_content_type(),
            said,
            _wait_seconds(response.headers),
            tuple(filter(None, names)),
            b"" if said else content,
        )


def _credentials(token: str) -> dict[str, str]:
    """Return the token in both fields that a server reads, because many proxies keep Authorization for themselves."""
    return {"Authorization": f"Bearer {token}", "X-Crosswind-Token": token}


def _json_object(content: bytes) -> Mapping[str, object]:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _wait_seconds(headers: HTTPMessage) -> float:
    """Return Retry-After in seconds, from a number or a date; 0 when it is missing or neither."""
    retry_after = headers.get("Retry-After", "").strip()
    try:
        seconds = (
            float(retry_after) if retry_after.isdigit() else parsedate_to_datetime(retry_after).timestamp() - time()
        )
    except (ValueError, OverflowError):
        return 0.0
    return min(max(seconds, 0.0), LONGEST_WAIT_SECONDS)

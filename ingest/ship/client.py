"""HTTP requests to a server over one connection."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPMessage, HTTPResponse, IncompleteRead
from time import time

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.ship.address import way_to
from crosswind.ingest.ship.call import Call
from crosswind.ingest.ship.connection import Connection

ANSWER_BYTES = 1024 * 1024
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
    stream: HTTPResponse | None = None  # where the content is left to be read


class Client:
    """A connection to a server, opened when first needed and again when the server closed it.

    It reads at most `answer_bytes` of an answer.
    """

    def __init__(self, url: str, token: str | None, *, answer_bytes: int = ANSWER_BYTES) -> None:
        self._url = url
        self._answer_bytes = answer_bytes
        self._connection = Connection(way_to(url))
        self._headers = credentials(token) if token else {}
        self._is_used = False

    def get(self, path: str) -> Answer:
        """Return the answer, whatever its status. Raises: UnavailableError when there is none."""
        return self._ask("GET", path, None, {})

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Return the answer, whatever its status. Raises: UnavailableError when there is none."""
        return self._ask("POST", path, body, headers)

    def _ask(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        is_reused = self._is_used
        try:
            return self._sent(method, path, body, headers)
        except (OSError, HTTPException) as error:
            self.close()
            if not is_reused:
                raise UnavailableError(f"{self._url} does not answer: {cause_of(error)}") from error
        # The server may have closed an idle connection; sending twice does no harm.
        return self._ask(method, path, body, headers)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
        self._is_used = False

    def _sent(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        with self._connection.exchange(method, path, body, {**self._headers, **headers}, call=Call()) as response:
            answer = read_answer(response, self._answer_bytes)
            self._is_used = not (response.will_close or response.length)
        if not self._is_used:
            self.close()
        return answer


def read_answer(response: HTTPResponse, at_most: int) -> Answer:
    """Return the answer with so many bytes of its content. Raises: OSError, HTTPException when it breaks off."""
    content = response.read(at_most)
    if response.length and len(content) < at_most:  # with a limit, http.client does not report it
        raise IncompleteRead(content, response.length)
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


def cause_of(error: Exception) -> str:
    """Return why there was no answer, in a few words."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def credentials(token: str) -> dict[str, str]:
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

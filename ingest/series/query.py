"""Queries to a Prometheus server, with advice when it does not answer.

Source: https://prometheus.io/docs/prometheus/latest/querying/api/
"""

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crosswind.data.schema.errors import InvalidInputError, ProjectError, UnavailableError

TIMEOUT_SECONDS = 60.0
ANSWER_BYTES = 1 << 25  # some million samples, which take 0.2 GB to read
TOKEN_VARIABLE = "CROSSWIND_PROMETHEUS_TOKEN"  # noqa: S105  the name of a variable
LOOPBACK = ("localhost", "127.0.0.1", "::1")
TOO_MUCH = ("too many samples", "exceeded maximum resolution", "timed out")  # in its messages
TIMES_OUT = (408, 504)  # from a proxy in front of it


class TooMuchError(ProjectError):
    """The answer would be too large, or take too long: query less."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: the token is for one server alone."""

    def redirect_request(self, *_: object) -> None:
        return None


@dataclass(frozen=True)
class Server:
    """A Prometheus server, or one that answers like it. Raises: InvalidInputError for what is no such URL."""

    url: str
    token: str | None = None
    timeout_seconds: float = TIMEOUT_SECONDS

    def __post_init__(self) -> None:
        parts = urllib.parse.urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
            raise InvalidInputError(f"{self.url!r:.200}: expected the URL of a Prometheus, such as http://host:9090")
        if parts.username or parts.password:
            raise InvalidInputError(f"{parts.hostname}: expected no password in the URL; set {TOKEN_VARIABLE}")

    def ask(self, path: str, parameters: Mapping[str, str]) -> Any:
        """Return an answer's data. Raises: UnavailableError, InvalidInputError for a bad selector, TooMuchError."""
        answer = self._answer(path, parameters)
        try:
            return json.loads(answer)["data"]
        except (ValueError, KeyError, TypeError) as error:
            raise UnavailableError(f"{self.url}: answers, but not as a Prometheus does; is it one?") from error

    def _answer(self, path: str, parameters: Mapping[str, str]) -> bytes:
        form = urllib.parse.urlencode(parameters).encode() if parameters else None
        request = urllib.request.Request(f"{self.url.rstrip('/')}/api/v1/{path}", form)  # noqa: S310 - checked above
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        try:
            with self._opener().open(request, timeout=self.timeout_seconds) as answer:
                content: bytes = answer.read(ANSWER_BYTES + 1)
        except urllib.error.HTTPError as error:
            raise self._refusal(error) from error
        except TimeoutError as error:  # it was reached, but is busy
            raise TooMuchError(f"{self.url}: no answer for {self.timeout_seconds:g} s") from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise UnavailableError(f"{self.url}: {reason}; is a Prometheus listening there?") from error
        if len(content) > ANSWER_BYTES:
            raise TooMuchError(f"{self.url}: an answer of more than {ANSWER_BYTES} bytes")
        return content

    def _opener(self) -> urllib.request.OpenerDirector:
        is_here = urllib.parse.urlsplit(self.url).hostname in LOOPBACK
        proxies = [urllib.request.ProxyHandler({})] if is_here else []
        return urllib.request.build_opener(_NoRedirect, *proxies)

    def _refusal(self, error: urllib.error.HTTPError) -> ProjectError:
        try:
            said = str(json.loads(error.read(100_000))["error"])
        except (ValueError, KeyError, TypeError, OSError, http.client.HTTPException):
            said = str(error.reason)
        if error.code in {401, 403}:
            return UnavailableError(f"{self.url}: {said} ({error.code}); set {TOKEN_VARIABLE} to a token for it")
        if error.code in {301, 302, 303, 307, 308}:
            return UnavailableError(f"{self.url}: it moved to {error.headers.get('Location', '?'):.200}; use that URL")
        if error.code in TIMES_OUT or any(words in said for words in TOO_MUCH):
            return TooMuchError(f"{self.url}: {said:.300} ({error.code})")
        if error.code == 400:
            return InvalidInputError(f"{self.url}: {said}; expected selectors such as --match '{{job=\"node\"}}'")
        return UnavailableError(f"{self.url}: {said:.300} ({error.code})")

"""Requests to a server, and its refusals as errors; by the standard library alone."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import quote, urlencode

from crosswind.data.schema.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    MalformedError,
    NotFoundError,
    UnavailableError,
)
from crosswind.ingest.ship.client import Answer
from crosswind.ingest.ship.client import Client as Connection
from crosswind.ingest.ship.token import ship_token

ANSWER_BYTES = 64 * 1024 * 1024  # the trials of the largest study
FILE_BYTES = 1024 * 1024 * 1024  # of a run of millions of steps
IN_PROGRESS = "/problems/in-progress"
ROWS_MAX = 500  # of a part of a list
OK, CREATED, FORBIDDEN, UNKNOWN, CONFLICT, TOO_MANY, SERVER_FAULT = 200, 201, 403, 404, 409, 429, 500


class Server:
    """A server's JSON API; `again_seconds` are the waits between attempts to get any answer at all."""

    def __init__(self, url: str, token: str | None = None, *, again_seconds: tuple[float, ...] = ()) -> None:
        self.url = url.rstrip("/")
        self._token = token or ship_token()
        self._again_seconds = again_seconds

    def get(self, path: str, query: Mapping[str, object | None] | None = None) -> Mapping[str, Any]:
        """Return the object at this path; parameters that are None are left out.

        Raises: InvalidInputError, NotFoundError, ForbiddenError, ConflictError, UnavailableError, MalformedError.
        """
        given = {name: value for name, value in (query or {}).items() if value is not None}
        whole = f"{path}?{urlencode(given)}" if given else path
        return self._object(self._answer(lambda connection: connection.get(whole)))

    def rows(
        self, path: str, name: str, query: Mapping[str, object | None] | None = None
    ) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of a list, part by part; `name` is their field. Raises: as `get`."""
        cursor: object = None
        while True:
            part = self.get(path, {**(query or {}), "limit": ROWS_MAX, "cursor": cursor})
            if not isinstance(rows := part.get(name), list):
                raise self.malformed(ValueError(f"{', '.join(part)}, expected {name}"))
            yield from rows
            if (cursor := part.get("next")) is None:
                return

    def content(self, path: str) -> bytes:
        """Return what is at this path, which is no JSON. Raises: as `get`."""
        answer = self._answer(lambda connection: connection.get(path), FILE_BYTES)
        if answer.status != OK:
            self._object(answer)
        return answer.content

    def post(self, path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        """Return the object that answers this body. Raises: as `get`."""
        try:
            content = json.dumps(body, allow_nan=False).encode()
        except ValueError as error:
            raise InvalidInputError(f"{path}: expected finite numbers: {error}") from error
        sent = {"Content-Type": "application/json", **(headers or {})}
        return self._object(self._answer(lambda connection: connection.post(path, content, sent)))

    def malformed(self, error: Exception) -> MalformedError:
        """Return the error for an answer that is not Crosswind's."""
        return MalformedError(f"{self.url}: answered something else than expected: {error!r:.200}")

    def _answer(self, send: Callable[[Connection], Answer], limit_bytes: int = ANSWER_BYTES) -> Answer:
        """Return the answer; a request that got none is sent again."""
        for wait_seconds in self._again_seconds:
            try:
                return self._once(send, limit_bytes)
            except UnavailableError:
                time.sleep(wait_seconds)
        return self._once(send, limit_bytes)

    def _once(self, send: Callable[[Connection], Answer], limit_bytes: int) -> Answer:
        with closing(Connection(self.url, self._token, answer_bytes=limit_bytes)) as connection:
            answer = send(connection)
        if answer.status == CONFLICT and str(answer.said.get("type", "")).endswith(IN_PROGRESS):
            raise UnavailableError(f"{self.url}: {answer.said.get('detail')}")
        return answer

    def _object(self, answer: Answer) -> Mapping[str, Any]:
        if answer.status in (OK, CREATED):
            if answer.said:
                return answer.said
            kind = answer.media_type
            raise MalformedError(f"{self.url}: answered {kind}, expected a JSON object; is this its address?")
        detail = f"{self.url}: {answer.said.get('detail') or f'status {answer.status}'}"
        if answer.status == FORBIDDEN:
            raise ForbiddenError(detail)
        if answer.status == UNKNOWN:
            raise NotFoundError(detail)
        if answer.status == CONFLICT:
            raise ConflictError(detail)
        if answer.status == TOO_MANY or answer.status >= SERVER_FAULT:
            raise UnavailableError(detail)
        raise InvalidInputError(detail)


def segment(name: str) -> str:
    """Return a name as one segment of a path."""
    return quote(name, safe="")

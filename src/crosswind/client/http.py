"""Requests to a server, and its refusals as errors; by the standard library alone."""

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from http.client import HTTPException, HTTPResponse
from typing import Any
from urllib.parse import quote, urlencode

from crosswind import DEADLINE_SECONDS
from crosswind.client.connections import Connections
from crosswind.client.retries import NoAnswer, Tries, is_for_later
from crosswind.client.trace import trace_fields, trace_id
from crosswind.data.schema.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    MalformedError,
    NotFoundError,
    PausedError,
    UnavailableError,
)
from crosswind.ingest.ship.address import way_to
from crosswind.ingest.ship.call import Call, GivingUp
from crosswind.ingest.ship.client import Answer, cause_of, credentials, read_answer
from crosswind.ingest.ship.connection import Connection
from crosswind.ingest.ship.token import ship_token

ANSWER_BYTES = 64 * 1024 * 1024  # the trials of the largest study
ROWS_MAX = 500  # of a part of a list
OK, CREATED, FORBIDDEN, UNKNOWN, CONFLICT, SERVER_FAULT = 200, 201, 403, 404, 409, 500
PAUSED = "/problems/paused"  # the type of a 409: the study hands out no trial now
GIVING_UP: ContextVar[GivingUp | None] = ContextVar("GIVING_UP", default=None)  # of whoever waits for the answers


@dataclass(frozen=True)
class Request:
    """A request; one that is repeatable may be sent again where nobody knows whether it arrived."""

    method: str
    path: str
    body: bytes | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    is_repeatable: bool = True
    stream_over: Connection | None = None  # that has an answer which is left to be read


class Server:
    """A server's JSON API, over connections that are kept; for several threads.

    A request with its repeats ends after `deadline_seconds`.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        ca_file: str | None = None,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        self.url = url.rstrip("/")
        self._connections = Connections(way_to(url, ca_file))
        self._deadline_seconds = deadline_seconds
        chosen = token or ship_token()
        self._credentials = credentials(chosen) if chosen else {}

    def get(self, path: str, query: Mapping[str, object | None] | None = None) -> Mapping[str, Any]:
        """Return the object at this path; parameters that are None are left out.

        Raises: InvalidInputError, NotFoundError, ForbiddenError, ConflictError, UnavailableError, MalformedError.
        """
        return self._object(self._answer(Request("GET", whole(path, query or {}))))

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

    @contextmanager
    def stream(
        self, path: str, query: Mapping[str, object | None], fields: Mapping[str, str]
    ) -> Iterator[HTTPResponse]:
        """Yield what is at this path, to be read as it comes; it is tried again until it begins. Raises: as `get`."""
        with closing(self._connections.fresh()) as connection:
            request = Request("GET", whole(path, query), fields=fields, stream_over=connection)
            answer = self._answer(request)
            if answer.stream is None:
                self._object(answer)
                raise self.malformed(ValueError(f"status {answer.status}"))
            yield answer.stream

    def post(self, path: str, body: Mapping[str, Any], *, key: str | None = None) -> Mapping[str, Any]:
        """Return the object that answers this body, the first answer if the request has to be sent again.

        It has an Idempotency-Key, by default one of its own. Raises: as `get`.
        """
        sent = {"Content-Type": "application/json", "Idempotency-Key": key or os.urandom(16).hex()}
        return self._object(self._answer(Request("POST", path, _json(path, body), sent)))

    def post_once(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the object that answers this body, which is never sent again once it may have arrived; as `post`."""
        sent = {"Content-Type": "application/json"}
        return self._object(self._answer(Request("POST", path, _json(path, body), sent, is_repeatable=False)))

    def malformed(self, error: Exception) -> MalformedError:
        """Return the error for an answer that is not Crosswind's."""
        return MalformedError(f"{self.url}: answered something else than expected: {error!r:.200}")

    def close(self) -> None:
        """Close the connections; a later request opens another one."""
        self._connections.close()

    def _answer(self, request: Request) -> Answer:
        """Return the answer. Raises: UnavailableError without one, or where the server is busy or fails."""
        call = Call(math.inf if request.stream_over else self._deadline_seconds, GIVING_UP.get())
        tries, traced = Tries(call, request.is_repeatable), trace_fields()
        whole_request = replace(request, fields={**self._credentials, **traced, **request.fields})
        outcome = self._outcome(whole_request, call)
        while tries.another(outcome):
            outcome = self._outcome(whole_request, call)
        if isinstance(outcome, NoAnswer):
            raise UnavailableError(
                f"{self.url} does not answer: {cause_of(outcome.error)} ({tries})"
            ) from outcome.error
        if is_for_later(outcome) or outcome.status >= SERVER_FAULT:
            later = f", asks to wait {outcome.retry_after_seconds:g} s" if outcome.retry_after_seconds else ""
            raise UnavailableError(f"{self._detail(outcome)} ({tries}{later}, trace {trace_id(traced)})")
        return outcome

    def _outcome(self, request: Request, call: Call) -> Answer | NoAnswer:
        connection = request.stream_over or (
            self._connections.take() if request.is_repeatable else self._connections.fresh()
        )
        try:
            connection.open(call)
        except (OSError, HTTPException) as error:
            return NoAnswer(error, may_repeat=True)
        try:
            return (self._begun if request.stream_over else self._exchanged)(connection, request, call)
        except (OSError, HTTPException) as error:
            connection.close()
            has_time = not isinstance(error, TimeoutError)  # a server that is slow would begin the same work again
            return NoAnswer(error, may_repeat=request.is_repeatable and has_time)

    def _begun(self, connection: Connection, request: Request, call: Call) -> Answer:
        response = connection.exchange(request.method, request.path, request.body, request.fields, call=call)
        if response.status == OK:
            return Answer(response.status, stream=response)
        with closing(connection), response:
            return read_answer(response, ANSWER_BYTES)

    def _exchanged(self, connection: Connection, request: Request, call: Call) -> Answer:
        is_kept = False
        try:
            with connection.exchange(request.method, request.path, request.body, request.fields, call=call) as response:
                answer = read_answer(response, ANSWER_BYTES)
                call.giving_up.waits_at(None)
                is_kept = not (response.will_close or response.length)
        finally:
            if is_kept:
                self._connections.give_back(connection)
            else:
                connection.close()
        return answer

    def _object(self, answer: Answer) -> Mapping[str, Any]:
        if answer.status in (OK, CREATED):
            if answer.said:
                return answer.said
            kind = answer.media_type
            raise MalformedError(f"{self.url}: answered {kind}, expected a JSON object; is this its address?")
        if str(answer.said.get("type", "")).endswith(PAUSED):
            raise PausedError(self._detail(answer))
        kinds = {FORBIDDEN: ForbiddenError, UNKNOWN: NotFoundError, CONFLICT: ConflictError}
        raise kinds.get(answer.status, InvalidInputError)(self._detail(answer))

    def _detail(self, answer: Answer) -> str:
        return f"{self.url}: {answer.said.get('detail') or f'status {answer.status}'}"


def whole(path: str, query: Mapping[str, object | None]) -> str:
    """Return a path with the parameters that are not None."""
    given = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def segment(name: str) -> str:
    """Return a name as one segment of a path."""
    return quote(name, safe="")


def _json(path: str, body: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(body, allow_nan=False).encode()
    except ValueError as error:
        raise InvalidInputError(f"{path}: expected finite numbers: {error}") from error

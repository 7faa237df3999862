"""Validators: weak ETags of answers, and 304 for clients that have an answer already.

A tag is `VERSION.HASH`. HASH is of the content. VERSION says of what state of the store the answer is, for whom, and in
what form; where a route has one, it is known before the answer is computed, so that 304 costs no work.
"""

import hashlib
import json
from collections.abc import Iterable
from importlib.metadata import version

from fastapi import Depends, Request
from fastapi.responses import Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crosswind.api.dependencies import StoreOf, asking
from crosswind.api.wire import Id

VERSION = "answer_version"  # in the state of a request's scope
TAG_CHARACTERS = 32
RELEASE = version("crosswind")
TAGGED = ("application/json", "text/csv", "application/vnd.apache.arrow.")
VARY = "Accept, Accept-Encoding"


class NotModifiedError(Exception):
    """The client has this answer already."""

    def __init__(self, tag: str) -> None:
        super().__init__(tag)
        self.tag = tag


def not_modified(_: Request, error: Exception) -> Response:
    """Return what tells a client to use the answer that it has."""
    tag = error.tag if isinstance(error, NotModifiedError) else ""
    return Response(status_code=304, headers={"ETag": f'W/"{tag}"', "Vary": VARY})


def _unless_catalog_is_unchanged(request: Request, store: StoreOf) -> None:
    _heed(request, store.catalog.version())


def _unless_run_is_unchanged(run_id: Id, request: Request, store: StoreOf) -> None:
    with store.catalog.read() as session:
        run = session.runs.get(run_id)
        revision = session.verdicts.revisions([run.run_id]).get(run.run_id)
    if revision is not None:  # it has ended: what comes later raises the revision
        _heed(request, f"{run.run_id} {revision[0]}")


# Of answers from the catalog alone, and from rows of the lake that are published before the catalog notes them.
UNLESS_CATALOG_IS_UNCHANGED = Depends(_unless_catalog_is_unchanged)
UNLESS_RUN_IS_UNCHANGED = Depends(_unless_run_is_unchanged)  # of answers from nothing but the rows of one run


def _heed(request: Request, state: str) -> None:
    """Note the version of the answer. Raises: NotModifiedError for a client that has it."""
    asker, headers = asking(request), request.headers
    whose = [asker.mark, asker.role, sorted(asker.accounts)]
    form = [request.url.path, request.url.query, headers.get("accept", ""), RELEASE]
    own = hashlib.sha256(json.dumps([state, whose, form]).encode()).hexdigest()[:TAG_CHARACTERS]
    for tag in _tags(headers.get("if-none-match", "")):
        if tag.partition(".")[0] == own:
            raise NotModifiedError(tag)
    request.scope.setdefault("state", {})[VERSION] = own


def _tags(field: str) -> set[str]:
    return {tag.strip().removeprefix("W/").strip('"') for tag in field.split(",")} - {""}


class Validators:
    """Adds a weak ETag to answers to GET that are JSON or tables, and answers 304 to clients that have that content."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] == "http" and scope["method"] == "GET":
            send = _Tagging(send, scope)
        await self.app(scope, receive, send)


class _Tagging:
    """Holds JSON, and a table of one piece, until it is complete, then tags it; passes every other answer on."""

    def __init__(self, send: Send, scope: Scope) -> None:
        self._send = send
        self._scope = scope
        self._start: Message | None = None
        self._body = bytearray()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_tagged(message):
            self._start = message
        elif self._start is None:
            await self._send(message)
        elif message.get("more_body") and not _kind(self._start).startswith("application/json"):
            start, self._start = self._start, None
            await self._send(self._with_version(start))
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body"):
                await self._finish(self._start)

    def _with_version(self, start: Message) -> Message:
        if own := self._version:
            MutableHeaders(scope=start)["ETag"] = f'W/"{own}."'
        return start

    @property
    def _version(self) -> str:
        return str(self._scope.get("state", {}).get(VERSION, ""))

    async def _finish(self, start: Message) -> None:
        digest = hashlib.sha256(self._body).hexdigest()[:TAG_CHARACTERS]
        headers = MutableHeaders(scope=start)
        headers["ETag"] = f'W/"{self._version}.{digest}"'
        body = bytes(self._body)
        if _has(Headers(scope=self._scope).get("if-none-match", ""), digest):
            start["status"], body = 304, b""
            del headers["content-length"], headers["content-type"]
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body})


def _has(field: str, digest: str) -> bool:
    tags: Iterable[str] = _tags(field)
    return any(tag == "*" or tag.rpartition(".")[2] == digest for tag in tags)


def _is_tagged(start: Message) -> bool:
    return start["status"] == 200 and _kind(start).startswith(TAGGED)


def _kind(start: Message) -> str:
    return Headers(raw=start["headers"]).get("content-type", "")

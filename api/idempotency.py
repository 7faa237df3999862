"""Idempotency keys of requests, so that sending one again creates nothing twice."""

import hashlib
from typing import Annotated

from fastapi import Depends, Header, Request
from pydantic import StringConstraints
from starlette.types import Scope

from crosswind.api.dependencies import PrincipalOf
from crosswind.data.schema.request_key import RequestKey

Key = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[\x21-\x7e]+$")]


async def request_key(
    request: Request, principal: PrincipalOf, idempotency_key: Annotated[Key | None, Header()] = None
) -> RequestKey | None:
    """Return the request's Idempotency-Key with a hash of its content and its caller; None without a key.

    Source: draft-ietf-httpapi-idempotency-key-header.
    """
    if idempotency_key is None:
        return None
    return RequestKey(idempotency_key, fingerprint(request.scope, await request.body()), principal.mark)


def fingerprint(scope: Scope, body: bytes) -> str:
    """Return a hash of what a request asks for."""
    return hashlib.sha256(f"{scope['method']} {scope['path']}\n".encode() + body).hexdigest()


RequestKeyOf = Annotated[RequestKey | None, Depends(request_key)]

"""Requests that their sender names, so that sending one again makes nothing twice."""

import hashlib
from typing import Annotated

from fastapi import Depends, Header, Request
from pydantic import StringConstraints

from crosswind.data.schema.request_key import RequestKey

Key = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[\x21-\x7e]+$")]


async def request_key(request: Request, idempotency_key: Annotated[Key | None, Header()] = None) -> RequestKey | None:
    """The request's Idempotency-Key with a hash of what it asks for; None without one.

    Source: draft-ietf-httpapi-idempotency-key-header.
    """
    if idempotency_key is None:
        return None
    asked = hashlib.sha256(f"{request.method} {request.url.path}\n".encode() + await request.body())
    return RequestKey(idempotency_key, asked.hexdigest())


RequestOf = Annotated[RequestKey | None, Depends(request_key)]

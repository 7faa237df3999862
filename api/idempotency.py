"""Idempotency keys of requests, so that sending one again creates nothing twice."""

import hashlib
from typing import Annotated

from fastapi import Depends, Header, Request
from pydantic import StringConstraints

from crosswind.data.schema.request_key import RequestKey

Key = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[\x21-\x7e]+$")]


async def request_key(request: Request, idempotency_key: Annotated[Key | None, Header()] = None) -> RequestKey | None:
    """Return the request's Idempotency-Key with a hash of its content; None without a key.

    Source: draft-ietf-httpapi-idempotency-key-header.
    """
    if idempotency_key is None:
        return None
    digest = hashlib.sha256(f"{request.method} {request.url.path}\n".encode() + await request.body())
    return RequestKey(idempotency_key, digest.hexdigest())


RequestKeyOf = Annotated[RequestKey | None, Depends(request_key)]

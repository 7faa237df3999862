"""Batches: sealed segments of a node's spool, sent here to be stored exactly once."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request, Response
from pydantic import Field, StringConstraints

from crosswind.api.intake import MEDIA, IntakeOf
from crosswind.api.unpack import codings
from crosswind.api.wire import BINARY, View, content_encoding, refuse_unknown_query
from crosswind.ingest.load.receive import Fate

PATH = "/v1/ingest/batches"
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "One sealed segment; Content-Encoding is zstd, gzip or identity.",
        "content": {MEDIA: BINARY},
    },
    "parameters": [content_encoding(codings())],
}
BatchId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]

router = APIRouter(tags=["ingest"], dependencies=[Depends(refuse_unknown_query)])


class BatchView(View):
    """The fate of a batch; a sender that gets this answer may forget the batch."""

    batch_id: str
    status: Annotated[Fate, Field(description="partial: stored as far as understood, and kept aside here")]
    rows: Annotated[int, Field(description="rows that this request added")]
    problems: list[str]


@router.post(PATH, status_code=201, responses={200: {"model": BatchView}}, openapi_extra=BODY)
async def ingest_batch(
    request: Request,
    response: Response,
    intake: IntakeOf,
    *,
    crosswind_batch: Annotated[BatchId, Header()],
    crosswind_segment: Annotated[str, Header()],
) -> BatchView:
    """Stores a batch; 201 when it is new, 200 when it was stored before. Only then may its sender delete it."""
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    received = await intake.take(await request.body(), coding, name=crosswind_segment, batch_id=crosswind_batch)
    response.status_code = 200 if received.fate is Fate.DUPLICATE else 201
    return BatchView(
        batch_id=received.batch_id, status=received.fate, rows=received.rows, problems=list(received.problems)
    )

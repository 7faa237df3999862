"""Samples of series that other systems send: Prometheus by remote-write 1.0, OpenTelemetry by OTLP over HTTP."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from starlette.exceptions import HTTPException

from crosswind.api.problems import INVALID, MEDIA_TYPE, problem
from crosswind.api.series_intake import JSON, OTLP, PROTOBUF, REMOTE_WRITE, SNAPPY, SeriesIntakeOf
from crosswind.api.unpack import codings
from crosswind.api.wire import BINARY, content_encoding, refuse_unknown_query
from crosswind.ingest.series.otlp_answer import answer_json, answer_octets
from crosswind.ingest.series.receive import Received

WRITE_REQUEST = "prometheus.WriteRequest"
OTLP_ANSWERED = "An ExportMetricsServiceResponse, in the format of the request."
ANY_OBJECT: Mapping[str, Any] = {"schema": {"type": "object"}}

router = APIRouter(tags=["ingest"], dependencies=[Depends(refuse_unknown_query)])


def _body(description: str, content: Mapping[str, Any], coded: tuple[str, ...]) -> dict[str, Any]:
    body = {"required": True, "description": description, "content": dict(content)}
    return {"requestBody": body, "parameters": [content_encoding(coded)]}


@router.post(
    REMOTE_WRITE,
    status_code=204,
    response_class=Response,
    openapi_extra=_body("A prometheus.WriteRequest in snappy's block format.", {PROTOBUF: BINARY}, SNAPPY),
)
async def ingest_prometheus(request: Request, intake: SeriesIntakeOf) -> Response:
    """Stores the samples of a request of Prometheus; 204 when they are on the disk, 422 when some were refused."""
    _check_version(request.headers.get("content-type", ""))
    received = await intake.remote_write(await request.body(), _coding(request, "snappy"))
    if not received.refusals:
        return Response(status_code=204)
    detail = f"{received.rows} samples stored; refused: {_reasons(received)}"
    return problem(INVALID, detail, root_path=str(request.scope.get("root_path", "")))


@router.post(
    OTLP,
    response_class=Response,
    responses={200: {"content": {PROTOBUF: BINARY, JSON: ANY_OBJECT}, "description": OTLP_ANSWERED}},
    openapi_extra=_body("An ExportMetricsServiceRequest.", {PROTOBUF: BINARY, JSON: ANY_OBJECT}, codings()),
)
async def ingest_otlp(request: Request, intake: SeriesIntakeOf) -> Response:
    """Stores the data points of a request of OpenTelemetry; its partial_success tells of those that were refused."""
    is_json = request.headers.get("content-type", "").lower().startswith(JSON)
    received = await intake.otlp(await request.body(), _coding(request, "identity"), is_json=is_json)
    refused, reasons = received.refusals.total(), _reasons(received)
    content = answer_json(refused, reasons) if is_json else answer_octets(refused, reasons)
    return Response(content, media_type=JSON if is_json else PROTOBUF)


def _check_version(content_type: str) -> None:
    """Asks senders of version 2.0 to fall back to 1.0, as that version's specification has it."""
    _, mark, message = content_type.replace(" ", "").partition("proto=")
    if mark and message != WRITE_REQUEST:
        raise HTTPException(MEDIA_TYPE.status, f"message {message!r:.80}: expected {WRITE_REQUEST}")


def _coding(request: Request, default: str) -> str:
    return request.headers.get("content-encoding", default).strip().lower()


def _reasons(received: Received) -> str:
    return "; ".join(f"{count} x {reason}" for reason, count in [*received.refusals.items(), *received.remarks.items()])

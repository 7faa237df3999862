"""The description of the API: for programs, on a page, and the binary bodies of its examples."""

import json

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from crosswind.api.delivery.coding import IDENTITY, coding_of, packed_file
from crosswind.api.openapi.examples import examples, folder
from crosswind.dashboards.assets import Asset
from crosswind.data.schema.errors import NotFoundError

PRIVATE = "private, no-cache"
router = APIRouter(include_in_schema=False)


@router.get("/openapi.json")
def get_document(request: Request) -> Response:
    """Return the description in OpenAPI 3.1, which is written and packed once."""
    state = request.app.state
    if state.description is None:
        text = json.dumps(request.app.openapi(), ensure_ascii=False, separators=(",", ":"))
        state.description = Asset(text.encode(), "application/json")
    return file_answer(state.description, request, PRIVATE)


@router.get("/docs")
def show_docs() -> HTMLResponse:
    """Return the page."""
    from crosswind.dashboards.pages.render import render_docs  # noqa: PLC0415 - heavy, as all pages are

    return HTMLResponse(render_docs())


@router.get("/docs/examples/{name}")
def get_example_body(name: str) -> Response:
    """Return a body that an example sends."""
    names = sorted(example.file for example in examples() if example.file)
    if name not in names:
        raise NotFoundError(f"body {name[:60]!r}: expected one of {', '.join(names)}")
    return Response((folder() / name).read_bytes(), media_type="application/octet-stream")


def file_answer(file: Asset, request: Request, cache_control: str = "no-cache") -> Response:
    """Return a file, packed where the client takes that, or 304 where the client has it."""
    tag = f'"{file.version}"'
    headers = {"ETag": tag, "Vary": "Accept-Encoding", "Cache-Control": cache_control}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    coding = coding_of(request.headers.get("accept-encoding", ""))
    if coding == IDENTITY:
        return Response(file.body, headers=headers, media_type=file.media_type)
    body = file.zipped if coding == "gzip" and file.zipped else packed_file(file.body, coding)
    return Response(body, headers={**headers, "Content-Encoding": coding}, media_type=file.media_type)

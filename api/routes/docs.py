"""The page that shows the API's description, and the binary bodies of its examples."""

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from crosswind.api.openapi.examples import examples, folder
from crosswind.data.schema.errors import NotFoundError

router = APIRouter(prefix="/docs", include_in_schema=False)


@router.get("")
def show_docs() -> HTMLResponse:
    """Return the page."""
    from crosswind.dashboards.pages.render import render_docs  # noqa: PLC0415 - heavy, as all pages are

    return HTMLResponse(render_docs())


@router.get("/examples/{name}")
def get_example_body(name: str) -> Response:
    """Return a body that an example sends."""
    names = sorted(example.file for example in examples() if example.file)
    if name not in names:
        raise NotFoundError(f"body {name[:60]!r}: expected one of {', '.join(names)}")
    return Response((folder() / name).read_bytes(), media_type="application/octet-stream")

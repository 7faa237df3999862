"""The state of the server, for its administrators."""

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, JSONResponse

from crosswind.api.state.observed import Observed
from crosswind.data.schema.answers.status import ServerStatus

router = APIRouter(include_in_schema=False)


def status_of(request: Request) -> ServerStatus:
    """Return the present state."""
    return Observed.of(request.app).status()


StatusOf = Annotated[ServerStatus, Depends(status_of)]


@router.get("/status")
def show_status(status: StatusOf) -> HTMLResponse:
    """Return it as a page."""
    from crosswind.dashboards.pages.render import render_status  # noqa: PLC0415 - heavy, as all pages are

    return HTMLResponse(render_status(status), headers={"Cache-Control": "no-store"})


@router.get("/status.json")
def list_status(status: StatusOf) -> JSONResponse:
    """Return it as JSON."""
    facts = {"is_good": status.is_good, **asdict(status)}
    return JSONResponse(facts, headers={"Cache-Control": "no-store"})

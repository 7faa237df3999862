"""The pages and the files they load."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from fastapi.routing import APIRoute
from starlette.types import Scope

from crosswind.api.background_answers import PendingError
from crosswind.api.dependencies import ClientOf, PageClientOf
from crosswind.api.paging import cursor_of, place_of
from crosswind.api.problems import KINDS
from crosswind.api.routes.docs import file_answer
from crosswind.client.local import Local
from crosswind.dashboards.assets import asset
from crosswind.dashboards.pages.as_csv import as_csv
from crosswind.dashboards.pages.listed import FIRST, LISTED
from crosswind.dashboards.pages.page import Page, PageQuery, View
from crosswind.dashboards.pages.render import Address, as_json, render, render_error, render_waiting
from crosswind.dashboards.pages.report import report

REMEDIES = {  # for readers of pages, by the name of the problem
    "not-found": "Look for it in the list of runs, or search.",
    "invalid-input": "Correct the address, or start again from the list of runs.",
    "forbidden": "Open the page at the server's own address, and do it again there.",
    "method-not-allowed": "Go back to the page with the form, and send it again.",
    "unavailable": "Try again in a moment; nothing was changed.",
}
SLASH = "Leave out the slash at the end of the address."
RELOAD_SECONDS = 2
FOR_A_YEAR = "public, max-age=31536000, immutable"


class PageRoute(APIRoute):
    """The route of a page: a browser does not wait for what is being computed; delivery/problem_pages.py refuses."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, with a page in place of one that is being computed."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except PendingError:
                if "text/html" not in request.headers.get("accept", ""):
                    raise
                return _waiting(request)

        return answer


def refusal_page(scope: Scope, facts: Mapping[str, Any]) -> HTMLResponse:
    """Return problem details as a page: the kind, the reason and the remedy."""
    name = facts["type"].rpartition("/")[2]
    remedy = REMEDIES.get(name) or next((kind.remedy for kind in KINDS if kind.name == name), "")
    if name == "not-found" and scope["path"].endswith("/"):
        remedy = SLASH
    root = root_of(Request(scope))
    html = render_error(facts["status"], facts["title"], facts["detail"], root=root, remedy=remedy)
    return HTMLResponse(html, facts["status"])


def _waiting(request: Request) -> HTMLResponse:
    """Return a page that reloads by itself."""
    headers = {"Refresh": str(RELOAD_SECONDS), "Cache-Control": "no-store"}
    return HTMLResponse(render_waiting(root=root_of(request)), 202, headers)


router = APIRouter(include_in_schema=False)


@router.get("/")
def home() -> RedirectResponse:
    """Redirect to the first page, by a relative address that keeps a proxy's prefix."""
    return RedirectResponse(FIRST.path.lstrip("/"))


@router.get("/static/{name}")
def static(name: str, request: Request) -> Response:
    """Return a file that pages load; its address changes with its content, so browsers may keep it."""
    file = asset(name)
    is_named = request.query_params.get("v") == file.version
    return file_answer(file, request, FOR_A_YEAR if is_named else "no-cache")


def root_of(request: Request) -> str:
    """Return the way from the requested address to the top, such as `../`, which holds behind any proxy."""
    return "../" * max(0, _path(request).count("/") - 1) or "./"


def _path(request: Request) -> str:
    path: str = (request.scope.get("raw_path") or request.scope["path"].encode()).decode("ascii", "replace")
    return path.removeprefix(request.scope.get("root_path", ""))


def _answer(page: Page, client: Local, request: Request) -> tuple[View, Address]:
    query = dict(request.query_params)
    run_id = request.path_params.get("run_id", "")
    view = page.view(client, PageQuery(query, run_id, place_of(query.get("cursor"), int, str)))
    path = page.path.replace("{run_id}", run_id)
    cursor = None if view.next_place is None else cursor_of(*view.next_place)
    return view, Address(
        *(root_of(request), path, query, cursor),
        sees_all=client.store.rule.sees_all,
        damaged=client.store.lake.damaged,
    )


def _as_html(page: Page) -> Callable[..., HTMLResponse]:
    def show(request: Request, client: PageClientOf) -> HTMLResponse:
        view, address = _answer(page, client, request)
        return HTMLResponse(render(page, view, address))

    return show


def _as_json(page: Page) -> Callable[..., JSONResponse]:
    def show(request: Request, client: ClientOf) -> JSONResponse:
        view, address = _answer(page, client, request)
        return JSONResponse(as_json(page, view, address))

    return show


def _as_csv(page: Page) -> Callable[..., Response]:
    def show(request: Request, client: ClientOf) -> Response:
        view, _ = _answer(page, client, request)
        name = request.query_params.get("figure")
        file = f"crosswind-{page.name}.csv"
        headers = {"Content-Disposition": f'attachment; filename="{file}"'}
        return Response(as_csv(page, view, name), headers=headers, media_type="text/csv")

    return show


def _as_report(page: Page) -> Callable[..., Response]:
    def show(request: Request, client: ClientOf) -> Response:
        view, address = _answer(page, client, request)
        headers = {"Content-Disposition": f'attachment; filename="crosswind-{page.name}.html"'}
        return HTMLResponse(report(page, view, address), headers=headers)

    return show


for _page in LISTED:
    router.add_api_route(f"{_page.path}.html", _as_report(_page), name=f"{_page.name}_report")
    router.add_api_route(f"{_page.path}.csv", _as_csv(_page), name=f"{_page.name}_csv")
    router.add_api_route(f"{_page.path}.json", _as_json(_page), name=f"{_page.name}_json")
    router.add_api_route(_page.path, _as_html(_page), name=_page.name, route_class_override=PageRoute)

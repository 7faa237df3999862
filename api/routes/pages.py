"""The pages and the files they load."""

from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from fastapi.routing import APIRoute

from crosswind.api.background_answers import PendingError
from crosswind.api.dependencies import ClientOf, PageClientOf, RunnerOf, StudyServiceOf, asking
from crosswind.api.paging import cursor_of, place_of
from crosswind.api.problems import OF_ERROR
from crosswind.api.routes.docs import file_answer
from crosswind.api.routes.login import Form
from crosswind.client.local import Local
from crosswind.dashboards.assets import asset
from crosswind.dashboards.pages.listed import LISTED
from crosswind.dashboards.pages.page import LISTS, Page, PageQuery, View
from crosswind.dashboards.pages.predict.form import configuration_of
from crosswind.dashboards.pages.render import Address, as_json, render, render_error, render_waiting
from crosswind.data.schema.access import Scope
from crosswind.data.schema.errors import ProjectError
from crosswind.data.schema.trial import TRIALS_MAX

REMEDIES = {
    409: "Look at the page again: it may have changed meanwhile.",
    404: "Look for it in the list of runs, or search.",
    422: "Correct the address, or start again from the list of runs.",
    503: "Try again in a moment; nothing was changed.",
}
RELOAD_SECONDS = 2
VERSION_MAX = 2**31 - 1
FOR_A_YEAR = "public, max-age=31536000, immutable"


class PageRoute(APIRoute):
    """The route of a page: a browser gets a refusal as a page, other clients get problem details."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, with refusals made into pages."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except tuple(OF_ERROR) as error:
                if "text/html" not in request.headers.get("accept", ""):
                    raise
                return _waiting(request) if isinstance(error, PendingError) else _refusal(request, error)

        return answer


def _refusal(request: Request, error: ProjectError) -> HTMLResponse:
    [kind] = [kind for error_type, kind in OF_ERROR.items() if isinstance(error, error_type)]
    html = render_error(
        kind.status, kind.title, str(error), root=root_of(request), remedy=REMEDIES.get(kind.status, "")
    )
    return HTMLResponse(html, kind.status)


def _waiting(request: Request) -> HTMLResponse:
    """Return a page that reloads by itself."""
    headers = {"Refresh": str(RELOAD_SECONDS), "Cache-Control": "no-store"}
    return HTMLResponse(render_waiting(root=root_of(request)), 202, headers)


router = APIRouter(include_in_schema=False)


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
    given = request.query_params
    query = {name: ",".join(given.getlist(name)) if name in LISTS else given[name] for name in given}
    run_id = request.path_params.get("run_id", "")
    view = page.view(client, PageQuery(query, run_id, place_of(query.get("cursor"), int, str)))
    path, principal = page.path.replace("{run_id}", run_id), asking(request)
    cursor = None if view.next_place is None else cursor_of(*view.next_place)
    return view, Address(
        *(root_of(request), path, query, cursor),
        sees_all=client.store.rule.sees_all,
        damaged=client.store.lake.damaged,
        may_tune=principal.allows(Scope.TUNE),
        may_administer=principal.allows(Scope.ADMIN),
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


def _back(page: str, **query: str) -> RedirectResponse:
    """Redirect to a page by a relative address, as GET."""
    return RedirectResponse(f"{page}?{urlencode(query)}", 303)


def change_study(form: Form, service: StudyServiceOf) -> RedirectResponse:
    """Enqueue a configuration in a study, or add trials to its budget, as a form of its page asks."""
    study, query = form.get("study", ""), PageQuery(form)
    if query.choice("act", ("enqueue", "extend")) == "extend":
        service.extend(study, trials=query.amount("trials", 1, most=TRIALS_MAX))
    else:
        service.enqueue(study, [configuration_of(form.get("config", "").split())])
    return _back("studies", study=study)


def change_model(form: Form, runner: RunnerOf) -> RedirectResponse:
    """Promote a version of a model, for a reason one that does not beat the baselines, or take it back."""
    name, query = form.get("model", ""), PageQuery(form)
    version = query.amount("version", 1, most=VERSION_MAX)
    if query.choice("act", ("promote", "rollback")) == "rollback":
        runner.registry.rollback(name, form.get("reason", ""), version=version)
    else:
        runner.registry.promote(name, version, forced_because=query.word("reason"))
    return _back("models", model=name)


for _address, _change in (("/studies", change_study), ("/models", change_model)):
    router.add_api_route(
        _address, _change, methods=["POST"], name=_change.__name__, response_model=None, route_class_override=PageRoute
    )
for _page in LISTED:
    router.add_api_route(_page.twin, _as_json(_page), name=f"{_page.name}_json")
    router.add_api_route(_page.path, _as_html(_page), name=_page.name, route_class_override=PageRoute)

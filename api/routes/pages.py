"""The pages and the files they load."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from fastapi.routing import APIRoute
from starlette.types import Scope

from crosswind.api.background_answers import PendingError
from crosswind.api.dependencies import ClientOf, PageClientOf, RunnerOf, StudyServiceOf, asking
from crosswind.api.example import Example
from crosswind.api.paging import cursor_of, place_of
from crosswind.api.problems import KINDS
from crosswind.api.routes.docs import file_answer
from crosswind.api.routes.login import Form
from crosswind.client.local import Local
from crosswind.dashboards.assets import asset
from crosswind.dashboards.pages.as_csv import as_csv
from crosswind.dashboards.pages.listed import LISTED
from crosswind.dashboards.pages.page import EXAMPLE, LISTS, Page, PageQuery, View
from crosswind.dashboards.pages.predict.form import configuration_of
from crosswind.dashboards.pages.render import Address, as_json, render, render_error, render_waiting
from crosswind.dashboards.pages.report import report
from crosswind.data.schema.access import Scope as Permission
from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.schema.trial import TRIALS_MAX

REMEDIES = {  # for readers of pages, by the name of the problem
    "conflict": "Look at the page again: it may have changed meanwhile.",
    "not-found": "Look for it in the list of runs, or search.",
    "invalid-input": "Correct the address, or start again from the list of runs.",
    "forbidden": "Open the page at the server's own address, and do it again there.",
    "method-not-allowed": "Go back to the page with the form, and send it again.",
    "unavailable": "Try again in a moment; nothing was changed.",
}
SLASH = "Leave out the slash at the end of the address."
VERSION_MAX = 2**31 - 1
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


def _is_browser(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _waiting(request: Request) -> HTMLResponse:
    """Return a page that looks again by itself."""
    return HTMLResponse(render_waiting(root=root_of(request)), 202, {"Cache-Control": "no-store"})


router = APIRouter(include_in_schema=False)
example_router = APIRouter(include_in_schema=False)  # the same pages of the example, below its own path


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
    return path.removeprefix(request.scope.get("app_root_path", request.scope.get("root_path", "")))


def _answer(page: Page, client: Local, request: Request) -> tuple[View, Address]:
    """Return a page of the reader's store."""
    view, address = _view(page, client, request)
    principal = asking(request)
    return view, replace(
        address,
        sees_all=client.store.rule.sees_all,
        damaged=client.store.lake.damaged,
        may_tune=principal.allows(Permission.TUNE),
        may_administer=principal.allows(Permission.ADMIN),
    )


def _of_example(page: Page, client: Local, request: Request) -> tuple[View, Address]:
    """Return a page of the example."""
    view, address = _view(page, client, request)
    return view, replace(address, root=f"{address.root}{EXAMPLE}/", is_example=True)


def _view(page: Page, client: Local, request: Request) -> tuple[View, Address]:
    given = request.query_params
    query = {name: ",".join(given.getlist(name)) if name in LISTS else given[name] for name in given}
    run_id = request.path_params.get("run_id", "")
    view = page.view(client, PageQuery(query, run_id, place_of(query.get("cursor"), int, str)))
    path = page.path.replace("{run_id}", run_id)
    cursor = None if view.next_place is None else cursor_of(*view.next_place)
    return view, Address(root_of(request), path, query, cursor)


Shown = Callable[[Page, View, Address, Request], Response]


def _own_page(page: Page) -> Callable[..., Response]:
    def show(request: Request, hurried: PageClientOf, patient: ClientOf) -> Response:
        view, address = _answer(page, hurried if _is_browser(request) else patient, request)
        if view.is_empty and _is_browser(request) and not any(request.query_params.values()):
            view, address = _in_place(page, view, request) or (view, address)
        return _as_html(page, view, address, request)

    return show


def _in_place(page: Page, own: View, request: Request) -> tuple[View, Address] | None:
    """Return the example's page for a first visit; None where the example has as little, or cannot be made."""
    example: Example = request.app.state.example
    try:
        client = example.page_client
    except UnavailableError:
        return None
    view, address = _of_example(page, client, request)
    said, lack = (getattr(one, "sentence", "") for one in (view, own))
    return None if view.is_empty else (view, replace(address, in_place=True, lack="" if lack == said else lack))


def _own_form(page: Page, shown: Shown) -> Callable[..., Response]:
    def show(request: Request, client: ClientOf) -> Response:
        return shown(page, *_answer(page, client, request), request)

    return show


def _example_form(page: Page, shown: Shown) -> Callable[..., Response]:
    def show(request: Request) -> Response:
        example: Example = request.app.state.example
        client = example.page_client if shown is _as_html and _is_browser(request) else example.client
        return shown(page, *_of_example(page, client, request), request)

    return show


def _as_html(page: Page, view: View, address: Address, _: Request) -> Response:
    return HTMLResponse(render(page, view, address))


def _as_json(page: Page, view: View, address: Address, _: Request) -> Response:
    return JSONResponse(as_json(page, view, address))


def _as_csv(page: Page, view: View, address: Address, request: Request) -> Response:
    name = request.query_params.get("figure")
    return Response(as_csv(page, view, name), headers=_attached(page, address, "csv"), media_type="text/csv")


def _as_report(page: Page, view: View, address: Address, _: Request) -> Response:
    return HTMLResponse(report(page, view, address), headers=_attached(page, address, "html"))


def _attached(page: Page, address: Address, form: str) -> dict[str, str]:
    name = f"{EXAMPLE}-{page.name}" if address.is_example else page.name
    return {"Content-Disposition": f'attachment; filename="crosswind-{name}.{form}"'}


def _back(page: str, **query: str) -> RedirectResponse:
    """Redirect to a page by a relative address, as GET."""
    return RedirectResponse(f"{page}?{urlencode(query)}", 303)


def change_study(form: Form, service: StudyServiceOf) -> RedirectResponse:
    """Change a study as a form of its page asks: its state, its budget, or what it tries next."""
    study, query = form.get("study", ""), PageQuery(form)
    acts: Mapping[str, Callable[[], object]] = {
        "enqueue": lambda: service.enqueue(study, [configuration_of(form.get("config", "").split())]),
        "extend": lambda: service.extend(study, trials=query.amount("trials", 1, most=TRIALS_MAX)),
        "pause": lambda: service.pause(study),
        "resume": lambda: service.resume(study),
        "stop": lambda: service.stop(study),
    }
    act = query.choice("act", tuple(acts)) or "enqueue"
    if act == "stop" and query.word("sure") is None:
        raise InvalidInputError("stop: expected a tick that no more trials are to be handed out")
    acts[act]()
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
    router.add_api_route(_address, _change, methods=["POST"], name=_change.__name__, response_model=None)
for _page in LISTED:
    for _form, _shown in (("html", _as_report), ("csv", _as_csv), ("json", _as_json)):
        _stem, _name = f"{_page.stem}.{_form}", f"{_page.name}_{_form}"
        for _router, _show in ((router, _own_form(_page, _shown)), (example_router, _example_form(_page, _shown))):
            _router.add_api_route(_stem, _show, name=_name, response_model=None)
    for _router, _show in ((router, _own_page(_page)), (example_router, _example_form(_page, _as_html))):
        _router.add_api_route(_page.path, _show, name=_page.name, response_model=None, route_class_override=PageRoute)

"""The pages, loaded with the first path that is no route of the API: they are half of all that there is to load."""

from importlib import import_module

from anyio import Lock
from anyio.to_thread import run_sync
from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

PAGES = "crosswind.api.routes.pages"
LOOKED = "crosswind.looked"


def add_pages_later(app: FastAPI) -> None:
    """Let the application load its pages when a path is asked for that it has no route for."""
    app.router.default = _LatePages(app)


def page_routes() -> list[Route]:
    """Return the routes of the pages, which this loads."""
    return [route for route in import_module(PAGES).router.routes if isinstance(route, Route)]


class _LatePages:
    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._not_found = app.router.default
        self._lock = Lock()
        self._is_loaded = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._lock:
            if not self._is_loaded:
                pages = await run_sync(import_module, PAGES)
                self._app.router.routes += pages.router.routes
                self._app.mount(f"/{pages.EXAMPLE}", pages.example_router)
                self._is_loaded = True
        if scope.get(LOOKED):
            await self._not_found(scope, receive, send)
        else:
            scope[LOOKED] = True
            await self._app.router(scope, receive, send)

import re
from dataclasses import replace

import pytest
from fastapi import FastAPI
from starlette.routing import Route
from tests.api.access.issuing import ANNA, EVERY_DAY, bearer, issued, stranger

from crosswind.api.access.scopes import ADMIN, NEEDS, READ, Needs, methods
from crosswind.api.app import create_app, routes_of
from crosswind.api.late_pages import page_routes
from crosswind.data.store.store import Store


def test_a_route_whose_scope_is_declared_nowhere_is_refused_at_once() -> None:
    app = FastAPI(openapi_url=None)
    app.add_api_route("/v1/new", lambda: None)
    with pytest.raises(LookupError, match="GET /v1/new: declare the scope"):
        Needs().check(route for route in app.routes if isinstance(route, Route))


def test_no_declaration_is_of_a_route_that_is_gone(store: Store) -> None:
    every = *routes_of(create_app(store)), *page_routes()
    routes = {f"{method} {route.path}" for route in every for method in methods(route)}
    assert set(NEEDS) - routes == set()


def test_the_scope_is_that_of_the_route_that_answers(store: Store) -> None:
    needs = Needs()
    for route in routes_of(create_app(store)):
        for method in methods(route):
            path = re.sub(r"\{\w+\}", "x", route.path)
            assert needs.of(method, path) == NEEDS[f"{method} {route.path}"]
    assert needs.of("POST", "/v1/models/x:train") == ADMIN
    assert needs.of("GET", "/v1/models/x:train") == READ  # a model of this name, which there is not
    assert needs.of("GET", "/healthz") is None
    assert needs.of("GET", "/v1/nope") == READ
    assert needs.of("DELETE", "/v1/models/x:train") == READ


@pytest.mark.parametrize("path", ["/v1/models/x:train%0A", "/v1/models/x%0A:train", "/v1/models/%2e:train"])
def test_a_path_that_the_router_takes_for_a_route_needs_what_the_route_needs(store: Store, path: str) -> None:
    secret = issued(store, replace(ANNA, scopes=EVERY_DAY)).secret
    assert stranger(create_app(store), bearer(secret)).post(path).status_code in {403, 404}
    assert Needs().of("POST", "/v1/models/x:train\n") == ADMIN


def test_the_description_of_the_api_says_which_scope_each_operation_requires(store: Store) -> None:
    document = create_app(store).openapi()
    paths = document["paths"]
    assert paths["/healthz"]["get"]["security"] == []
    assert {"bearer": ["admin"]} in paths["/v1/models/{name}:train"]["post"]["security"]
    said = {scheme for one in paths["/v1/runs"]["get"]["security"] for scheme in one}
    assert said == set(document["components"]["securitySchemes"])

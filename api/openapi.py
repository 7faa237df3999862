"""Access in the description of the API: ways to send a token, and the scope that each operation requires."""

from typing import Any

from fastapi import FastAPI

from crosswind.api.access.credentials import COOKIE
from crosswind.api.access.scopes import NEEDS, Needs
from crosswind.api.delivery.deprecation import DEPRECATED
from crosswind.api.delivery.repeats import EXPECTED, HEADER, KEY, takes_key
from crosswind.api.tables.description import describe_lists

SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "Authorization: Bearer TOKEN"},
    "header": {"type": "apiKey", "in": "header", "name": "X-Crosswind-Token"},
    "session": {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": "of a browser that has logged in"},
}


def describe_access(app: FastAPI) -> None:
    """Let the application's OpenAPI document name the ways to send a token, and the scope of each operation.

    In OpenAPI 3.1 any scheme may list what it has to allow. Source: spec.openapis.org/oas/v3.1.0, 4.8.30.
    """
    plain = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            _describe(plain())
        return plain()

    app.openapi = described  # type: ignore[method-assign]


def _describe(document: dict[str, Any]) -> None:
    document.setdefault("components", {})["securitySchemes"] = SCHEMES
    describe_lists(document)
    needs = Needs()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            need = NEEDS[f"{method.upper()} {path}"]
            if method == "post" and takes_key(needs, path):
                _describe_key(operation)
            if f"{method.upper()} {path}" in DEPRECATED:
                operation["deprecated"] = True
            operation["security"] = [] if need is None else [{scheme: [need.scope]} for scheme in SCHEMES]


def _describe_key(operation: dict[str, Any]) -> None:
    parameters = [one for one in operation.get("parameters", ()) if one["name"] != HEADER]
    schema = {"type": "string", "pattern": f"^{KEY.pattern}$", "description": EXPECTED}
    operation["parameters"] = [*parameters, {"name": HEADER, "in": "header", "required": False, "schema": schema}]

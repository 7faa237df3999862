"""Access in the description of the API: ways to send a token, and the scope that each operation requires."""

from typing import Any

from fastapi import FastAPI

from crosswind.api.access.credentials import COOKIE
from crosswind.api.access.scopes import NEEDS
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
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            need = NEEDS[f"{method.upper()} {path}"]
            operation["security"] = [] if need is None else [{scheme: [need.scope]} for scheme in SCHEMES]

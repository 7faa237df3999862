"""The description of the API: what FastAPI reads from the routes, and what a reader needs besides."""

from collections.abc import Mapping
from threading import Lock
from typing import Any

from fastapi import FastAPI

from crosswind.api.access.credentials import COOKIE
from crosswind.api.access.scopes import NEEDS
from crosswind.api.delivery.deprecation import DEPRECATED
from crosswind.api.delivery.repeats import EXPECTED, HEADER, KEY, REPLAYED, takes_key
from crosswind.api.openapi.examples import add_examples
from crosswind.api.openapi.operation import Operation, operations
from crosswind.api.openapi.refusals import ALL_NEEDS, PROBLEM_SCHEMAS, add_refusals
from crosswind.api.openapi.tags import TAGS
from crosswind.api.tables.description import describe_lists

TITLE_FACTS: Mapping[str, Any] = {
    "title": "Crosswind",
    "summary": "Why a distributed training run was slow, how long the next one will take, and which to run.",
    "description": (
        "Numbers are in SI base units, which names end in. Times are UTC, as `_at` (RFC 3339) and `_ns` (since 1970). "
        "Lists come in parts: `next` is the `cursor` of the next one. Refusals are problem details (RFC 9457). "
        "Examples are of the sample data, which `crosswind demo` stores; names in capitals stand for values of an "
        "earlier answer."
    ),
    "license_info": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    "contact": {"name": "The Crosswind authors"},
}
SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "`Authorization: Bearer TOKEN`"},
    "header": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Crosswind-Token",
        "description": "The same token, where a proxy keeps `Authorization` for itself.",
    },
    "session": {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": "Of a browser that has logged in."},
}
IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "schema": {"type": "string"},
    "description": "The `ETag` of an answer that the client still has.",
}
IDEMPOTENCY_KEY = {
    "name": HEADER,
    "in": "header",
    "schema": {"type": "string", "pattern": f"^{KEY.pattern}$"},
    "description": f"A name of this request; sent again with it, it changes nothing again: {EXPECTED}.",
}
FIRST_ANSWER = {"description": "`true`: this is the first answer, once more.", "schema": {"type": "string"}}
ETAG = {"description": "A name of this content.", "schema": {"type": "string"}}
OF_FASTAPI = frozenset({"HTTPValidationError", "ValidationError"})  # schemas that no answer has here
WORDS_OF_FASTAPI = frozenset({"Successful Response", "OK"})


def describe(app: FastAPI, root_path: str = "") -> None:
    """Let the application's OpenAPI document say who may ask, what is refused and why, and show examples."""
    plain, lock, completed = app.openapi, Lock(), list[dict[str, Any]]()

    def described() -> dict[str, Any]:
        if not completed:
            with lock:
                if not completed:
                    completed.append(_complete(plain(), root_path))
        return completed[0]

    app.openapi = described  # type: ignore[method-assign]


def _complete(document: dict[str, Any], root_path: str) -> dict[str, Any]:
    describe_lists(document)
    every = [*operations(document)]
    parts = document.setdefault("components", {})
    schemas = {name: schema for name, schema in parts.get("schemas", {}).items() if name not in OF_FASTAPI}
    used = {tag for operation in every for tag in operation.facts.get("tags", ())}
    document["servers"] = [{"url": root_path or "/", "description": "This server."}]
    document["tags"] = [{"name": name, "description": about} for name, about in TAGS.items() if name in used]
    parts |= {"schemas": schemas | PROBLEM_SCHEMAS, "securitySchemes": SCHEMES}
    parts["responses"] = add_refusals(every, root_path)
    for operation in every:
        operation.facts["summary"] = operation.facts["operationId"].replace("_", " ").capitalize()
        _name_scope(operation)
        _word_answers(operation, schemas)
        _name_validators(operation)
        _name_key(operation)
        _name_end(operation)
    add_examples(every, root_path)
    return document


def _name_scope(operation: Operation) -> None:
    """Name the scope that is required. In OpenAPI 3.1 any scheme may list what it has to allow.

    Source: spec.openapis.org/oas/v3.1.0, 4.8.30.
    """
    need = NEEDS[operation.name]
    operation.facts["security"] = [] if need is None else [{scheme: [need.scope]} for scheme in SCHEMES]


def _word_answers(operation: Operation, schemas: Mapping[str, Any]) -> None:
    """Describe an answer as its schema is described, where its route has no words of its own."""
    for answer in operation.answers.values():
        if answer["description"] in WORDS_OF_FASTAPI:
            content: dict[str, Any] = next(iter(answer.get("content", {}).values()), {})
            name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
            answer["description"] = schemas.get(name, {}).get("description", "It is done.")


def _name_validators(operation: Operation) -> None:
    """Answers to GET in JSON carry a tag of their content."""
    answer = operation.answers.get("200", {})
    if operation.method == "GET" and "application/json" in answer.get("content", {}):
        answer.setdefault("headers", {})["ETag"] = ETAG
        operation.facts["responses"]["304"] = {"description": "The client still has this content."}
        operation.parameters.append({**IF_NONE_MATCH})


def _name_key(operation: Operation) -> None:
    """Requests that change something may be sent again."""
    if operation.method == "POST" and takes_key(ALL_NEEDS, operation.path):
        others = [one for one in operation.parameters if one["name"] != HEADER]
        operation.facts["parameters"] = [*others, {**IDEMPOTENCY_KEY}]
        for answer in operation.answers.values():
            answer.setdefault("headers", {})[REPLAYED[0]] = FIRST_ANSWER


def _name_end(operation: Operation) -> None:
    if operation.name in DEPRECATED:
        operation.facts["deprecated"] = True

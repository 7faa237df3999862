"""Examples of every operation: requests with their answers, as JSON files by resource.

A file holds, for each operation (METHOD PATH), examples by name: `summary`; of the request `path`, `query`, `headers`
and `body`, or `file` for a body that is not JSON; `status` and `answer`, or nothing where the answer is bytes; `media`
where the answer is a text of that type. They are of the sample data. `gives` names values of the answer by JSON
pointers: a later example that has such a name in its path continues this one, which makes it a link in the description.
Lists in answers are cut short.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from crosswind.api.openapi.operation import Operation

RESOURCES = (  # in the order in which examples can be executed
    *("health", "runs", "rankings", "jobs", "systems", "series", "cohorts", "predictions", "sql", "studies", "models"),
    *("ingest", "events", "webhooks", "tokens", "access"),
)
JSON = "application/json"


@dataclass(frozen=True)
class Example:
    """One request and its answer; keys are those of the files."""

    operation: str
    name: str
    summary: str
    path: Mapping[str, str | int] = field(default_factory=dict)
    query: Mapping[str, str | int] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    file: str | None = None
    status: int = 200
    media: str = JSON
    answer: Any = None
    gives: Mapping[str, str] = field(default_factory=dict)


def folder() -> Traversable:
    """Return the folder of the files."""
    return files("crosswind.api.openapi") / "examples"


def examples() -> Iterator[Example]:
    """Yield every example, in an order in which they can be executed."""
    for resource in RESOURCES:
        for operation, named in json.loads((folder() / f"{resource}.json").read_text()).items():
            for name, facts in named.items():
                yield Example(operation, name, **facts)


def add_examples(operations: Iterable[Operation], root_path: str) -> None:
    """Add their examples to operations, and links to those that continue them."""
    by_name, every = {operation.name: operation for operation in operations}, [*examples()]
    for example in every:
        operation = by_name.get(example.operation)
        if operation is not None:
            _add(operation, example, root_path)
            _add_links(operation, example, by_name, every)


def _add(operation: Operation, example: Example, root_path: str) -> None:
    for place, values in (("path", example.path), ("query", example.query), ("header", example.headers)):
        for parameter in operation.parameters:
            name = parameter.get("name", "")
            value = {key.lower(): value for key, value in values.items()}.get(name.lower())
            if parameter.get("in") == place and value is not None:
                parameter.setdefault("examples", {})[example.name] = {"summary": example.summary, "value": value}
    sent, received = operation.facts.get("requestBody", {}), operation.facts["responses"][str(example.status)]
    if example.file:
        where = f"{root_path}/docs/examples/{example.file}"
        _show(sent, example, {"externalValue": where})
    elif example.body is not None:
        _show(sent, example, {"value": example.body}, JSON)
    if example.answer is not None:
        _show(received, example, {"value": example.answer}, example.media)


def _show(message: Mapping[str, Any], example: Example, shown: Mapping[str, Any], media: str | None = None) -> None:
    """Add an example to the content of a message, of this media type or of the first."""
    content = message["content"]
    chosen = content[media or next(iter(content))]
    chosen.setdefault("examples", {})[example.name] = {"summary": example.summary, **shown}


def _add_links(
    operation: Operation, example: Example, by_name: Mapping[str, Operation], every: Iterable[Example]
) -> None:
    """Link the answer to every operation whose example has a value of it in its path."""
    links = operation.facts["responses"][str(example.status)]
    for later in every:
        target = by_name.get(later.operation)
        given = {name: example.gives[str(value)] for name, value in later.path.items() if value in example.gives}
        if target is None or not given:
            continue
        shared = {name: f"$request.path.{name}" for name in later.path if name in example.path and name not in given}
        parameters = {name: f"$response.body#{pointer}" for name, pointer in given.items()}
        links.setdefault("links", {})[target.facts["operationId"]] = {
            "operationId": target.facts["operationId"],
            "parameters": {**parameters, **shared},
        }

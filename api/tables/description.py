"""Lists in the description of the API: what each can be sorted by, its columns, and rows of chosen columns."""

from typing import Any

from crosswind.api.tables.listing import ROWS_MARK, SORTS_MARK

NEXT = {"description": '`<ADDRESS>; rel="next"`: the next part, where there is one.', "schema": {"type": "string"}}


def describe_lists(document: dict[str, Any]) -> None:
    """Let every list of an OpenAPI document say what `sort` and `fields` may be, and how rows look with `fields`."""
    for operations in document["paths"].values():
        for operation in operations.values():
            if ROWS_MARK in operation:
                _describe(operation, document["components"]["schemas"])


def _describe(operation: dict[str, Any], schemas: dict[str, Any]) -> None:
    operation["responses"]["200"].setdefault("headers", {})["Link"] = NEXT
    content = operation["responses"]["200"]["content"]["application/json"]
    page = schemas[_name(content["schema"])]
    rows, sorts = operation[ROWS_MARK], operation[SORTS_MARK]
    columns = list(schemas[_name(page["properties"][rows]["items"])]["properties"])
    names = "|".join(columns)
    patterns = {"fields": f"^({names})(,({names}))*$", "sort": f"^-?({'|'.join(sorts)})$"}
    for parameter in operation["parameters"]:
        if pattern := patterns.get(parameter["name"]):
            parameter["schema"] = {"type": "string", "pattern": pattern}
    some = {rows: {"type": "array", "items": {"type": "object"}}}
    partial = {**page, "title": f"{page['title']}OfFields", "description": "With `fields`: these alone."}
    content["schema"] = {"anyOf": [content["schema"], {**partial, "properties": {**page["properties"], **some}}]}


def _name(reference: dict[str, Any]) -> str:
    return str(reference["$ref"]).rpartition("/")[2]

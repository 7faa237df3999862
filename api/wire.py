"""Types of requests and answers that all resources share."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Self

import msgspec
from fastapi import Path, Request
from fastapi.dependencies.models import Dependant
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr, StringConstraints

from crosswind.data.schema.answers.fields import rfc3339
from crosswind.data.schema.errors import InvalidInputError

INT64 = 2**63
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$", strict=True)]
Id = Annotated[Name, Path()]
Value = (
    StrictBool
    | Annotated[StrictInt, Field(ge=-INT64, lt=INT64)]
    | Annotated[StrictFloat, Field(allow_inf_nan=False)]
    | Annotated[StrictStr, StringConstraints(max_length=1000)]
)
Values = Annotated[dict[Name, Value], Field(max_length=200)]
BINARY: Mapping[str, Any] = {"schema": {"type": "string", "format": "binary"}}  # content, in the description


def content_encoding(coded: tuple[str, ...]) -> dict[str, Any]:
    """Return the header field that names the coding of a body, one of these, in the description."""
    about = "Coding of the body."
    return {"name": "Content-Encoding", "in": "header", "description": about, "schema": {"enum": list(coded)}}


class RequestBody(BaseModel):
    """A client's request: no unknown field, no value of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class View(BaseModel):
    """The server's answer; a number that is missing, infinite or not a number is null."""

    model_config = ConfigDict(from_attributes=True, frozen=True)

    @classmethod
    def from_record(cls, record: object, **others: object) -> Self:
        """Return the view of a dataclass and other fields; a field NAME_at is the moment NAME_ns as text."""
        values = {**vars(record), **others}
        texts = {name for name in cls.model_fields if name.endswith("_at") and name not in values}
        return cls.model_validate({**values, **{name: rfc3339(values[f"{name[:-3]}_ns"]) for name in texts}})


def plain_json(value: object) -> Response:
    """Return the JSON of a dataclass of plain values without checking it against the route's response model.

    For frequent answers; a number that is missing, infinite or not a number is null, as in views.
    """
    return Response(as_json(value), media_type="application/json")


def as_json(value: object) -> bytes:
    """Return plain values, dataclasses, views and arrays in JSON; not a number is null."""
    return msgspec.json.encode(value, enc_hook=_plain)


def as_plain(value: object) -> Any:
    """Return the same as values that JSON has."""
    return msgspec.to_builtins(value, enc_hook=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump()
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):  # an array, or a number of one
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON")


def is_storable(text: str) -> bool:
    """Return whether every database takes this text: no NUL, no lone surrogate."""
    return "\0" not in text and text.encode("utf-8", "ignore").decode() == text


async def refuse_unknown_query(request: Request) -> None:
    """Refuse query parameters that this route does not have, or that are given twice.

    Raises: InvalidInputError.
    """
    if not request.scope["query_string"]:
        return
    parameters = sorted(query_names(request.scope["route"].dependant))
    expected = f"expected {', '.join(parameters)}" if parameters else "this resource has none"
    for name in request.query_params:
        if name not in parameters:
            raise InvalidInputError(f"query parameter {name[:60]!r} is unknown: {expected}")
        if len(request.query_params.getlist(name)) > 1:
            raise InvalidInputError(f"query parameter {name!r} is given twice: expected it once")


def query_names(dependant: Dependant) -> Iterator[str]:
    """Yield the query parameters of a route and of what it depends on.

    They are in OpenAPI's document too, which takes half a second to make.
    """
    for parameter in dependant.query_params:
        model = parameter.field_info.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            yield from (field.alias or name for name, field in model.model_fields.items())
        else:
            yield parameter.alias
    for other in dependant.dependencies:
        yield from query_names(other)

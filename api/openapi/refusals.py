"""The refusals of an operation: the statuses that it can answer with, and the types of problems of each."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from crosswind.api.access.scopes import NEEDS, Needs
from crosswind.api.delivery.repeats import takes_key
from crosswind.api.openapi.operation import Operation
from crosswind.api.problems import (
    ADDRESS,
    BUSY,
    CONFLICT,
    FORBIDDEN,
    HEAD,
    IN_PROGRESS,
    INVALID,
    MALFORMED,
    MEDIA_TYPE,
    NOT_FOUND,
    OUT_OF_SCOPE,
    PAUSED,
    QUOTA,
    SLOW,
    TOO_LARGE,
    TOO_MANY,
    UNAUTHORIZED,
    UNAVAILABLE,
    Kind,
    content_of,
)

MEDIA = "application/problem+json"
OF_ALL = (FORBIDDEN, SLOW, ADDRESS, HEAD)  # before a route is looked for
OF_CALLERS = (UNAUTHORIZED, OUT_OF_SCOPE, UNAVAILABLE, TOO_MANY, BUSY)
OF_BODIES = (MALFORMED, TOO_LARGE, MEDIA_TYPE)
STUDY, TRIAL = "/v1/studies/{study_id}", "/v1/studies/{study_id}/trials/{trial_id}"
CONFLICTS = frozenset(  # operations that what is stored may forbid
    {
        "POST /v1/studies",
        *(f"POST {STUDY}:{act}" for act in ("pause", "rename", "delete")),
        f"POST {STUDY}/trials:enqueue",
        "POST /v1/webhooks",  # of one who has as many as one may have
        "POST /v1/runs/{run_id}:delete",  # while the lake is compacted
        *(f"POST /v1/tokens{act}" for act in ("", ":link", ":job")),  # while the caller's own token is revoked
        *(f"POST {TRIAL}:{act}" for act in ("heartbeat", "report", "complete", "fail", "retry", "release", "define")),
        *(f"POST /v1/models/{{name}}{act}" for act in ("/versions/{version}:promote", ":rollback")),
    }
)
NAMED_IN_QUESTIONS = frozenset(  # operations that name what may be missing, but not in their path
    (
        *(f"POST /v1/{question}" for question in ("predictions", "walltime-advice", "scaling-advice", "cohorts")),
        *(f"GET /v1/series{form}" for form in ("", "/points")),
    )
)
ALL_NEEDS = Needs()
OF_ONE = {"POST /v1/ingest/batches": QUOTA, f"POST {STUDY}/trials:suggest": PAUSED}  # operation

_TEXT = {"type": "string"}
PROBLEM_SCHEMAS = {
    "FieldError": {
        "type": "object",
        "description": "A value that was refused.",
        "required": ["field", "value", "expected"],
        "properties": {
            "field": {**_TEXT, "description": "Its place, such as `query.limit`."},
            "value": {**_TEXT, "description": "The value, shortened; empty if it is missing."},
            "expected": {**_TEXT, "description": "A description of what is accepted."},
        },
    },
    "Problem": {
        "type": "object",
        "description": "A refusal, as RFC 9457 has it. A refused request changes nothing.",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": {**_TEXT, "description": "A path on this server that explains it."},
            "title": {**_TEXT, "description": "The kind of problem; always the same for one type."},
            "status": {"type": "integer", "description": "The status of the answer."},
            "detail": {**_TEXT, "description": "What is wrong with this request; not meant for programs."},
            "errors": {
                "type": "array",
                "description": "The values that were refused, the first twenty.",
                "items": {"$ref": "#/components/schemas/FieldError"},
            },
        },
    },
}
RETRY = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
CHALLENGE = {"WWW-Authenticate": {"description": "How to send a token.", "schema": {"type": "string"}}}


def kinds_of(operation: Operation) -> Iterator[Kind]:
    """Yield every kind of problem that an operation can answer with, but for failures of the server (500)."""
    name = operation.name
    yield from OF_ALL
    if NEEDS[name] is not None:
        yield from OF_CALLERS
    if operation.method == "POST":
        yield from OF_BODIES
    if operation.path.startswith("/v1/"):
        yield INVALID
    if "{" in operation.path or name in NAMED_IN_QUESTIONS:
        yield NOT_FOUND
    if name in CONFLICTS:
        yield CONFLICT
    if operation.method == "POST" and takes_key(ALL_NEEDS, operation.path):
        yield IN_PROGRESS
    if name in OF_ONE:
        yield OF_ONE[name]


def add_refusals(operations: Iterable[Operation], root_path: str) -> dict[str, Any]:
    """Add its refusals to each operation. Return the answers that they refer to, by name."""
    answers: dict[str, Any] = {}
    for operation in operations:
        of_status = sorted(kinds_of(operation), key=lambda kind: (kind.status, kind.name))
        for status, group in groupby(of_status, key=lambda kind: kind.status):
            kinds = [*group]
            name = "Or".join(kind.name.title().replace("-", "") for kind in kinds)
            answers[name] = _answer(kinds, root_path)
            operation.facts["responses"][str(status)] = {"$ref": f"#/components/responses/{name}"}
    return dict(sorted(answers.items()))


def _answer(kinds: list[Kind], root_path: str) -> dict[str, Any]:
    narrowed = {
        "type": {"enum": [f"{root_path}/problems/{kind.name}" for kind in kinds]},
        "status": {"const": kinds[0].status},
    }
    headers = (RETRY if any(kind.retry_seconds for kind in kinds) else {}) | (
        CHALLENGE if UNAUTHORIZED in kinds else {}
    )
    return {
        "description": " ".join(f"{kind.title}. {kind.remedy}" for kind in kinds),
        **({"headers": headers} if headers else {}),
        "content": {
            MEDIA: {
                "schema": {"allOf": [{"$ref": "#/components/schemas/Problem"}, {"properties": narrowed}]},
                "examples": {
                    kind.name: {"summary": kind.title, "value": content_of(kind, kind.remedy, root_path)}
                    for kind in kinds
                },
            }
        },
    }

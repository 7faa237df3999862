"""Every refusal that the description names comes with one of its types; those that neither load nor luck decides."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.api.access.issuing import ADMIN, bearer, issued, stranger
from tests.serving import own_client

from crosswind.api.access.scopes import NEEDS
from crosswind.api.app import create_app
from crosswind.api.openapi.examples import Example, examples, folder
from crosswind.api.openapi.operation import Operation, operations
from crosswind.api.openapi.refusals import CONFLICTS, MEDIA, OF_ONE, kinds_of
from crosswind.api.problems import (
    CONFLICT,
    FORBIDDEN,
    INVALID,
    MALFORMED,
    MEDIA_TYPE,
    NOT_FOUND,
    OUT_OF_SCOPE,
    PAUSED,
    QUOTA,
    TOO_LARGE,
    UNAUTHORIZED,
    Kind,
)
from crosswind.data.catalog.live.webhooks import OWN_MAX
from crosswind.data.schema.access import Scope
from crosswind.data.store.store import Store

EXAMPLES = {example.operation: example for example in reversed([*examples()])}
NONE = "none-such"
ASKED = (MALFORMED, UNAUTHORIZED, FORBIDDEN, OUT_OF_SCOPE, NOT_FOUND, TOO_LARGE, MEDIA_TYPE, INVALID)
OPERATIONS = {name: Operation(name, {"responses": {}}) for name in EXAMPLES}
PAIRS = [(name, kind) for name, one in OPERATIONS.items() for kind in kinds_of(one) if kind in ASKED]
MISSING: Mapping[str, Any] = {  # questions that name what is not stored
    "POST /v1/scaling-advice": {"like": NONE, "node_counts": [1]},
    "POST /v1/cohorts": {"name": "c", "run_ids": [NONE]},
}
Answer = Any


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("refusals")) as opened:
        yield opened


@pytest.fixture(scope="module")
def app(store: Store) -> FastAPI:
    return create_app(store)


@pytest.fixture(scope="module")
def client(app: FastAPI) -> Iterator[TestClient]:
    with own_client(app) as opened:
        yield opened


def sent(client: TestClient, example: Example, path: str = "", **changes: Any) -> Answer:
    """Return the answer to the example's request on nothing that is stored, with these changes."""
    method, _, template = example.operation.partition(" ")
    request: dict[str, Any] = {"headers": dict(example.headers), "params": example.query}
    if example.file:
        request["content"] = (folder() / example.file).read_bytes()
        request["headers"]["Content-Type"] = media_of(client, example)
    elif example.body is not None:
        request["json"] = example.body
    if "content" in changes:
        request.pop("json", None)
    request["headers"] |= changes.pop("headers", {})
    numbers = {name: str(value) for name, value in example.path.items() if isinstance(value, int)}
    for name in example.path:
        template = template.replace(f"{{{name}}}", numbers.get(name, NONE))
    return client.request(method, path or template, **{**request, **changes})


def media_of(client: TestClient, example: Example) -> str:
    method, _, path = example.operation.partition(" ")
    operation = client.app.openapi()["paths"][path][method.lower()]  # type: ignore[attr-defined]
    return next(iter(operation["requestBody"]["content"]))


def malformed(client: TestClient, example: Example) -> Answer:
    media = media_of(client, example) if example.file else "application/json"
    coding = {"Content-Encoding": example.headers.get("Content-Encoding", "gzip")} if example.file else {}
    return sent(client, example, content=b'{"', headers={"Content-Type": media, **coding})


def unasked(client: TestClient, example: Example) -> Answer:
    return sent(stranger(client.app), example)  # type: ignore[arg-type]


def out_of_scope(client: TestClient, example: Example) -> Answer:
    need = NEEDS[example.operation]
    assert need
    store: Store = client.app.state.client.store  # type: ignore[attr-defined]
    scopes = frozenset({Scope.READ, Scope.INGEST} - {need.scope})
    return sent(stranger(client.app, bearer(issued(store, replace(ADMIN, scopes=scopes)).secret)), example)  # type: ignore[arg-type]


def not_found(client: TestClient, example: Example) -> Answer:
    question = {} if example.path else {"json": MISSING.get(example.operation, {"like": NONE})}
    return sent(client, example, **(question if example.operation.startswith("POST") else {}))


def too_large(client: TestClient, example: Example) -> Answer:
    settings = client.app.state.settings  # type: ignore[attr-defined]
    is_large = example.operation.startswith("POST /v1/ingest/")
    media = media_of(client, example) if example.file else "application/json"
    content = b" " * ((settings.batch_bytes if is_large else settings.body_bytes) + 1)
    return sent(client, example, content=content, headers={"Content-Type": media})


REQUESTS: Mapping[Kind, Callable[[TestClient, Example], Answer]] = {
    MALFORMED: malformed,
    UNAUTHORIZED: unasked,
    FORBIDDEN: lambda client, example: sent(client, example, headers={"Host": "elsewhere.example"}),
    OUT_OF_SCOPE: out_of_scope,
    NOT_FOUND: not_found,
    TOO_LARGE: too_large,
    MEDIA_TYPE: lambda client, example: sent(client, example, content=b"x", headers={"Content-Type": "text/plain"}),
    INVALID: lambda client, example: sent(client, example, params={"no_such_parameter": "1"}),
}


@pytest.mark.parametrize(("operation", "kind"), PAIRS, ids=lambda part: part.name if isinstance(part, Kind) else part)
def test_a_refusal_comes_with_its_type(client: TestClient, operation: str, kind: Kind) -> None:
    answer = REQUESTS[kind](client, EXAMPLES[operation])
    assert (answer.status_code, answer.headers["content-type"]) == (kind.status, MEDIA), answer.text
    assert answer.json()["type"] == f"/problems/{kind.name}", answer.text


TAKEN: Mapping[str, Any] = {
    "name": "s",
    "objective": "o",
    "space": {"x": {"kind": "int", "low": 1, "high": 4}},
    "trials_max": 2,
}
BY_RUN: Mapping[str, Any] = {
    "name": "d",
    "objective": "o",
    "space": {"parameters": {}},
    "details": {"define_by_run": True},
}
ME, ANOTHER = {"owner": "me"}, {"owner": "another"}
OF_ANOTHER: Mapping[str, Mapping[str, Any]] = {
    "heartbeat": ANOTHER,
    "report": {**ANOTHER, "reports": [{"step": 1, "value": 1.0}]},
    "complete": {**ANOTHER, "objective": 1.0},
    "fail": {**ANOTHER, "reason": "none"},
    "release": ANOTHER,
}
BY_LUCK = {"POST /v1/runs/{run_id}:delete", "POST /v1/tokens", "POST /v1/tokens:link", "POST /v1/tokens:job"}
OF_MODELS = {"POST /v1/models/{name}/versions/{version}:promote", "POST /v1/models/{name}:rollback"}  # test_models.py


def test_what_is_stored_conflicts_where_the_description_says_so(client: TestClient) -> None:
    asked = {f"POST /v1/studies/{{study_id}}/trials/{{trial_id}}:{verb}" for verb in (*OF_ANOTHER, "define", "retry")}
    trials = {}
    for body in (TAKEN, BY_RUN):
        client.post("/v1/studies", json=body)
        [trial] = client.post(f"/v1/studies/{body['name']}/trials:suggest", json=ME).json()["trials"]
        trials[body["name"]] = f"/v1/studies/{body['name']}/trials/{trial['trial_id']}"
    answers = [client.post(f"{trials['s']}:{verb}", json=body) for verb, body in OF_ANOTHER.items()]
    answers += [
        client.post(f"{trials['s']}:retry"),
        client.post(f"{trials['d']}:define", json={**ANOTHER, "configuration": {}}),
    ]
    asked |= {"POST /v1/studies", "POST /v1/studies/{study_id}:rename", "POST /v1/studies/{study_id}:delete"}
    answers += [client.post("/v1/studies", json=TAKEN), client.post("/v1/studies/s:rename", json={"name": "t"})]
    asked |= {"POST /v1/studies/{study_id}/trials:enqueue"}
    configurations = [{"x": number} for number in (1, 2, 3)]
    answers += [client.post("/v1/studies/s:delete")]
    answers += [client.post("/v1/studies/s/trials:enqueue", json={"configurations": configurations})]
    client.post("/v1/studies/d:stop")
    asked |= {"POST /v1/studies/{study_id}:pause"}
    answers += [client.post("/v1/studies/d:pause")]
    asked |= {"POST /v1/webhooks"}
    answers += [[client.post("/v1/webhooks", json={"url": "https://192.0.2.1/"}) for _ in range(OWN_MAX + 1)][-1]]
    assert {(answer.status_code, answer.json()["type"]) for answer in answers} == {(409, f"/problems/{CONFLICT.name}")}
    assert len(answers) == len(asked)
    assert asked | BY_LUCK | OF_MODELS == CONFLICTS


@pytest.mark.parametrize("kind", [QUOTA, PAUSED])  # test_own_rows.py uses the quota up, test_studies.py pauses
def test_only_one_operation_is_refused_so(kind: Kind) -> None:
    assert [name for name, one in OPERATIONS.items() if kind in kinds_of(one)] == [
        name for name, other in OF_ONE.items() if other is kind
    ]


def test_the_description_has_every_refusal_and_no_failure(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    for operation in operations(document):
        refused = {int(status) for status in operation.facts["responses"] if status >= "400"}
        assert refused == {kind.status for kind in kinds_of(operation)}
    types = document["components"]["responses"]["ForbiddenOrOutOfScope"]["content"][MEDIA]["schema"]["allOf"][1]
    assert types["properties"]["type"]["enum"] == ["/problems/forbidden", "/problems/out-of-scope"]

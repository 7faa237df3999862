"""Extreme values in every parameter and field of every route: an answer of finite numbers, or a refusal with words."""

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.serving import own_client

from crosswind.api.app import create_app
from crosswind.api.problems import KINDS
from crosswind.data.store.store import Store

WHOLE = [0, 1, -1, 7, 65537, 2**31 - 1, 2**53 + 1, 10_000_000, 2**63 - 1, 2**63, -(2**63), 10**30]
NUMBERS = [*WHOLE, -0.0, 5e-324, 1e308, -1e308, 1e-9, 0.5, 0.9999999999, 1.0000001]
TEXTS = ["", "a", "latest", "nanogpt", "lab", "r0", "é" * 50, "x" * 201, "\t", "..", "%00", "' or 1=1 --", "🙂"]
OBJECTS = [{}, {"batch": 8, "fused": True}, {"batch": 1e308}, {"batch": 2**62, "dp": 65537}, {"x": "y"}, {"a": 0.1}]
RUN = {"workload": "nanogpt", "system": "lab", "world_size": 2, "configuration": {"batch": 8, "fused": True}}
SCALES = {"confidence": 0.9, "node_counts": [1, 2], "ranks_per_node": 2}
GOOD = {**RUN, **SCALES, "name": "n", "objective": "o", "owner": "a"}
NAMES = {"run_id": ["r0", "nope", "🙂"], "job_id": ["12_3", "nope"], "name": ["run_seconds", "nope"]}
QUICK = ("/v1/predictions", "/v1/walltime-advice", "/v1/scaling-advice", "/v1/runs/{run_id}/remaining", "/v1/nodes")
TYPES = {f"/problems/{kind.name}" for kind in KINDS}
Schema = Mapping[str, Any]


@pytest.fixture(scope="module")
def client(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with Store.open(Path(shutil.copytree(filled, tmp_path_factory.mktemp("extreme") / "store"))) as opened:
        yield own_client(create_app(opened), base_url="http://localhost", raise_server_exceptions=False)


def test_times_sizes_and_shares_at_their_ends_get_a_finite_answer_or_a_refusal(client: TestClient) -> None:
    assert ask_all(client, lambda path: path.startswith(QUICK)) > 300


@pytest.mark.thorough
def test_every_route_answers_or_refuses(client: TestClient) -> None:
    assert ask_all(client, lambda path: "ingest" not in path and not path.startswith(QUICK)) > 2000


def ask_all(client: TestClient, wanted: Any) -> int:
    """Return how many requests were answered as promised."""
    api = client.get("/openapi.json").json()
    count = 0
    for path, operations in api["paths"].items():
        for method, operation in operations.items() if wanted(path) else ():
            for place in places(path):
                for words in requests(api, operation):
                    check(client.request(method.upper(), place, **words), f"{method} {place} {str(words)[:300]}")
                    count += 1
    return count


def check(answer: Any, asked: str) -> None:
    assert answer.status_code < 500 or answer.status_code == 503, (asked, answer.text)
    assert not {"NaN", "Infinity"} & set(answer.text.replace(":", " ").replace(",", " ").split()), asked
    if answer.status_code >= 400:
        assert answer.json()["type"] in TYPES, asked
    elif '"quantiles"' in answer.text:
        assert '"seconds":null' not in answer.text.replace(" ", ""), (asked, answer.text)


def places(path: str) -> list[str]:
    made = [path]
    while "{" in made[0]:
        name = made[0].partition("{")[2].partition("}")[0]
        made = [place.replace(f"{{{name}}}", value) for place in made for value in NAMES.get(name, ["nope", "1"])]
    return made


def requests(api: Schema, operation: Schema) -> Iterator[dict[str, Any]]:
    """Yield a plain request, and for each extreme value of each parameter or field one that differs in that."""
    queries = [parameter for parameter in operation.get("parameters", ()) if parameter["in"] == "query"]
    query = {parameter["name"]: "r1" for parameter in queries if parameter.get("required")}
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body is None:
        yield {"params": query}
        for parameter in queries:
            plain = (value for value in values(api, parameter["schema"]) if isinstance(value, str | int | float))
            yield from ({"params": {**query, parameter["name"]: value}} for value in plain)
        return
    fields = shape(api, body["schema"]).get("properties", {})
    good = {name: value for name, value in GOOD.items() if name in fields}
    if shape(api, fields.get("world_size", {})).get("type") == "array":
        good["world_size"] = [2, 4]
    yield {"json": good}
    for name, schema in fields.items():
        yield from ({"content": json.dumps({**good, name: value}), "headers": JSON} for value in values(api, schema))


JSON = {"Content-Type": "application/json"}


def shape(api: Schema, schema: Schema) -> Schema:
    while "$ref" in schema:
        schema = api["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return shape(api, schema["anyOf"][0]) if "anyOf" in schema and "properties" not in schema else schema


def values(api: Schema, schema: Schema) -> list[Any]:
    """Return extreme values for a schema, within its limits, on them and beyond."""
    if "anyOf" in schema:
        return [value for one in schema["anyOf"] for value in values(api, one)]
    schema = shape(api, schema)
    if "enum" in schema:
        return [*schema["enum"], "nope"]
    ends = [schema[end] for end in ("minimum", "maximum") if end in schema]
    items = values(api, schema.get("items", {}))[:6] if schema.get("type") == "array" else []
    by_type: Mapping[str, list[Any]] = {
        "integer": [*WHOLE, *ends],
        "number": NUMBERS,
        "boolean": [True, False],
        "null": [None],
        "string": TEXTS,
        "array": [[], items[:1], items, items[-1:] * 500],
        "object": OBJECTS,
    }
    return by_type.get(schema.get("type", ""), [*TEXTS[:3], *WHOLE[:3]])

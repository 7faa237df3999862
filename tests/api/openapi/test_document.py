"""The description as a whole: names, tags, servers, and many who ask for it at once."""

from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute

from crosswind.api.access.scopes import Needs
from crosswind.api.app import ROUTERS, create_app
from crosswind.api.delivery.repeats import HEADER, REPLAYED, takes_key
from crosswind.api.openapi import document as described
from crosswind.api.openapi.operation import operations
from crosswind.api.openapi.tags import TAGS
from crosswind.api.settings import ServerSettings
from crosswind.api.wire import query_names
from crosswind.data.store.store import Store


def test_names_of_operations_and_schemas_suit_generated_clients(document: Mapping[str, Any]) -> None:
    names = Counter(operation.facts["operationId"] for operation in operations(document))
    assert max(names.values()) == 1
    assert {name for name in names if not name.replace("_", "").isalpha() or name != name.lower()} == set()
    assert [
        name for name in document["components"]["schemas"] if "__" in name or name.endswith(("-Input", "-Output"))
    ] == []


def test_every_operation_has_words_and_a_tag_that_is_described(document: Mapping[str, Any]) -> None:
    tags = {tag["name"]: tag["description"] for tag in document["tags"]}
    assert tags == TAGS
    for operation in operations(document):
        assert operation.facts["summary"]
        assert operation.facts["description"]
        assert set(operation.facts["tags"]) <= set(tags)
        assert all(answer["description"] for answer in operation.answers.values())
    assert document["info"]["license"]["identifier"] == "Apache-2.0"


def test_what_changes_something_can_be_sent_again_and_a_list_leads_to_its_next_part(
    document: Mapping[str, Any],
) -> None:
    for operation in operations(document):
        named = [one["name"] for one in operation.parameters]
        is_keyed = operation.method == "POST" and takes_key(Needs(), operation.path)
        assert named.count(HEADER) == is_keyed, operation.name
        headers = {name for answer in operation.answers.values() for name in answer.get("headers", {})}
        assert (REPLAYED[0] in headers) == is_keyed
        assert ("Link" in headers) == ("fields" in named)


def test_the_query_parameters_that_are_accepted_are_those_described(document: Mapping[str, Any]) -> None:
    accepted = {
        f"{method} {route.path}": sorted({*query_names(route.dependant)})
        for router in ROUTERS
        for route in router.router.routes
        if isinstance(route, APIRoute)
        for method in route.methods
    }
    described_ones = {
        one.name: sorted(parameter["name"] for parameter in one.parameters if parameter["in"] == "query")
        for one in operations(document)
    }
    assert {name: accepted[name] for name in described_ones} == described_ones


def test_an_operation_that_will_end_is_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(described, "DEPRECATED", {"GET /v1/weather": object()})
    with Store.open(tmp_path) as store:
        document = create_app(store).openapi()
    assert [one.name for one in operations(document) if one.facts.get("deprecated")] == ["GET /v1/weather"]


def test_below_a_prefix_addresses_begin_with_it(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        document = create_app(store, ServerSettings(root_path="/node/n17")).openapi()
    assert document["servers"][0]["url"] == "/node/n17"
    answer = document["components"]["responses"]["NotFound"]["content"]["application/problem+json"]
    assert answer["schema"]["allOf"][1]["properties"]["type"]["enum"] == ["/node/n17/problems/not-found"]
    assert answer["examples"]["not-found"]["value"]["type"] == "/node/n17/problems/not-found"


def test_many_who_ask_at_once_get_the_same_whole_document(tmp_path: Path, document: Mapping[str, Any]) -> None:
    with Store.open(tmp_path) as store, ThreadPoolExecutor(16) as threads:
        app = create_app(store)
        answers = list(threads.map(lambda _: app.openapi(), range(16)))
    assert all(answer is answers[0] for answer in answers)
    assert answers[0] == document

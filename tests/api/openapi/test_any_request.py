"""Requests that schemathesis derives from the description: no failure, no status and no content that it does not name.

As owner, as an ordinary person, and as nobody. Source: schemathesis.readthedocs.io, version 4.
"""

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.api.access.issuing import ANNA, EVERY_DAY, bearer, issued
from tests.api.openapi.executing import Executed, values_of
from tests.serving import answering

from crosswind.api.openapi.examples import Example, examples, folder
from crosswind.api.series_intake import PROTOBUF
from crosswind.data.store.store import Store

CHECKS = [
    *(not_a_server_error, status_code_conformance, content_type_conformance),
    *(response_schema_conformance, response_headers_conformance),
]
EXAMPLES: Mapping[str, Example] = {example.operation: example for example in reversed([*examples()])}
SEGMENT = "application/vnd.crosswind.segment"
NOBODY = {"X-Forwarded-For": "192.0.2.1"}  # whom a proxy passes on is never the owner
SECONDS = 60


@st.composite
def damaged(draw: st.DrawFn, contents: list[bytes]) -> bytes:
    """A body of an example, whole, cut off, or with other bytes in it; or any bytes."""
    content = draw(st.sampled_from(contents))
    start = draw(st.integers(0, len(content)))
    return content[:start] + draw(st.binary(max_size=16)) + content[draw(st.integers(start, len(content))) :]


def bodies(suffix: str) -> st.SearchStrategy[bytes]:
    contents = [
        (folder() / one.file).read_bytes() for one in EXAMPLES.values() if one.file and one.file.endswith(suffix)
    ]
    return st.one_of(st.sampled_from(contents), damaged(contents), st.binary(max_size=64))


@st.composite
def near(draw: st.DrawFn, example: Example, cases: st.SearchStrategy[schemathesis.Case]) -> schemathesis.Case:
    """Return the example's request with one or two values of another."""
    case = draw(cases)
    if isinstance(example.body, dict) and isinstance(case.body, dict):
        case.body = example.body | some(draw, case.body)
    if case.media_type == SEGMENT and isinstance(content := getattr(case.body, "data", case.body), bytes):
        true = {"Crosswind-Batch": batch_id_of(content), "Content-Encoding": "identity"}
        case.headers.update({**example.headers, **true})
    if example.query:
        case.query = dict(example.query) | some(draw, case.query or {})
    return case


def batch_id_of(content: bytes) -> str:
    """Return the id of a segment with the name that the example has, whatever its content."""
    return hashlib.sha256(b"agent.n1\0" + content).hexdigest()


def some(draw: st.DrawFn, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return at most two of the values."""
    if not values:
        return {}
    return {name: values[name] for name in draw(st.lists(st.sampled_from(sorted(values)), max_size=2))}


schemathesis.openapi.media_type(SEGMENT, bodies(".segment"))
schemathesis.openapi.media_type(PROTOBUF, bodies(".snappy"))


@pytest.fixture(scope="module")
def home(
    executed: Mapping[tuple[str, str], Executed], sample_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A copy of the store after its examples."""
    return Path(shutil.copytree(sample_home, tmp_path_factory.mktemp("any") / "store"))


@pytest.fixture(scope="module")
def headers(home: Path) -> Mapping[str, Mapping[str, str]]:
    """Return the header fields of everybody who asks."""
    with Store.open(home) as store:
        person = issued(store, replace(ANNA, scopes=EVERY_DAY))
    return {"owner": {}, "person": bearer(person.secret), "nobody": NOBODY}


@pytest.fixture(scope="module")
def values(executed: Mapping[tuple[str, str], Executed]) -> dict[str, str]:
    """Return the ids of what is stored, by the names that examples have for them."""
    return values_of(executed.values())


@pytest.fixture(scope="module")
def url(home: Path) -> Iterator[str]:
    with answering(home) as address:
        yield address.rstrip("/")


@pytest.fixture(scope="module")
def asked(url: str, document: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the address of a server, and its description."""
    described = schemathesis.openapi.from_dict(deepcopy(dict(document)))  # it adds links to it
    described.config.update(base_url=url)
    described.config.generation.update(with_security_parameters=False)  # a wrong token hides all else
    return url, described


@pytest.mark.parametrize("who", ["owner", "person", "nobody"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_any_request_is_answered_as_described(
    asked: tuple[str, Any], headers: Mapping[str, Any], values: Mapping[str, str], name: str, who: str
) -> None:
    ask(asked, headers[who], values, name, 2 if who == "owner" else 1)


@pytest.mark.thorough
@pytest.mark.parametrize("who", ["owner", "person"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_many_requests_are_answered_as_described(
    asked: tuple[str, Any], headers: Mapping[str, Any], values: Mapping[str, str], name: str, who: str
) -> None:
    ask(asked, headers[who], values, name, 60 if who == "owner" else 20)


def ask(asked: tuple[str, Any], headers: Mapping[str, str], values: Mapping[str, str], name: str, count: int) -> None:
    """Send so many requests to an operation, some with paths of what is stored."""
    url, schema = asked
    method, _, path = name.partition(" ")
    operation = schema[path][method]
    stored = {key: values.get(str(value), value) for key, value in EXAMPLES[name].path.items()}
    derived = [operation.as_strategy(), operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)]
    aimed = near(EXAMPLES[name], operation.as_strategy(path_parameters=stored or None))
    with requests.Session() as session:

        @settings(
            max_examples=count,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            database=None,
            deadline=None,
        )
        @given(case=st.one_of(aimed, *derived))
        def check(case: schemathesis.Case) -> None:
            answer = case.call(base_url=url, session=session, headers=dict(headers), timeout=SECONDS)
            case.validate_response(answer, checks=CHECKS)

        check()


@pytest.mark.thorough
def test_answers_lead_on_by_their_links(asked: tuple[str, Any]) -> None:
    _, schema = asked

    class Walk(schema.as_state_machine()):  # type: ignore[misc]
        """Requests of which later ones take values of earlier answers."""

        def get_call_kwargs(self, case: schemathesis.Case) -> dict[str, Any]:
            return {"timeout": SECONDS}

        def validate_response(self, response: Any, case: schemathesis.Case, **_: Any) -> None:
            case.validate_response(response, checks=CHECKS)

    few = settings(max_examples=30, stateful_step_count=8, suppress_health_check=[*HealthCheck])
    run_state_machine_as_test(Walk, settings=few)

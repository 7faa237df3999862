"""Every operation has examples; they are executed in order, and their answers are as the description says."""

import json
import re
from collections.abc import Mapping
from typing import Any

import jsonschema_rs
import pytest
from tests.api.openapi.executing import Executed, shape

from crosswind.api.openapi.examples import Example, examples, folder
from crosswind.api.openapi.operation import operations

EXAMPLES = {(example.operation, example.name): example for example in examples()}
PLACEHOLDER = re.compile(r"[A-Z_]+")


def test_every_operation_has_an_example_and_every_example_an_operation(document: Mapping[str, Any]) -> None:
    assert {example.operation for example in EXAMPLES.values()} == {one.name for one in operations(document)}


@pytest.mark.parametrize(("operation", "name"), EXAMPLES)
def test_an_example_is_answered_as_it_says(
    executed: Mapping[tuple[str, str], Executed], document: Mapping[str, Any], operation: str, name: str
) -> None:
    done = executed[operation, name]
    assert done.response.status_code == done.example.status, done.response.text
    assert shape(done.answer) == shape(done.example.answer)
    content = responses_of(document, operation)[str(done.example.status)].get("content", {})
    media = done.response.headers.get("content-type", "").partition(";")[0]
    assert media in content or (not content and not done.response.content)
    if done.answer is not None:
        check(done.answer, content[media]["schema"], document)


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=lambda example: f"{example.operation} {example.name}")
def test_what_is_shown_fits_its_schema(document: Mapping[str, Any], example: Example) -> None:
    method, _, path = example.operation.partition(" ")
    operation = document["paths"][path][method.lower()]
    sent = operation.get("requestBody", {}).get("content", {})
    if example.body is not None:
        check(example.body, sent["application/json"]["schema"], document)
        assert sent["application/json"]["examples"][example.name]["value"] == example.body
    if example.answer is not None:
        shown = operation["responses"][str(example.status)]["content"][example.media]
        check(example.answer, shown["schema"], document)
        assert shown["examples"][example.name]["value"] == example.answer
    if example.file:
        assert (folder() / example.file).is_file()
    parameters = {parameter.get("name", "").lower(): parameter for parameter in operation.get("parameters", ())}
    for name, value in {**example.path, **example.query, **example.headers}.items():
        assert parameters[name.lower()]["examples"][example.name]["value"] == value


def test_names_in_capitals_are_given_by_an_earlier_answer() -> None:
    given = {"PSEUDONYM"}  # of users, as the lake has them
    for example in EXAMPLES.values():
        used = {str(value) for value in example.path.values() if PLACEHOLDER.fullmatch(str(value))}
        assert used <= given, example
        given |= set(example.gives)


def test_an_answer_links_to_the_operations_that_continue_it(document: Mapping[str, Any]) -> None:
    links = document["paths"]["/v1/studies/{study_id}/trials:suggest"]["post"]["responses"]["200"]["links"]
    assert links["complete_trial"] == {
        "operationId": "complete_trial",
        "parameters": {"study_id": "$request.path.study_id", "trial_id": "$response.body#/trials/0/trial_id"},
    }


def test_examples_name_nothing_of_the_machine_that_wrote_them() -> None:
    text = "".join(json.dumps(vars(example), default=str) for example in EXAMPLES.values())
    assert not re.search(r"/tmp/|/home/|/work/|(cw|whsec)_(?!SECRET)", text)


def responses_of(document: Mapping[str, Any], operation: str) -> Mapping[str, Any]:
    """Return what the document says of an operation's answers, by status."""
    method, _, path = operation.partition(" ")
    responses: Mapping[str, Any] = document["paths"][path][method.lower()]["responses"]
    return responses


def check(value: Any, schema: Mapping[str, Any], document: Mapping[str, Any]) -> None:
    """Check a value. Raises: jsonschema_rs.ValidationError."""
    jsonschema_rs.validator_for({**schema, "components": document["components"]}).validate(value)

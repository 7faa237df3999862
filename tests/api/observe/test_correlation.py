"""Ids and traces of requests, in answers, log lines and an OTLP receiver."""

import io
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping

import httpx2
import pytest
from fastapi import FastAPI
from tests.api.access.issuing import ANNA, bearer, issued
from tests.api.observe.receiver import receiving
from tests.serving import own_client, serving

from crosswind.api.app import create_app
from crosswind.api.observe.correlation import Correlation
from crosswind.api.observe.logs import LogFormat, LogLevel, configure_logs
from crosswind.api.observe.traces import wants_traces
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.store.store import Store

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


@pytest.fixture
def app(store: Store) -> FastAPI:
    application = create_app(store)

    @application.get("/healthz/broken", include_in_schema=False)  # a route that fails, under a path that needs no entry
    def broken() -> None:
        raise RuntimeError("a secret of anna")

    return application


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """Return what is logged as JSON, each request as well."""
    root, ours = logging.getLogger(), logging.getLogger("crosswind")
    before = root.handlers[:], root.level, ours.level
    stream = io.StringIO()
    configure_logs(LogFormat.JSON, LogLevel.INFO, stream)
    yield stream
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"x-request-id": "abc-1.2"}, ("abc-1.2", None)),
        ({"traceparent": PARENT}, (TRACE, TRACE)),
        ({"traceparent": PARENT, "x-request-id": "r1"}, ("r1", TRACE)),
        ({"traceparent": f"01-{TRACE}-{SPAN}-00-more"}, (TRACE, TRACE)),
        ({"traceparent": f"{PARENT}-more"}, (None, None)),
        ({"traceparent": f"ff-{TRACE}-{SPAN}-01"}, (None, None)),
        ({"traceparent": f"00-{'0' * 32}-{SPAN}-01"}, (None, None)),
        ({"traceparent": f"00-{TRACE}-{'0' * 16}-01"}, (None, None)),
        ({"traceparent": PARENT.upper()}, (None, None)),
        ({"x-request-id": "a b"}, (None, None)),
        ({"x-request-id": "x" * 65}, (None, None)),
        ({"x-request-id": "a\nlevel=error"}, (None, None)),
        ({}, (None, None)),
    ],
)
def test_ids_that_are_valid_go_on_and_others_are_made(
    given: Mapping[str, str], expected: tuple[str | None, str | None]
) -> None:
    correlation = Correlation.of([(name.encode(), value.encode()) for name, value in given.items()])
    request_id, trace_id = expected
    assert correlation.request_id == (request_id or correlation.trace_id)
    assert trace_id in (None, correlation.trace_id)
    assert (correlation.parent_id is None) == (trace_id is None)
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]", correlation.traceparent)
    assert correlation.span_id != SPAN


def test_an_answer_a_failure_and_the_log_have_the_same_id(app: FastAPI, lines: io.StringIO) -> None:
    client = own_client(app, raise_server_exceptions=False)
    headers = {"X-Request-Id": "r-7", "traceparent": PARENT}
    answer = client.get("/healthz/broken", headers=headers)
    assert (answer.status_code, answer.headers["x-request-id"], answer.json()["reference"]) == (500, "r-7", "r-7")
    assert answer.headers["traceparent"].startswith(f"00-{TRACE}-")
    failed, request = map(json.loads, lines.getvalue().splitlines())
    assert (failed["level"], failed["request_id"], failed["trace_id"]) == ("error", "r-7", TRACE)
    assert "RuntimeError" in failed["exception"]
    assert (request["method"], request["route"], request["status"]) == ("GET", "/healthz/broken", 500)
    assert f"00-{request['trace_id']}-{request['span_id']}-01" == answer.headers["traceparent"]


def test_lines_of_requests_name_neither_people_nor_secrets(app: FastAPI, store: Store, lines: io.StringIO) -> None:
    secret = issued(store, ANNA).secret
    client = own_client(app)
    client.get("/v1/runs?user=anna", headers=bearer(secret))
    client.get(f"/login?link={secret}&next=/runs/of-anna")
    client.post("/login", data={"token": f"{secret}-wrong"})
    client.get("/v1/runs/of-anna")
    said = lines.getvalue()
    assert len(said.splitlines()) == 5  # four requests, and the login that failed
    assert ("anna" in said, secret[:12] in said) == (False, False)
    assert '"route": "/v1/runs/{run_id}"' in said


def test_a_line_of_text_stays_one_line(app: FastAPI) -> None:
    stream = io.StringIO()
    root, ours = logging.getLogger(), logging.getLogger("crosswind")
    before = root.handlers[:], root.level, ours.level
    try:
        configure_logs(LogFormat.TEXT, LogLevel.WARNING, stream)
        logging.getLogger("crosswind.api").warning("from %s", "here\n2026 ERROR all is lost\x1b[2J")
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])
        ours.setLevel(before[2])
    assert re.fullmatch(r"\S+Z WARNING crosswind\.api: from here\\n2026 ERROR .*\\x1b\[2J\n", stream.getvalue())


def test_spans_of_requests_and_their_queries_come_to_a_receiver(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as (receiver, spans):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver)
        with serving(store.home) as (url, process):
            headers = {"traceparent": PARENT}
            answered = httpx2.get(f"{url}v1/runs", headers=headers, timeout=30)
            httpx2.get(f"{url}v1/runs/r0/steps", headers=headers, timeout=30)
            process.terminate()  # it sends what is left
            assert process.wait(timeout=20) == 0
    ours = [span for span in spans if span.trace_id.hex() == TRACE]
    by_name = {span.name: span for span in ours}
    request = by_name["GET /v1/runs"]
    assert (request.parent_span_id.hex(), answered.headers["traceparent"]) == (
        SPAN,
        f"00-{TRACE}-{request.span_id.hex()}-01",
    )
    facts = {fact.key: fact.value.string_value or fact.value.int_value for fact in request.attributes}
    assert (facts["http.route"], facts["http.response.status_code"]) == ("/v1/runs", 200)
    assert request.span_id in {span.parent_span_id for span in ours if span.name == "catalog select"}
    assert {"GET /v1/runs/{run_id}/steps", "lake query"} <= by_name.keys()


def test_without_a_receiver_nothing_of_opentelemetry_is_loaded() -> None:
    code = "import sys, crosswind.api.server; print([n for n in sys.modules if n.startswith('opentelemetry.sdk')])"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL")}
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=kept)
    assert said.stdout.strip() == "[]"


def test_what_the_environment_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
    assert wants_traces(wanted)
    assert not wants_traces({})
    assert not wants_traces(wanted | {"OTEL_SDK_DISABLED": "true"})
    monkeypatch.setattr("crosswind.api.observe.traces.find_spec", lambda _name: None)
    with pytest.raises(InvalidInputError, match=r"crosswind\[otel\]"):
        wants_traces(wanted)

"""The trace of a request: the program's, the environment's, or a new one."""

import sys

import pytest

from crosswind.client.trace import FORM, trace_fields, trace_id

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"


def test_a_request_belongs_to_the_environments_trace() -> None:
    fields = trace_fields({"TRACEPARENT": PARENT})
    assert trace_id(fields) == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert fields["traceparent"].endswith("-00")  # and is not recorded either
    assert "00f067aa0ba902b7" not in fields["traceparent"]  # it is a span of its own


@pytest.mark.parametrize("parent", ["", "x", PARENT.upper(), f"00-{'0' * 32}-00f067aa0ba902b7-01", PARENT + "\n"])
def test_without_one_it_begins_one(parent: str) -> None:
    first, second = (trace_fields({"TRACEPARENT": parent})["traceparent"] for _ in range(2))
    assert FORM.fullmatch(first)
    assert first != second


def test_the_span_of_the_program_is_the_parent() -> None:
    trace = pytest.importorskip("opentelemetry.trace")
    assert "opentelemetry.trace" in sys.modules
    span = trace.NonRecordingSpan(trace.SpanContext(int("a" * 32, 16), int("b" * 16, 16), False, trace.TraceFlags(1)))
    with trace.use_span(span):
        assert trace_fields()["traceparent"] == f"00-{'a' * 32}-{'b' * 16}-01"
    assert trace_id(trace_fields({})) != "a" * 32

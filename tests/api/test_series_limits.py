"""Memory that small requests may ask of a server, and what Protocol Buffers' JSON mapping lets senders write."""

import gzip
import json
import struct
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient
from tests.api.test_series import (
    LABELS,
    MS,
    OTLP,
    WRITE,
    WRITE_HEADERS,
    empty,
    field,
    metadata,
    sample,
    sender,
    series,
    snappy,
    stored,
)

from crosswind.data.store.store import Store
from crosswind.ingest.series.known_series import KnownSeries
from crosswind.ingest.series.remote_write import Decoder
from crosswind.ingest.series.sample_tables import SHARE_BYTES, Samples, tables

__all__ = ["empty", "sender"]
NS = str(MS * 1_000_000)
PROTOBUF, JSON = {"Content-Type": "application/x-protobuf"}, {"Content-Type": "application/json"}
ROOM = 4 * 1200  # of some four series


def request_of(metric: Mapping[str, Any]) -> dict[str, Any]:
    return {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "a", **metric}]}]}]}


def gauge(**point: object) -> dict[str, Any]:
    return request_of({"gauge": {"dataPoints": [{"timeUnixNano": NS, **point}]}})


def test_a_series_of_long_labels_is_refused_by_name(sender: TestClient, empty: Store) -> None:
    body = series({**LABELS, "l": "v" * 1_000_000}, *((1.0, MS + n) for n in range(3000)))
    answer = sender.post(WRITE, content=snappy(body), headers=WRITE_HEADERS)
    said = "series 'up': labels of 1000033 bytes; expected at most 16384"
    assert (answer.status_code, answer.json()["detail"]) == (400, said)
    assert stored(empty) == []


def test_long_attributes_are_refused_by_name(sender: TestClient) -> None:
    attributes = [{"key": f"k{n}", "value": {"stringValue": "v" * 4000}} for n in range(5)]
    request = gauge(asInt="1")
    request["resourceMetrics"][0]["resource"] = {"attributes": attributes}
    answer = sender.post(OTLP, json=request)
    assert (answer.status_code, answer.json()["detail"]) == (
        400,
        "series 'a': labels of 20011 bytes; expected at most 16384",
    )


def test_many_samples_of_one_series_with_long_labels_are_too_much(sender: TestClient) -> None:
    body = field(1, series({**LABELS, "l": "v" * 16_000})[3:] + b"".join(sample(1.0, MS + n) for n in range(40_000)))
    answer = sender.post(WRITE, content=snappy(body), headers=WRITE_HEADERS)
    assert (answer.status_code, "bytes of rows" in answer.json()["detail"]) == (413, True)


def of_one_series(code: int, count: int) -> Samples:
    is_whole = np.zeros(count, np.bool_)
    return Samples(np.full(count, code, np.int32), np.arange(count, dtype=np.int64), np.zeros(count), is_whole)


def test_samples_are_stored_in_portions_of_bytes() -> None:
    known_series = KnownSeries()
    code = known_series.code("a", {"l": "v" * 16_000})
    count = 3 * SHARE_BYTES // 16_000
    samples = of_one_series(code, count)
    sizes = [table.nbytes for table in tables(known_series, samples)]
    assert (len(sizes), max(sizes) < 1.01 * SHARE_BYTES) == (4, True)


def test_a_small_body_of_much_json_is_refused(sender: TestClient) -> None:
    bomb = gzip.compress(b'{"resourceMetrics":[' + b"{}," * (3 << 20) + b"{}]}")
    assert len(bomb) < 20_000
    answer = sender.post(OTLP, content=bomb, headers=JSON | {"Content-Encoding": "gzip"})
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("path", "content"),
    [
        pytest.param(OTLP, b"\x0a\x00" * 2_000_001, marks=pytest.mark.thorough),
        (OTLP, field(1, field(2, field(2, field(9, field(1, field(6, bytes(8 * 2_000_001)))))))),
        (WRITE, b"\x0a\x00" * 2_000_001),
        pytest.param(WRITE, b"\x1a\x00" * 2_000_001, marks=pytest.mark.thorough),
        pytest.param(
            WRITE,
            field(1, field(1, field(1, b"__name__") + field(2, b"a")) + b"\x12\x00" * 2_000_001),
            marks=pytest.mark.thorough,
        ),
    ],
    ids=["messages", "counts", "series", "metadata", "samples"],
)
def test_a_small_body_of_many_messages_is_refused(sender: TestClient, path: str, content: bytes) -> None:
    headers, body = (PROTOBUF | {"Content-Encoding": "gzip"}, gzip.compress(content, 1))
    if path == WRITE:
        headers, body = WRITE_HEADERS, snappy(content)
    answer = sender.post(path, content=body, headers=headers)
    assert (answer.status_code, "more than 2000000 messages" in answer.json()["detail"]) == (413, True)


def values_of(decoder: Decoder, *bodies: bytes) -> list[float]:
    decoded = (samples for body in bodies for _, samples in decoder.samples(body, Counter()))
    return sorted(value for samples in decoded for value in samples.values.tolist())


def test_series_for_which_there_is_no_room_do_not_drive_out_those_that_are_kept() -> None:
    decoder = Decoder(KnownSeries(), kept_bytes=ROOM)
    bodies = [series({"__name__": "a", "n": str(n)}, (n, MS)) for n in range(8)]
    assert values_of(decoder, *bodies) == list(range(8))
    kept = dict(decoder.codes)
    assert (0 < len(kept) < 8, decoder.is_full) == (True, True)
    assert values_of(decoder, *bodies, b"".join(bodies)) == sorted([*range(8), *range(8)])
    assert decoder.codes == kept


def test_metadata_changes_only_series_of_its_family() -> None:
    known_series = KnownSeries()
    names = ("a", "a_total", "a_sum", "ab", "b_a")
    codes = [known_series.code(name, {}) for name in names]
    known_series.update_metadata("a", "counter", "s")
    described = [(known_series.words["kind"][code], known_series.words["unit"][code]) for code in codes]
    assert described == [("counter", "s")] * 3 + [(None, None)] * 2


def test_unknown_fields_of_a_request_are_skipped(sender: TestClient, empty: Store) -> None:
    unknown = b"\x10\x01" + b"\x39" + bytes(8) + b"\x3d" + bytes(4) + field(7, b"x") + b"\x92\x3f\x01x"
    body = unknown + series(LABELS, (1.0, MS)) + unknown + metadata(1, "up", "") + unknown
    assert sender.post(WRITE, content=snappy(body), headers=WRITE_HEADERS).status_code == 204
    assert [row[4] for row in stored(empty)] == [1.0]


@pytest.mark.parametrize("number", [5, 4])
def test_a_request_of_version_2_is_not_taken_for_an_empty_one(sender: TestClient, number: int) -> None:
    assert sender.post(WRITE, content=snappy(field(number, b"")), headers=WRITE_HEADERS).status_code == 400


def test_null_is_what_is_not_there_and_numbers_may_be_texts(sender: TestClient, empty: Store) -> None:
    request = gauge(asInt=None, asDouble="1.5e1", attributes=None, flags=None)
    request["resourceMetrics"][0]["resource"] = None
    request["resourceMetrics"][0]["scopeMetrics"][0] |= {"scope": None}
    request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0] |= {"unit": None, "sum": None}
    assert sender.post(OTLP, json=request).json() == {}
    assert stored(empty) == [(int(NS), "", "a", "{}", 15.0, "gauge", None)]


@pytest.mark.parametrize("number", ['"1,5"', '"1e999"', '" 1"', '"inf"', "[]", '"1_0"'])
def test_a_text_that_is_no_double_is_refused(sender: TestClient, number: str) -> None:
    body = json.dumps(gauge(asDouble="HERE")).replace('"HERE"', number)
    assert sender.post(OTLP, content=body, headers=JSON).status_code == 400


@pytest.mark.parametrize("metric", [{"name": ["a"]}, {"unit": 5}, {"name": {}}])
def test_a_name_that_is_no_text_is_refused(sender: TestClient, metric: dict[str, Any]) -> None:
    request = request_of({"gauge": {"dataPoints": [{"timeUnixNano": NS, "asInt": "1"}]}, **metric})
    assert sender.post(OTLP, json=request).status_code == 400


def test_least_and_most_of_a_histogram_are_gauges(sender: TestClient, empty: Store) -> None:
    point = {"timeUnixNano": NS, "count": "2", "sum": 3, "min": 1, "max": "2"}
    request = request_of({"unit": "s", "histogram": {"dataPoints": [point], "aggregationTemporality": 2}})
    assert sender.post(OTLP, json=request).json() == {}
    assert [row[2:] for row in stored(empty)] == [
        ("a_count", "{}", 2.0, "counter", None),
        ("a_max", "{}", 2.0, "gauge", "s"),
        ("a_min", "{}", 1.0, "gauge", "s"),
        ("a_sum", "{}", 3.0, "counter", "s"),
    ]


def test_whole_numbers_that_are_rounded_are_reported_though_none_is_refused(sender: TestClient, empty: Store) -> None:
    said = "1 x a whole number that a 64-bit float cannot hold: stored rounded"
    answer = sender.post(OTLP, json=gauge(asInt=str(2**53 + 1)))
    assert answer.json() == {"partialSuccess": {"rejectedDataPoints": "0", "errorMessage": said}}
    assert [row[4] for row in stored(empty)] == [2.0**53]
    whole = struct.pack("<BQBq", 3 << 3 | 1, int(NS), 6 << 3 | 1, 2**53 + 1)
    binary = field(1, field(2, field(2, field(1, b"b") + field(5, field(1, whole)))))
    answer = sender.post(OTLP, content=binary, headers=PROTOBUF)
    assert answer.content == field(1, field(2, said.encode()))

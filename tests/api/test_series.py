"""Remote-write 1.0 and OTLP over HTTP; the OTLP request was sent by OpenTelemetry's SDK for Python 1.45."""

import gzip
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from starlette.testclient import TestClient
from tests.ingest.trees import RECORDINGS
from tests.serving import own_client

from crosswind.api.app import create_app
from crosswind.api.settings import ServerSettings
from crosswind.data.store.store import Store

WRITE, OTLP = "/v1/ingest/prometheus", "/v1/ingest/otlp/v1/metrics"
WRITE_HEADERS = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}
RECORDED = RECORDINGS / "otlp"
MS = 1_795_300_000_123
STALE = struct.unpack("<d", (0x7FF0000000000002).to_bytes(8, "little"))[0]
LABELS = {"__name__": "up", "instance": "n7:9100", "job": "node"}
Series = tuple[Mapping[str, str], Sequence[tuple[float, int]]]


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "home") as store:
        yield store


@pytest.fixture
def sender(empty: Store) -> Iterator[TestClient]:
    with own_client(create_app(empty), base_url="http://localhost:8000") as client:
        yield client


def varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def sample(value: float, ms: int) -> bytes:
    time = b"\x10" + varint(ms % 2**64) if ms else b""
    return field(2, b"\x09" + struct.pack("<d", value) + time)


def series(labels: Mapping[str, str], *samples: tuple[float, int]) -> bytes:
    named = (field(1, field(1, name.encode()) + field(2, text.encode())) for name, text in labels.items())
    return field(1, b"".join(named) + b"".join(sample(*point) for point in samples))


def snappy(content: bytes) -> bytes:
    packed: bytes = pa.compress(content, codec="snappy", asbytes=True)
    return packed


def metadata(kind: int, family: str, unit: str) -> bytes:
    return field(3, b"\x08" + varint(kind) + field(2, family.encode()) + field(4, unit.encode()))


def stored(store: Store) -> list[tuple[object, ...]]:
    if "series" not in store.lake.sets():
        return []
    with store.lake.connect() as connection:
        names = "ts_ns, node, name, labels, value, kind, unit"
        return connection.execute(f"select {names} from series order by ts_ns, name, labels").fetchall()


def test_samples_are_on_the_disk_once_when_their_sender_is_notified(sender: TestClient, empty: Store) -> None:
    for _ in range(2):
        answer = sender.post(WRITE, content=snappy(series(LABELS, (1.0, MS))), headers=WRITE_HEADERS)
        assert (answer.status_code, answer.content) == (204, b"")
    labels = '{"instance":"n7:9100","job":"node"}'
    assert stored(empty) == [(MS * 1_000_000, "n7", "up", labels, 1.0, None, None)]


def test_a_known_series_and_a_new_one_are_read_alike(sender: TestClient, empty: Store) -> None:
    for number in range(3):
        body = series(LABELS, (number, MS + number)) + series({**LABELS, "new": str(number)}, (number, MS + number))
        assert sender.post(WRITE, content=snappy(body), headers=WRITE_HEADERS).status_code == 204
    assert [row[4] for row in stored(empty)] == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]


def test_a_series_may_have_several_samples_later(sender: TestClient, empty: Store) -> None:
    for samples in ([(1.0, MS)], [(2.0, MS + 1), (3.0, MS + 2)], [(4.0, MS + 3)]):
        assert sender.post(WRITE, content=snappy(series(LABELS, *samples)), headers=WRITE_HEADERS).status_code == 204
    assert [(row[0], row[4]) for row in stored(empty)] == [((MS + n) * 1_000_000, n + 1.0) for n in range(4)]


def test_of_two_samples_of_one_time_the_first_stays(sender: TestClient, empty: Store) -> None:
    body = series(LABELS, (1.0, MS), (2.0, MS), (3.0, MS + 1))
    assert sender.post(WRITE, content=snappy(body), headers=WRITE_HEADERS).status_code == 204
    assert [row[4] for row in stored(empty)] == [1.0, 3.0]


def test_the_mark_of_a_series_end_is_no_value(sender: TestClient, empty: Store) -> None:
    body = series(LABELS, (STALE, MS), (5.0, MS + 1))
    assert sender.post(WRITE, content=snappy(body), headers=WRITE_HEADERS).status_code == 204
    assert [row[4] for row in stored(empty)] == [5.0]


def test_metadata_tells_kind_and_unit_also_later(sender: TestClient, empty: Store) -> None:
    counter = {"__name__": "joules_total"}
    for body in (series(counter, (1.0, MS)), metadata(1, "joules_total", "joules"), series(counter, (2.0, MS + 1))):
        assert sender.post(WRITE, content=snappy(body), headers=WRITE_HEADERS).status_code == 204
    assert [row[5:] for row in stored(empty)] == [(None, None), ("counter", "joules")]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "cut off within a number"),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "a number of more than 64 bits"),
        (b"\x05hello", "expected one block of snappy's raw format"),
        (snappy(b"hello"), "expected the series or metadata of a WriteRequest"),
        (snappy(series(LABELS, (1.0, MS))[:-3]), "expected the series or metadata of a WriteRequest"),
        (snappy(series({"job": "a"}, (1.0, MS))), "expected a label __name__"),
        (snappy(field(1, field(1, field(1, b"\xff") + field(2, b"x")))), "expected UTF-8"),
        (snappy(series(LABELS, (1.0, MS)) + field(1, field(2, b"\x09\x00"))), "field 1 is cut off"),
    ],
)
def test_what_is_no_request_is_refused_for_ever_and_stores_nothing(
    sender: TestClient, empty: Store, body: bytes, said: str
) -> None:
    answer = sender.post(WRITE, content=body, headers=WRITE_HEADERS)
    assert answer.status_code == 400
    assert said in answer.json()["detail"]
    assert stored(empty) == []


def test_what_cannot_be_stored_is_reported_and_the_rest_is_stored(sender: TestClient, empty: Store) -> None:
    histogram = field(1, field(1, field(1, b"__name__") + field(2, b"h")) + field(4, b""))
    body = series(LABELS, (1.0, 0), (2.0, -5), (3.0, MS)) + histogram
    answer = sender.post(WRITE, content=snappy(body), headers=WRITE_HEADERS)
    assert answer.status_code == 422
    assert answer.json()["detail"] == (
        "1 samples stored; refused: 1 x a native histogram; expected classic ones; "
        "2 x a time that is not one in milliseconds from 2001 to 2261"
    )
    assert [row[4] for row in stored(empty)] == [3.0]


def test_version_2_is_asked_to_fall_back(sender: TestClient) -> None:
    body = snappy(series(LABELS, (1.0, MS)))
    for message, status in (("io.prometheus.write.v2.Request", 415), ("prometheus.WriteRequest", 204)):
        media = {"Content-Type": f"application/x-protobuf;proto={message}"}
        assert sender.post(WRITE, content=body, headers=WRITE_HEADERS | media).status_code == status
    symbols = snappy(field(4, b"") + field(4, b"up") + field(5, b""))
    assert sender.post(WRITE, content=symbols, headers=WRITE_HEADERS).status_code == 400


def test_times_of_tomorrow_are_not_believed(sender: TestClient, empty: Store) -> None:
    body = series(LABELS, (1.0, MS + 10**12), (3.0, MS))
    answer = sender.post(WRITE, content=snappy(body), headers=WRITE_HEADERS)
    said = "1 samples stored; refused: 1 x a time more than a day ahead of this server's clock"
    assert (answer.status_code, answer.json()["detail"]) == (422, said)
    assert [row[4] for row in stored(empty)] == [3.0]


def test_other_codings_types_and_sizes_are_refused(empty: Store) -> None:
    settings = ServerSettings(segment_bytes=1000, batch_bytes=2000)
    with own_client(create_app(empty, settings), base_url="http://localhost:8000") as sender:
        body = snappy(series(LABELS, (1.0, MS)))
        for header, value in (("Content-Encoding", "gzip"), ("Content-Type", "application/json")):
            assert sender.post(WRITE, content=body, headers=WRITE_HEADERS | {header: value}).status_code == 415
        assert sender.post(WRITE, content=snappy(bytes(1001)), headers=WRITE_HEADERS).status_code == 413
        assert sender.post(WRITE, content=bytes(2001), headers=WRITE_HEADERS).status_code == 413


def test_a_store_that_cannot_write_asks_to_send_again(sender: TestClient, empty: Store) -> None:
    empty.lake.root.rename(empty.home / "aside")
    empty.lake.root.write_text("no folder")
    answer = sender.post(WRITE, content=snappy(series(LABELS, (1.0, MS))), headers=WRITE_HEADERS)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")


OUTER = {"host.name": "n7", "service.name": "train", "process.pid": "42"}
SCOPE = {"otel.scope.name": "loop", "otel.scope.version": "1.0"}


def otlp_labels(**own: str) -> str:
    return json.dumps(dict(sorted({**OUTER, **SCOPE, **own}.items())), separators=(",", ":"))


@pytest.mark.parametrize("coding", ["identity", "gzip"])
@pytest.mark.parametrize(("suffix", "media"), [("bin", "application/x-protobuf"), ("json", "application/json")])
def test_what_the_sdk_sends_becomes_series(
    sender: TestClient, empty: Store, suffix: str, media: str, coding: str
) -> None:
    content = (RECORDED / f"python-sdk-1.45.{suffix}").read_bytes()
    body = gzip.compress(content) if coding == "gzip" else content
    answer = sender.post(OTLP, content=body, headers={"Content-Type": media, "Content-Encoding": coding})
    assert (answer.status_code, answer.headers["content-type"]) == (200, media)
    assert answer.content == (b"{}" if suffix == "json" else b"")
    rows = stored(empty)
    assert {row[:2] for row in rows} == {(1795300118950362307, "n7")}
    assert [row[2:] for row in rows] == [
        ("gpu.power", otlp_labels(gpu="0", ok="true"), 311.5, "gauge", "W"),
        ("queue", otlp_labels(), -3.0, "gauge", None),
        ("step.duration_bucket", otlp_labels(le="+Inf"), 3.0, "counter", None),
        ("step.duration_bucket", otlp_labels(le="0.1"), 1.0, "counter", None),
        ("step.duration_bucket", otlp_labels(le="1.0"), 2.0, "counter", None),
        ("step.duration_count", otlp_labels(), 3.0, "counter", None),
        ("step.duration_max", otlp_labels(), 7.0, "gauge", "s"),
        ("step.duration_min", otlp_labels(), 0.05, "gauge", "s"),
        ("step.duration_sum", otlp_labels(), 7.55, "counter", "s"),
        ("tokens", otlp_labels(rank="0"), 4096.0, "counter", "{token}"),
    ]


def test_points_that_cannot_be_stored_are_reported_as_partial_success(sender: TestClient, empty: Store) -> None:
    points = [{"timeUnixNano": "0", "asInt": "1"}, {"timeUnixNano": "1795300118950362307", "asDouble": "Infinity"}]
    request = {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "a", "gauge": {"dataPoints": points}}]}]}]}
    answer = sender.post(OTLP, json=request)
    reason = "1 x no name, or a time that is not of 2001 to 2261"
    assert answer.json() == {"partialSuccess": {"rejectedDataPoints": "1", "errorMessage": reason}}
    assert [row[2:5] for row in stored(empty)] == [("a", "{}", float("inf"))]
    metric = field(1, b"a") + field(5, field(1, struct.pack("<BQBd", 3 << 3 | 1, 0, 4 << 3 | 1, 1.0)))
    binary = field(1, field(2, field(2, metric)))
    answer = sender.post(OTLP, content=binary, headers={"Content-Type": "application/x-protobuf"})
    assert answer.content == field(1, b"\x08\x01" + field(2, reason.encode()))


@pytest.mark.parametrize("body", [b"[]", b'{"resourceMetrics": 5}', b'{"resourceMetrics": [5]}', b"{", b"[" * 100_000])
def test_json_that_is_no_request_is_refused(sender: TestClient, body: bytes) -> None:
    assert sender.post(OTLP, content=body, headers={"Content-Type": "application/json"}).status_code == 400


@pytest.mark.parametrize("number", ["1" * 400, str(2**64), '"12e3"', "true", '"x"', "{}"])
def test_a_number_of_no_64_bits_is_refused(sender: TestClient, number: str) -> None:
    point = f'{{"timeUnixNano": "1795300118950362307", "asInt": {number}}}'
    metric = f'{{"name": "a", "gauge": {{"dataPoints": [{point}]}}}}'
    body = f'{{"resourceMetrics": [{{"scopeMetrics": [{{"metrics": [{metric}]}}]}}]}}'
    answer = sender.post(OTLP, content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, "expected a whole number of 64 bits" in answer.json()["detail"]) == (400, True)


def test_damage_is_refused_and_never_a_crash(sender: TestClient) -> None:
    for suffix, media in (("bin", "application/x-protobuf"), ("json", "application/json")):
        content = (RECORDED / f"python-sdk-1.45.{suffix}").read_bytes()
        for place in range(0, len(content), 23):
            damaged = content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :]
            answer = sender.post(OTLP, content=damaged, headers={"Content-Type": media})
            assert answer.status_code in {200, 400}, (place, answer.text)

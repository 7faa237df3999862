"""Content codings of answers."""

import gzip
import io

import pyarrow as pa
import pytest
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse, StreamingResponse
from starlette.testclient import TestClient

from crosswind.api.delivery.coding import Coding, coding_of
from crosswind.ingest.ship.zstd import zstd_module

TEXT = "a line of text\n" * 1000


@pytest.mark.parametrize(
    ("field", "coding"),
    [
        ("", "identity"),
        ("gzip", "gzip"),
        ("GZIP;Q=0.5", "gzip"),
        ("gzip, deflate, br", "gzip"),
        ("gzip;q=0", "identity"),
        ("identity, gzip;q=0.5", "identity"),
        ("identity;q=0.2, gzip;q=0.5", "gzip"),
        ("*;q=0", "identity"),
        ("br", "identity"),
        ("gzip;q=x", "identity"),
    ],
)
def test_a_coding_is_negotiated_by_quality(field: str, coding: str) -> None:
    assert coding_of(field) == coding


@pytest.mark.parametrize("field", ["zstd", "gzip, deflate, br, zstd", "*", "gzip;q=0.5, zstd;q=0.6"])
def test_zstd_is_the_best_of_equals(field: str) -> None:
    assert coding_of(field) == "zstd"
    assert coding_of("zstd;q=0.5, gzip") == "gzip"


@pytest.fixture
def plain() -> TestClient:
    app = FastAPI()
    app.add_api_route("/whole", lambda: PlainTextResponse(TEXT))
    app.add_api_route("/short", lambda: PlainTextResponse("short"))
    app.add_api_route("/pieces", lambda: StreamingResponse(iter([TEXT] * 3), media_type="text/csv"))
    app.add_api_route("/packed", lambda: PlainTextResponse(gzip.compress(TEXT.encode()), headers=GZIPPED))
    app.add_api_route("/zip", lambda: StreamingResponse(iter([TEXT]), media_type="application/zip"))
    app.add_api_route("/events", lambda: StreamingResponse(iter([TEXT]), media_type="text/event-stream"))
    app.add_middleware(Coding)
    return TestClient(app)


GZIPPED = {"Content-Encoding": "gzip"}


def test_an_answer_is_packed_whole_or_in_pieces(plain: TestClient) -> None:
    whole, pieces = (plain.get(path, headers={"Accept-Encoding": "gzip"}) for path in ("/whole", "/pieces"))
    assert (whole.text, pieces.text) == (TEXT, TEXT * 3)
    assert [answer.headers["content-encoding"] for answer in (whole, pieces)] == ["gzip", "gzip"]
    assert [answer.headers["vary"] for answer in (whole, pieces)] == ["Accept-Encoding"] * 2
    assert int(whole.headers["content-length"]) < 500
    assert "content-length" not in pieces.headers


@pytest.mark.parametrize(("path", "text"), [("/whole", TEXT), ("/pieces", TEXT * 3)])
def test_an_answer_is_packed_with_zstd(plain: TestClient, path: str, text: str) -> None:
    with plain.stream("GET", path, headers={"Accept-Encoding": "zstd"}) as answer:
        packed = b"".join(answer.iter_raw())
    assert answer.headers["content-encoding"] == "zstd"
    module = zstd_module()
    assert module is not None
    assert module.decompress(packed).decode() == text


def test_what_is_short_or_packed_already_is_sent_as_it_is(plain: TestClient) -> None:
    both = {"Accept-Encoding": "gzip, zstd"}
    assert "content-encoding" not in plain.get("/short", headers=both).headers
    assert "content-encoding" not in plain.get("/zip", headers=both).headers
    assert "content-encoding" not in plain.get("/events", headers=both).headers
    packed = plain.get("/packed", headers=both)
    assert (packed.text, packed.headers["content-encoding"]) == (TEXT, "gzip")


def test_a_large_table_is_packed_once(client: TestClient) -> None:
    answer = client.get("/v1/runs?format=arrow", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert len(pa.ipc.open_stream(io.BytesIO(answer.content)).read_all()) == 9

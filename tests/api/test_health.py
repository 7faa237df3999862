import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from crosswind.api.openapi.examples import examples, folder
from crosswind.api.telemetry import Family, Point, RequestCounts, exposition
from crosswind.data.store.store import Store

LINE = re.compile(r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+')


def test_the_server_lives_and_is_ready(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready", "coverage": {"damaged": 0, "files": []}}


def test_without_its_database_the_server_lives_but_is_not_ready(client: TestClient, store: Store) -> None:
    store.close()
    for file in store.home.glob("catalog.sqlite*"):
        file.unlink()
    store.home.joinpath("catalog.sqlite").mkdir()
    assert client.get("/healthz").status_code == 200
    for path in ("/readyz", "/v1/runs", "/metrics"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["detail"]) == (503, "the catalog does not answer")
        assert answer.headers["retry-after"] == "5"


def test_a_store_that_takes_nothing_is_not_ready(client: TestClient, store: Store) -> None:
    store.home.joinpath("lake", ".writing").rmdir()
    store.home.joinpath("lake", ".writing").write_text("in the way")
    answer = client.get("/readyz")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert answer.json()["detail"].startswith("the lake takes no files: ")


def test_readiness_writes_to_the_catalog_and_not_more_often_than_said(client: TestClient, store: Store) -> None:
    assert client.get("/readyz").status_code == 200
    before = store.home.joinpath("catalog.sqlite-wal").stat().st_mtime_ns
    assert client.get("/readyz").status_code == 200
    assert store.home.joinpath("catalog.sqlite-wal").stat().st_mtime_ns == before
    store.catalog.check()
    assert store.home.joinpath("catalog.sqlite-wal").stat().st_mtime_ns > before
    assert list(store.home.glob("lake/.writing/.ready*")) == []


def test_metrics_count_requests_by_route_and_never_by_id(client: TestClient) -> None:
    for path in ("/v1/runs/r0", "/v1/runs/r1", "/v1/runs/nope", "/secret-path"):
        client.get(path)
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    assert 'crosswind_http_requests_total{route="/v1/runs/{run_id}",method="GET",status="200"} 2' in lines
    assert 'crosswind_http_requests_total{route="/v1/runs/{run_id}",method="GET",status="404"} 1' in lines
    assert 'crosswind_http_requests_total{route="unmatched",method="GET",status="404"} 1' in lines
    assert 'crosswind_http_request_duration_seconds_count{route="/v1/runs/{run_id}"} 3' in lines
    assert "secret-path" not in answer.text
    assert "r0" not in answer.text


def test_metrics_tell_what_is_stored(client: TestClient) -> None:
    lines = client.get("/metrics").text.splitlines()
    for line in ("crosswind_runs 9", "crosswind_ingest_batches_total 1", "crosswind_ingest_rows_total 128"):
        assert line in lines
    assert "crosswind_ingest_skipped_total 2" in lines


def test_every_line_is_one_that_prometheus_reads(client: TestClient) -> None:
    client.get("/v1/runs")
    for line in client.get("/metrics").text.splitlines():
        assert line.startswith(("# HELP crosswind_", "# TYPE crosswind_")) or LINE.fullmatch(line), line


def test_a_duration_falls_into_its_bucket_and_all_above() -> None:
    counts = RequestCounts()
    for seconds in (0.005, 0.006, 20.0):
        counts.count("/x", "BREW", 200, seconds=seconds)
    [requests, durations] = counts.families()
    assert requests.points == [Point(3, {"route": "/x", "method": "other", "status": "200"})]
    buckets = [point.value for point in durations.points if point.suffix == "_bucket"]
    assert buckets == [1, *[2] * 10, 3]
    assert [point.value for point in durations.points if point.suffix == "_sum"] == [pytest.approx(20.011)]


def test_label_values_are_escaped() -> None:
    text = exposition([Family("crosswind_x", "gauge", "X.", [Point(1.5, {"route": 'a"\\\n'})])])
    assert text.splitlines()[-1] == 'crosswind_x{route="a\\"\\\\\\n"} 1.5'


def test_the_api_describes_itself_as_openapi_3_1(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    assert described["openapi"].startswith("3.1")
    assert {"/v1/runs", "/v1/runs/{run_id}/steps", "/v1/studies/{study_id}/trials:suggest"} <= set(described["paths"])
    parameters = described["paths"]["/v1/runs"]["get"]["parameters"]
    names = [parameter["name"] for parameter in parameters if parameter["in"] == "query"]
    of_list = ["cursor", "fields", "format", "limit", "since", "sort", "until"]
    of_runs = ["account", "id_end", "job_id", "node", "state", "system", "user", "workload"]
    assert sorted(names) == sorted([*of_list, *of_runs])


def test_the_description_is_written_and_packed_once(client: TestClient) -> None:
    answers = [client.get("/openapi.json", headers={"Accept-Encoding": coding}) for coding in ("gzip", "identity")]
    assert answers[0].json() == answers[1].json() == client.app.openapi()  # type: ignore[attr-defined]
    assert [answer.headers.get("content-encoding") for answer in answers] == ["gzip", None]
    assert (
        client.get(
            "/openapi.json", headers={"If-None-Match": answers[1].headers["etag"], "Accept-Encoding": "identity"}
        ).status_code
        == 304
    )
    kept = client.app.state.description  # type: ignore[attr-defined]
    client.get("/openapi.json")
    assert client.app.state.description is kept  # type: ignore[attr-defined]


def test_a_body_of_an_example_is_served_and_no_other_file(client: TestClient) -> None:
    [name] = [example.file for example in examples() if (example.file or "").endswith(".segment")]
    assert client.get(f"/docs/examples/{name}").content == (folder() / name).read_bytes()
    refused = client.get("/docs/examples/runs.json")
    assert (refused.status_code, refused.json()["type"]) == (404, "/problems/not-found")


def test_the_guide_names_every_resource_and_metric(client: TestClient) -> None:
    guide = Path(__file__).parents[2].joinpath("docs/api.md").read_text()
    paths = client.get("/openapi.json").json()["paths"]
    routes = {f"`{method.upper()} {path}`" for path, methods in paths.items() for method in methods}
    metrics = set(re.findall(r"# TYPE (\w+)", client.get("/metrics").text))
    assert {name for name in routes if name not in guide} | {name for name in metrics if name not in guide} == set()

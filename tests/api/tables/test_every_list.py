"""Every list of the API, taken from the application's own routes: parts, orders, columns and formats."""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.api.access.issuing import ANNA, issued
from tests.api.two_users import SPACE, asking_as, fill
from tests.models.registry.models import trained
from tests.traced_run import store_traces

from crosswind.api.app import create_app
from crosswind.data.schema.access import OWNER
from crosswind.data.schema.answers.events import ANY_EVENT, EventKind
from crosswind.data.schema.answers.webhooks import Delivery
from crosswind.data.schema.occupancy import Allocation, Source
from crosswind.data.schema.report import Report
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.saved_cohort import RunConditions, SavedCohort
from crosswind.data.schema.trial import Study, Trial, TrialRecord, TrialState
from crosswind.data.store.store import Store
from crosswind.models.baseline import Ewma
from crosswind.models.registry.registry import Registry

ARROW, CSV = "application/vnd.apache.arrow.stream", "text/csv"
ADDRESSES: dict[str, str] = {  # of the lists that need one
    "/v1/runs/{run_id}/steps": "/v1/runs/ann-run0/steps",
    "/v1/runs/{run_id}/trace/events": "/v1/runs/ann-run0/trace/events",
    "/v1/jobs/{job_id}/nodes": "/v1/jobs/ann-job0/nodes",
    "/v1/models/{name}": "/v1/models/step-time",
    "/v1/studies/{study_id}/trials": "/v1/studies/ann-study/trials",
    "/v1/studies/{study_id}/reports": "/v1/studies/ann-study/reports",
    "/v1/cohorts/{cohort_id}/runs": "/v1/cohorts/c0/runs",
}
NEEDED: Mapping[str, Mapping[str, str]] = {"/v1/checks": {"system": "lab"}}
ANSWERS = {  # which hold a list and are none: a ranking, one thing with its parts
    *("/v1/counters", "/v1/interference", "/v1/stragglers", "/v1/regressions", "/v1/weather", "/v1/sql"),
    *("/v1/jobs/{job_id}", "/v1/studies/{study_id}", "/v1/models/{name}/versions/{version}"),
    *("/v1/series", "/v1/series/points", "/v1/events", "/v1/systems/{system}", "/v1/nodes/{node}"),
    *("/v1/nodes/{node}/history", "/v1/cohorts/{cohort_id}", "/v1/cohorts/{cohort_id}/comparison"),
    *("/v1/webhooks/{webhook_id}",),
    "/v1/studies/{study_id}/runs/{run_id}/disturbance",
    *(f"/v1/runs/{{run_id}}/{part}" for part in ("report", "explanation", "comparison", "waits", "remaining")),
    *(f"/v1/runs/{{run_id}}/{part}" for part in ("batch-shares", "stragglers", "replay", "trace", "trace/difference")),
}
NULL_IS_LEAST = {"started_ns", "system"}  # stored as 0 and as no text


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.thorough)])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with several rows of every list."""
    url = None if request.param == "sqlite" else request.getfixturevalue("lasting_postgres_url")
    with Store.open(tmp_path_factory.mktemp("lists") / "store", database=url) as opened:
        fill(opened)
        _fill(opened)
        _fill_newer(opened)
        yield opened


def _fill(store: Store) -> None:
    for name in ("step-time", "other-model"):
        for _ in range(3):
            Registry(store).register(name, Ewma(), trained().evidence)
    for number in range(3):
        issued(store, ANNA, number + 60.0)
    with store.catalog.write() as session:
        for node in ("x", "y"):
            session.places.merge(Allocation("ann-job0", node, node, Source.PROLOG, "", started_ns=5, ended_ns=9))
        session.studies.add(Study("s3", "=formula", SPACE, "run_seconds", "s", 0, 7))
        for number, objective in enumerate((None, 0.5, None, 0.25)):
            state = TrialState.FAILED if objective is None else TrialState.DONE
            trial = Trial({"batch": 9 + number}, state, objective, f"late-{number}")
            session.leases.add(TrialRecord(trial, "ann-study", owner=f"host{number % 2}"))
        for trial_id in ("ann-trial1", "ann-trial2"):
            session.reports.add("ann-study", trial_id, [Report(step, 1.0 / (step + 1)) for step in range(3)])


def _fill_newer(store: Store) -> None:
    for run_id in ("ann-run0", "ann-run1", "ann-run2"):
        store_traces(store, run_id)
    with store.catalog.write() as session:
        session.runs.merge(Run("elsewhere", "w", "other-system", RunState.COMPLETED, started_ns=1, ended_ns=2))
        for number in range(3):
            session.cohorts.add(SavedCohort(f"c{number}", "all", number, conditions=RunConditions(system="lab")))
            url = f"https://n{number}.example/"
            hook = session.webhooks.add(url, ANY_EVENT, secret="s", owner=ANNA, token_id=None, position=0)
        ADDRESSES["/v1/webhooks/{webhook_id}/deliveries"] = f"/v1/webhooks/{hook.webhook_id}/deliveries"
        for number in range(3):
            session.webhooks.note(sent(hook.webhook_id, number))


def sent(webhook_id: str, number: int) -> Delivery:
    of = {"delivery_id": f"d{number}", "webhook_id": webhook_id, "event_id": number, "kind": EventKind.RUN_ENDED}
    return Delivery(**of, at_ns=number, attempt=1, status=200, error=None, seconds=0.5)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def app(store: Store) -> FastAPI:
    return create_app(store)


@pytest.fixture(scope="module")
def client(app: FastAPI) -> TestClient:
    return asking_as(app, OWNER)


@cache
def lists(app: FastAPI) -> dict[str, str]:
    """Return by its path the field of every list's rows: whatever answers with a list of objects, but for ANSWERS."""
    document = app.openapi()
    schemas = document["components"]["schemas"]
    listed = {}
    for path, operations in document["paths"].items():
        content = operations.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema", {})
        name = schema.get("anyOf", [schema])[0].get("$ref", "").rpartition("/")[2]
        rows = [
            field
            for field, said in schemas.get(name, {}).get("properties", {}).items()
            if "$ref" in said.get("items", {})
        ]
        if rows and path.startswith("/v1/") and path not in ANSWERS:
            listed[path] = rows[0]
    return listed


def asked(client: TestClient, path: str, **query: Any) -> Any:
    answer = tried(client, path, **query)
    assert answer.status_code == 200, (path, query, answer.text)
    return answer


def tried(client: TestClient, path: str, **query: Any) -> Any:
    return client.get(ADDRESSES.get(path, path), params={**NEEDED.get(path, {}), **query})


def whole(client: TestClient, path: str, **query: Any) -> list[dict[str, Any]]:
    """Return all rows of a list, part by part."""
    rows: list[dict[str, Any]] = []
    field, url = lists(client.app)[path], None  # type: ignore[arg-type]
    while True:
        page = (client.get(url) if url else asked(client, path, **query)).json()
        rows += page[field]
        if (url := page["next_url"]) is None:
            return rows


def sorts(app: FastAPI, path: str) -> list[str]:
    names: list[str] = app.openapi()["paths"][path]["get"]["x-crosswind-sorts"]
    return names


def test_every_list_has_parts_columns_orders_and_formats(app: FastAPI) -> None:
    paths = app.openapi()["paths"]
    assert len(lists(app)) >= 14
    for path in lists(app):
        operation = paths[path]["get"]
        names = {parameter["name"] for parameter in operation["parameters"]}
        assert {"limit", "cursor", "fields", "sort", "format"} <= names, f"{path}: answer it through a Listing"
        assert set(operation["responses"]["200"]["content"]) == {"application/json", CSV, ARROW}, path
        [sort, fields] = [named(operation, name)["schema"]["pattern"] for name in ("sort", "fields")]
        assert all(re.match(sort, text) for name in sorts(app, path) for text in (name, f"-{name}")), path
        assert not re.match(fields, "colour")


def named(operation: Mapping[str, Any], name: str) -> Any:
    return next(parameter for parameter in operation["parameters"] if parameter["name"] == name)


def test_every_list_has_rows_to_try_it_with(app: FastAPI, client: TestClient) -> None:
    assert {path for path in lists(app) if len(whole(client, path)) < 2} == set()


def test_every_order_leads_through_every_list_without_gap_or_repeat(app: FastAPI, client: TestClient) -> None:
    for path in lists(app):
        texts = sorted(json.dumps(row) for row in whole(client, path, limit=500))
        limit = max(1, len(texts) // 4)
        for sort in (f"{sign}{name}" for name in sorts(app, path) for sign in ("", "-")):
            rows = whole(client, path, limit=limit, sort=sort)
            assert sorted(map(json.dumps, rows)) == texts, (path, sort)
            values = [row[sort.removeprefix("-")] for row in rows]
            present = [value for value in values if value is not None]
            assert present == sorted(present, reverse=sort.startswith("-")), (path, sort)
            assert values[: len(present)] == present or sort.removeprefix("-") in NULL_IS_LEAST, (path, sort)


def test_an_order_that_nothing_serves_is_refused_by_name(app: FastAPI, client: TestClient) -> None:
    for path in lists(app):
        answer = tried(client, path, sort="colour")
        assert answer.status_code == 422
        assert all(f"[-]{name}" in answer.json()["detail"] for name in sorts(app, path)), path


def test_columns_are_chosen_in_every_format(app: FastAPI, client: TestClient) -> None:
    for path, field in lists(app).items():
        first, second = list(asked(client, path, limit=1).json()[field][0])[:2]
        chosen = f"{second},{first}"
        rows = asked(client, path, fields=chosen).json()[field]
        assert all(list(row) == [second, first] for row in rows), path
        text = asked(client, path, fields=chosen, format="csv").text
        assert next(csv.reader(io.StringIO(text))) == [second, first]
        assert arrow(asked(client, path, fields=chosen, format="arrow")).column_names == [second, first]
        refused = tried(client, path, fields=f"{first},colour")
        assert (refused.status_code, "'colour' is unknown: expected some of" in refused.text) == (422, True), path


def test_all_formats_say_the_same(app: FastAPI, client: TestClient) -> None:
    for path, field in lists(app).items():
        page = asked(client, path, limit=5)
        table, text = (asked(client, path, limit=5, format=form) for form in ("arrow", "csv"))
        links = {
            answer.headers.get("link", "").replace("format=csv&", "").replace("format=arrow&", "")
            for answer in (table, text)
        }
        assert len(links) == 1
        assert (page.json()["next_url"] is None) == (links == {""}), path
        rows = page.json()[field]
        assert [plain(row) for row in arrow(table).to_pylist()] == [plain(row) for row in rows], path
        cells = list(csv.DictReader(io.StringIO(text.text)))
        assert [[number(text) for text in row.values()] for row in cells] == [
            [cell(value) for value in row.values()] for row in rows
        ], path


def test_the_next_part_of_a_table_is_in_its_header(client: TestClient) -> None:
    seen, url = [], "/v1/runs?format=arrow&fields=run_id&limit=7"
    while url:
        answer = client.get(url)
        seen += arrow(answer).column("run_id").to_pylist()
        url = answer.links["next"]["url"] if "next" in answer.links else ""
    assert seen == [row["run_id"] for row in whole(client, "/v1/runs")]


def test_a_cursor_belongs_to_its_list_order_and_filter(app: FastAPI, client: TestClient) -> None:
    cursor = asked(client, "/v1/runs", limit=1).json()["next"]
    assert asked(client, "/v1/runs", limit=2, cursor=cursor, fields="run_id", format="csv").text
    for path, query in (
        ("/v1/runs", {"sort": "started_ns"}),
        ("/v1/runs", {"system": "lab"}),
        ("/v1/run-outcomes", {}),
    ):
        answer = client.get(path, params={"cursor": cursor, **query})
        assert (answer.status_code, "another list, order or filter" in answer.text) == (422, True), (path, query)


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/html,*/*;q=0.8", "application/json"),
        ("text/csv", CSV),
        ("text/*", CSV),
        (ARROW, ARROW),
        (f"application/json;q=0.5, {ARROW}", ARROW),
        (f"text/csv;q=nan, {ARROW};q=0.1", ARROW),
        ("image/png", "application/json"),
    ],
)
def test_a_format_is_negotiated(client: TestClient, accept: str, media_type: str) -> None:
    answer = client.get("/v1/runs", headers={"Accept": accept})
    assert answer.headers["content-type"].partition(";")[0] == media_type
    assert "accept" in answer.headers["vary"].lower()
    assert client.get("/v1/runs?format=json", headers={"Accept": accept}).json()["runs"]


def test_what_a_spreadsheet_takes_for_a_formula_is_text_in_csv_alone(client: TestClient) -> None:
    names = csv.reader(io.StringIO(asked(client, "/v1/studies", fields="name", format="csv").text))
    assert ["'=formula"] in list(names)
    assert {"name": "=formula"} in asked(client, "/v1/studies", fields="name").json()["studies"]
    assert "=formula" in arrow(asked(client, "/v1/studies", fields="name", format="arrow")).column("name").to_pylist()


def test_json_has_up_to_500_rows_and_tables_more(client: TestClient) -> None:
    refused = client.get("/v1/runs?limit=501")
    assert (refused.status_code, refused.json()["detail"]) == (
        422,
        "limit: 501 is too large: expected at most 500 rows as json",
    )
    assert client.get("/v1/runs?limit=501&format=csv").status_code == 200
    assert len(asked(client, "/v1/runs").json()["runs"]) == 50
    assert len(arrow(asked(client, "/v1/runs", format="arrow"))) == 53


def test_runs_and_jobs_are_narrowed_by_user_account_and_time(client: TestClient) -> None:
    began = [row["started_ns"] for row in whole(client, "/v1/runs", user="ann", account="ann-lab")]
    assert len(began) == 26
    for path in ("/v1/runs", "/v1/jobs", "/v1/run-outcomes"):
        every = whole(client, path, user="ann")
        times = sorted(row["started_ns"] for row in every)
        since, until = times[3], times[9]
        some = whole(client, path, user="ann", since=since, until=rfc3339(client, path, until), limit=4)
        assert sorted(row["started_ns"] for row in some) == times[3:9], path
        assert whole(client, path, account="nobody") == []
    [job] = whole(client, "/v1/jobs", job_id="ann-job3", account="ann-lab")
    assert job["job_id"] == "ann-job3"


@pytest.mark.parametrize(
    "since", ["yesterday", "2026-01-02", "2026-13-02T00:00:00Z", "-5", "9" * 19, "2026-01-02T03:04:05"]
)
def test_a_time_that_is_none_is_refused_by_name(client: TestClient, since: str) -> None:
    answer = client.get("/v1/runs", params={"since": since})
    assert (answer.status_code, answer.json()["detail"].startswith(f"since: '{since}' is no moment")) == (422, True)


def test_words_are_dictionaries_and_moments_timestamps_in_arrow(client: TestClient) -> None:
    schema = arrow(asked(client, "/v1/runs", format="arrow")).schema
    words, moment = pa.dictionary(pa.int32(), pa.string()), pa.timestamp("ns", tz="UTC")
    types = {"state": words, "workload": words, "started_at": moment, "started_ns": pa.int64()}
    types |= {"nodes": pa.list_(pa.string()), "run_seconds": pa.float64(), "shared": pa.bool_(), "tags": pa.string()}
    assert {name: schema.field(name).type for name in types} == types


def test_an_empty_list_has_columns_in_every_format(client: TestClient) -> None:
    table = arrow(client.get("/v1/runs?system=none&format=arrow"))
    assert (len(table), "run_id" in table.column_names) == (0, True)
    assert '"run_id"' in client.get("/v1/runs?system=none&format=csv").text
    assert len(arrow(client.get("/v1/runs/ann-run24/steps?format=arrow"))) == 0


def test_all_steps_come_without_a_limit_in_windows(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosswind.api.routes.step_rows.WINDOW_ROWS", 5)
    rows = whole(client, "/v1/runs/{run_id}/steps", limit=500)
    for sort in ("step", "-step"):
        table = arrow(client.get(f"/v1/runs/ann-run0/steps?format=arrow&sort={sort}"))
        expected = rows if sort == "step" else rows[::-1]
        assert [plain(row) for row in table.to_pylist()] == [plain(row) for row in expected]
    behind = asked(client, "/v1/runs/{run_id}/steps", limit=9, rank=0).json()["next"]
    rest = arrow(client.get(f"/v1/runs/ann-run0/steps?format=arrow&cursor={behind}&rank=0"))
    assert rest.column("step").to_pylist() == [row["step"] for row in rows if row["rank"] == 0][9:]


def arrow(answer: Any) -> pa.Table:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == ARROW
    return pa.ipc.open_stream(answer.content).read_all()


def rfc3339(client: TestClient, path: str, moment_ns: int) -> str:
    text: str = next(row["started_at"] for row in whole(client, path, user="ann") if row["started_ns"] == moment_ns)
    return text


def plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with moments in nanoseconds and objects as text."""
    moments = {name: pd.Timestamp(value).value for name, value in row.items() if name.endswith("_at") and value}
    return {name: _plain(value) for name, value in row.items()} | moments


def _plain(value: Any) -> Any:
    if isinstance(value, dict) or (isinstance(value, list) and all(isinstance(item, dict) for item in value)):
        return json.dumps(value, ensure_ascii=False)
    return value


def number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def cell(value: Any) -> float | str:
    """Return what a value is in CSV."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return number(f"'{value}" if value.startswith(("=", "+", "-", "@")) else value)
    return json.dumps(value, ensure_ascii=False)

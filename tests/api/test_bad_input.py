"""Every door answers what it cannot take with a problem that names what was wrong, and stores nothing."""

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.serving import own_client

from crosswind.api.app import create_app
from crosswind.data.schema.trial import Study, Trial, TrialRecord, TrialState
from crosswind.data.store.store import Store

ASK = {"workload": "nanogpt", "system": "lab", "configuration": {"batch": 8}, "world_size": 2}
STUDY = {"name": "n", "space": {"batch": {"kind": "int", "low": 1, "high": 8}}, "objective": "o"}
STUDIES, PREDICTIONS = "/v1/studies", "/v1/predictions"
BATCH, WALLTIME, SCALING = "/v1/predictions:batch", "/v1/walltime-advice", "/v1/scaling-advice"
MANY = {**ASK, "world_size": [2, 4]}
SCALES = {**ASK, "node_counts": [1, 2]}
SUGGEST, COMPLETE = "/v1/studies/s1/trials:suggest", "/v1/studies/s1/trials/t1:complete"
LARGE = "x" * 10_000
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def kept(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The filled store with a study that has one trial, for all tests of this file."""
    study = Study("s1", "kept", {"batch": {"kind": "int", "low": 1, "high": 8}}, "o", "s", 0, 1)
    trial = Trial({"batch": 2}, TrialState.LEASED, None, "t1")
    home = shutil.copytree(filled, tmp_path_factory.mktemp("kept") / "store")
    with Store.open(Path(home)) as opened:
        with opened.catalog.write() as session:
            session.studies.add(study)
            session.leases.add(TrialRecord(trial, "s1", owner="a", lease_expires_ns=2**62))
        yield opened


@pytest.fixture(scope="module")
def kept_client(kept: Store) -> TestClient:
    return own_client(create_app(kept), base_url="http://localhost")


@pytest.fixture(scope="module")
def as_filled(kept: Store) -> str:
    return fingerprint(kept)


@pytest.fixture
def client(kept: Store, kept_client: TestClient, as_filled: str) -> Iterator[TestClient]:
    """A client of the store, which must still be as it was filled after the test."""
    yield kept_client
    assert fingerprint(kept) == as_filled


def fingerprint(store: Store) -> str:
    with store.catalog.read() as session:
        rows = [session.runs.find(limit=500), list(store.jobs.all()), session.studies.all()]
        trials = [session.leases.records(study.study_id) for study in session.studies.all()]
        files = [(str(path), path.read_bytes()) for path in sorted(store.home.joinpath("lake").rglob("*.parquet"))]
        return hashlib.sha256(repr((rows, trials, session.ingested(), files)).encode()).hexdigest()


@pytest.mark.parametrize(
    ("url", "detail"),
    [
        ("/v1/runs?limit=0", "query.limit: Input should be greater than or equal to 1"),
        ("/v1/runs?limit=-1", "query.limit"),
        ("/v1/runs?limit=501", "limit: 501 is too large: expected at most 500 rows as json"),
        ("/v1/runs?limit=1e3", "query.limit"),
        ("/v1/runs?limit=" + "9" * 5000, "query.limit"),
        ("/v1/runs?state=happy", "query.state"),
        ("/v1/runs?workload=", "query.workload"),
        ("/v1/runs?workload=a%00b", "query.workload"),
        (f"/v1/runs?workload={LARGE}", "query.workload"),
        (
            "/v1/runs?page=2",
            "'page' is unknown: expected account, cursor, fields, format, id_end, job_id, limit, node, since, sort",
        ),
        ("/v1/runs?limit=1&limit=2", "'limit' is given twice"),
        ("/v1/runs/r0?verbose=1", "'verbose' is unknown: this resource has none"),
        ("/v1/runs?cursor=nonsense", "cursor 'nonsense'"),
        ("/v1/runs?cursor=WzEsMl0", "cursor 'WzEsMl0'"),  # [1,2]
        ("/v1/runs?cursor=e30", "cursor 'e30'"),  # {}
        ("/v1/runs?cursor=W251bGwsICJ4Il0", "cursor"),  # [null, "x"]
        ("/v1/runs?cursor=WzEsICJcdTAwMDAiXQ", "cursor"),  # [1, "\0"]
        ("/v1/runs?cursor=WzEsICJcdWQ4MDAiXQ", "cursor"),  # [1, half a character]
        ("/v1/runs?cursor=WzEwMDAwMDAwMDAwMDAwMDAwMDAwMDAsICJ4Il0", "cursor"),  # a number beyond 64 bits
        ("/v1/runs?cursor=%F0%9F%A6%84", "cursor"),
        ("/v1/jobs?cursor=WzEsICJyMCJd", "cursor"),  # one of runs
        (f"/v1/runs/{LARGE}", "path.run_id"),
        ("/v1/runs/a%00b", "path.run_id"),
        ("/v1/runs/r0/steps?rank=-1", "query.rank"),
        ("/v1/runs/r0/steps?rank=x", "query.rank"),
        ("/v1/runs/r0/steps?rank=99999999999999999999", "query.rank"),
        ("/v1/runs/r0/remaining?total_steps=0", "query.total_steps"),
        ("/v1/runs/r0/remaining?total_steps=7", "total_steps 7: expected 8, as many as are done"),
        ("/v1/runs/r0/remaining?total_steps=10000001", "query.total_steps"),
        ("/v1/runs/r0/remaining?total_steps=1.5", "query.total_steps"),
        ("/v1/runs/r0/remaining?total_steps=" + "9" * 5000, "query.total_steps"),
        ("/v1/runs/r0/remaining?steps=9", "'steps' is unknown: expected total_steps"),
        ("/v1/runs/other/remaining?total_steps=9", "no step is recorded yet"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(client: TestClient, url: str, detail: str) -> None:
    answer = client.get(url)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert detail in answer.json()["detail"]
    assert len(answer.content) < 1500


@pytest.mark.parametrize(
    "path",
    [
        "/v1/runs/nope",
        "/v1/runs/..%2F..%2Fetc",
        "/v1/runs/%2e%2e",
        "/v1/runs/nope/steps",
        "/v1/runs/nope/explanation",
        "/v1/runs/nope/remaining",
        "/v1/runs/r0'%20or%201=1",
        "/v1/studies/nope",
        "/v1/studies/s1/trials/nope",
        "/v1/nope",
        "/problems/nope",
        "/v1/studies/nope/trials",
        "/v2/runs",
        "/v1/runs/",
        "/static/..%2f..%2fpyproject.toml",
        "/static/%2e%2e/x",
    ],
)
def test_what_is_not_there_is_not_found(client: TestClient, path: str) -> None:
    answer = client.get(path, follow_redirects=False)
    assert (answer.status_code, answer.json()["type"]) == (404, "/problems/not-found")


@pytest.mark.parametrize(
    ("url", "body", "detail"),
    [
        (PREDICTIONS, {}, "workload, system, world_size: missing, expected unless `like` names a stored run"),
        (PREDICTIONS, {"like": "a\nb"}, "body.like"),
        (PREDICTIONS, {**ASK, "world_size": 0}, "body.world_size"),
        (PREDICTIONS, {**ASK, "world_size": "2"}, "body.world_size: Input should be a valid integer"),
        (PREDICTIONS, {**ASK, "world_size": 10**30}, "body.world_size"),
        (PREDICTIONS, {**ASK, "world_size": True}, "body.world_size"),
        (PREDICTIONS, {**ASK, "color": "red"}, "body.color: Extra inputs are not permitted"),
        (PREDICTIONS, {**ASK, "workload": 5}, "body.workload"),
        (PREDICTIONS, {**ASK, "workload": "a\nb"}, "body.workload"),
        (PREDICTIONS, {**ASK, "workload": LARGE}, "body.workload"),
        (PREDICTIONS, {**ASK, "configuration": {"batch": None}}, "body.configuration.batch"),
        (PREDICTIONS, {**ASK, "configuration": {"batch": [1]}}, "body.configuration.batch"),
        (PREDICTIONS, {**ASK, "configuration": {"batch": 10**400}}, "body.configuration.batch"),
        (PREDICTIONS, {**ASK, "configuration": {str(n): n for n in range(300)}}, "body.configuration"),
        (PREDICTIONS, {**ASK, "world_size": 10_000_001}, "body.world_size"),
        (PREDICTIONS, {**ASK, "system": ""}, "body.system"),
        (PREDICTIONS, {**ASK, "node_count": 0}, "body.node_count"),
        (PREDICTIONS, {**ASK, "node_count": 3}, "node_count 3: expected 1 to the 2 ranks"),
        (PREDICTIONS, {**ASK, "outcome": "joy"}, "body.outcome"),
        (PREDICTIONS, {**ASK, "outcome": ["run_seconds"]}, "body.outcome"),
        (PREDICTIONS, {**ASK, "outcome": "job_seconds"}, "no earlier run has job_seconds"),
        (PREDICTIONS, {**ASK, "limit_seconds": 0}, "body.limit_seconds"),
        (PREDICTIONS, {**ASK, "limit_seconds": "60"}, "body.limit_seconds"),
        (PREDICTIONS, {**ASK, "workload": "n\u0430nogpt"}, "did you mean nanogpt?"),  # a Cyrillic letter
        (PREDICTIONS, {**ASK, "configuration": {"tp": 3}}, "do not divide 2 ranks"),
        (PREDICTIONS, {**ASK, "configuration": {"tp": 2**62}}, "do not divide 2 ranks"),
        (PREDICTIONS, {**ASK, "configuration": {"tp": "two"}}, "expected a whole number from 1 on"),
        (BATCH, ASK, "body.world_size: Input should be a valid list"),
        (BATCH, {**MANY, "world_size": []}, "body.world_size"),
        (BATCH, {**MANY, "world_size": [2, 0]}, "body.world_size.1"),
        (BATCH, {**MANY, "world_size": [1] * 10_001}, "body.world_size"),
        (BATCH, {**MANY, "configuration": {"batch": []}}, "configuration batch has 0 values, expected 2"),
        (BATCH, {**MANY, "configuration": {"batch": [8, None]}}, "body.configuration.batch"),
        (BATCH, {**MANY, "configuration": {"batch": [8, [8]]}}, "body.configuration.batch"),
        (BATCH, {**MANY, "configuration": {"tp": [1, 3]}}, "do not divide 4 ranks"),
        (BATCH, {**MANY, "workload": "nanogtp"}, "did you mean nanogpt?"),
        (BATCH, {**MANY, "limit_seconds": 3}, "body.limit_seconds: Extra inputs are not permitted"),
        (WALLTIME, {}, "workload, system, world_size: missing"),
        (WALLTIME, {**ASK, "confidence": 0.49}, "body.confidence"),
        (WALLTIME, {**ASK, "confidence": 0.995}, "confidence 0.995: expected 0.5 to 0.99"),
        (WALLTIME, {**ASK, "confidence": None}, "body.confidence"),
        (WALLTIME, {**ASK, "startup_seconds": -1}, "body.startup_seconds"),
        (WALLTIME, {**ASK, "startup_seconds": 1e15}, "Slurm takes fewer than"),
        (WALLTIME, {**ASK, "limit_seconds": 60}, "body.limit_seconds: Extra inputs are not permitted"),
        (SCALING, ASK, "body.node_counts: Field required"),
        (SCALING, {**SCALES, "node_counts": [2, 1]}, "expected some, rising"),
        (SCALING, {**SCALES, "node_counts": list(range(1, 66))}, "body.node_counts"),
        (SCALING, {**SCALES, "node_counts": [1, 2.5]}, "body.node_counts.1"),
        (SCALING, {**SCALES, "node_counts": [10_000_000], "ranks_per_node": 8}, "expected 1 to 10000000"),
        (SCALING, {**SCALES, "ranks_per_node": 0}, "body.ranks_per_node"),
        (SCALING, {**SCALES, "deadline_seconds": 0}, "body.deadline_seconds"),
        (SCALING, {**SCALES, "now": 0}, "body.now"),
        (SCALING, {**SCALES, "node_watts": -1}, "body.node_watts"),
        (SCALING, {**SCALES, "per_node_hour": "2"}, "body.per_node_hour"),
        (SCALING, {**SCALES, "carbon_grams_per_kilowatt_hour": -1}, "body.carbon_grams_per_kilowatt_hour"),
        (PREDICTIONS, [ASK], "body"),
        (PREDICTIONS, "text", "body"),
        (PREDICTIONS, None, "body"),
        (STUDIES, {**STUDY, "name": ""}, "body.name"),
        (STUDIES, {**STUDY, "name": LARGE}, "body.name"),
        (STUDIES, {**STUDY, "space": {}}, "body.space"),
        (STUDIES, {**STUDY, "space": {"a": {"kind": "whole"}}}, "parameter a: kind is 'whole'"),
        (STUDIES, {**STUDY, "space": {"a": {"kind": "int", "low": 5, "high": 1}}}, "expected low <= high"),
        (STUDIES, {**STUDY, "space": {"a": {"kind": "int", "low": 1, "high": 10**300}}}, "body.space.a.high"),
        (STUDIES, {**STUDY, "space": {"a": {"kind": "float", "low": -1e308, "high": 1e308}}}, "body.space.a.low"),
        (STUDIES, {**STUDY, "space": {"a": {"kind": "boolean", "step": 1}}}, "has no field 'step', expected kind"),
        (STUDIES, {**STUDY, "space": {"a": {"kind": "ordinal", "values": []}}}, "parameter a: values is empty"),
        (STUDIES, {**STUDY, "seed": -1}, "body.seed"),
        (STUDIES, {**STUDY, "seed": 2**31}, "body.seed"),
        (SUGGEST, {}, "body.owner: Field required"),
        (SUGGEST, {"owner": "b", "count": 0}, "body.count"),
        (SUGGEST, {"owner": "b", "count": 101}, "body.count"),
        (SUGGEST, {"owner": "b", "count": 1.5}, "body.count"),
        (SUGGEST, {"owner": "b", "lease_seconds": 0}, "body.lease_seconds"),
        (SUGGEST, {"owner": "b", "lease_seconds": 1e12}, "body.lease_seconds"),
        (COMPLETE, {"objective": "fast"}, "body.objective: Input should be a valid number"),
        (COMPLETE, {"objective": None}, "body.objective"),
        (COMPLETE, {"objective": 10**400}, "body.objective"),
        (COMPLETE, {"objective": 1.0, "run_id": "r" * 65}, "body.run_id"),
        (COMPLETE, {"objective": 1.0, "state": "done"}, "body.state: Extra inputs are not permitted"),
        ("/v1/studies/s1/trials/t1:fail", {"reason": ""}, "body.reason"),
        ("/v1/studies/s1/trials/t1:fail", {"reason": "x", "state": "done"}, "body.state"),
        ("/v1/studies/s1/trials/t1:heartbeat", {}, "body.owner"),
    ],
)
def test_a_body_that_makes_no_sense_is_refused(client: TestClient, url: str, body: object, detail: str) -> None:
    answer = client.post(url, json=body)
    assert (answer.status_code, detail in answer.json()["detail"]) == (422, True), answer.text
    assert len(answer.content) < 3000


@pytest.mark.parametrize(
    ("content", "status", "detail"),
    [
        (b"{", 400, "expected JSON in UTF-8"),
        (b"\xff\xfe{}", 400, "expected JSON in UTF-8"),
        (b'{"objective": NaN}', 400, "NaN is no JSON number"),
        (b'{"objective": -Infinity}', 400, "-Infinity is no JSON number"),
        (b'{"objective": 1e999}', 400, "1e999 is too large"),
        (b'{"objective": ' + b"9" * 5000 + b"}", 400, "expected JSON"),
        (b'{"objective": 1, "owner": "a\\u0000"}', 400, "holds a NUL or half a character"),
        (b'{"objective": 1, "\\ud800": 1}', 400, "holds a NUL or half a character"),
        (b"[" * 100_000, 400, "nested deeper than 32 levels"),
        (b'{"a":' * 40 + b"1" + b"}" * 40, 400, "nested deeper than 32 levels"),
        (b'{"objective": "' + b"x" * 1_100_000 + b'"}', 413, "at most 1048576 bytes"),
        (b"", 422, "body: Field required"),
    ],
)
def test_bytes_that_are_no_plain_json_are_refused(client: TestClient, content: bytes, status: int, detail: str) -> None:
    answer = client.post(COMPLETE, content=content, headers=JSON)
    assert (answer.status_code, detail in answer.json()["detail"]) == (status, True), answer.text
    assert len(answer.content) < 1000


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "application/xml", ""])
def test_only_json_is_taken(client: TestClient, content_type: str) -> None:
    answer = client.post(COMPLETE, content=b'{"objective": 1}', headers={"content-type": content_type})
    assert (answer.status_code, answer.json()["type"]) == (415, "/problems/unsupported-media-type")
    assert "expected application/json" in answer.json()["detail"]


@pytest.mark.parametrize("key", ["", "a b", "ü", "x" * 256])
def test_a_key_that_is_none_is_refused(client: TestClient, key: str) -> None:
    answer = client.post(SUGGEST, json={"owner": "b"}, headers={"Idempotency-Key": key.encode()})  # type: ignore[dict-item]
    assert (answer.status_code, "header.idempotency-key" in answer.json()["detail"].lower()) == (422, True)


def test_a_method_that_is_not_there_names_those_that_are(client: TestClient) -> None:
    answer = client.delete("/v1/runs/r0")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    assert answer.json()["type"] == "/problems/method-not-allowed"


def test_a_refused_value_is_shown_but_never_at_length(client: TestClient) -> None:
    [error] = client.get(f"/v1/runs?workload={LARGE}").json()["errors"]
    assert error["field"] == "query.workload"
    assert error["value"].startswith("'xxx")
    assert len(error["value"]) <= 101


def test_a_damaged_manifest_is_a_500_that_tells_nothing_private(store: Store, tmp_path: Path) -> None:
    [part] = store.home.glob("lake/set=step/*/part-*.parquet")
    compacted = part.with_name("part-c1_2_0123456789abcdef.parquet")
    compacted.write_bytes(part.read_bytes())
    compacted.with_name(f"_held-{compacted.stem}.json").write_text("torn")
    client = own_client(create_app(store), base_url="http://localhost", raise_server_exceptions=False)
    answer = client.get("/v1/runs/r0/steps")
    assert answer.status_code == 500
    assert set(answer.json()) == {"type", "title", "status", "detail", "reference"}
    assert str(tmp_path) not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"

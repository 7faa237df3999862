"""Own runs and studies: sharing, exporting, deleting them, sending more; and the audit trail."""

import io
import json
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient
from tests.api.segments import HEAT, headers_of, segment
from tests.api.two_users import ANN, BOB, RANKS, SCOPES, STEPS, client_of, fill

from crosswind.api.settings import ServerSettings
from crosswind.data.catalog.audit import DAY_NS
from crosswind.data.lake.compaction import compact
from crosswind.data.schema.access import OWNER, Principal, PrincipalKind, Role, this_person
from crosswind.data.schema.job import Job
from crosswind.data.schema.metric import MetricSet
from crosswind.data.schema.part import Part
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.run_owners import settle_owners
from crosswind.data.store.store import Store
from crosswind.ingest.spool.spool import SpoolWriter, sealed_segments

SUPPORT = Principal(PrincipalKind.PERSON, "sue", Role.SUPPORT, SCOPES, user="sue")
JOB = Principal(PrincipalKind.JOB, "ann-job9", Role.USER, SCOPES, user="ann", system="lab")
AGENT = Principal(PrincipalKind.AGENT, "n1", Role.USER, SCOPES)
BATCHES = "/v1/ingest/batches"
Record = tuple[str, Mapping[str, object]]
RECORD = {"run_id": "new1", "workload": "gpt", "system": "lab", "state": "running"}


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.thorough)])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    url = None if request.param == "sqlite" else request.getfixturevalue("lasting_postgres_url")
    with Store.open(tmp_path_factory.mktemp("own") / "store", database=url) as opened:
        fill(opened)
        yield opened


@pytest.fixture
def ask(store: Store) -> Callable[[Principal], TestClient]:
    return lambda principal: client_of(store, principal)


Ask = Callable[[Principal], TestClient]


def test_a_run_is_seen_by_others_for_as_long_as_it_is_shared(ask: Ask) -> None:
    ann, bob = ask(ANN), ask(BOB)
    assert bob.get("/v1/runs/ann-run0").status_code == 404
    assert ann.post("/v1/runs/ann-run0:share", json={}).json() == {"shared": True}
    assert bob.get("/v1/runs/ann-run0").json()["shared"] is True
    assert "ann-run0" in [run["run_id"] for run in bob.get("/v1/runs?limit=100").json()["runs"]]
    assert len(bob.get("/v1/runs/ann-run0/steps").json()["steps"]) == STEPS * RANKS
    for act in ("share", "delete"):
        refusal = bob.post(f"/v1/runs/ann-run0:{act}", json={"shared": False} if act == "share" else None)
        assert refusal.status_code == 403, refusal.text
    assert ann.post("/v1/runs/ann-run0:share", json={"shared": False}).json() == {"shared": False}
    assert bob.get("/v1/runs/ann-run0").status_code == 404


def test_everybody_takes_part_in_a_shared_study_and_its_owner_alone_ends_it(ask: Ask) -> None:
    ann, bob = ask(ANN), ask(BOB)
    asked = {"owner": "host", "count": 1}
    assert bob.post("/v1/studies/ann-study/trials:suggest", json=asked).status_code == 404
    assert ann.post("/v1/studies/ann-study:share").json() == {"shared": True}
    [trial] = bob.post("/v1/studies/ann-study/trials:suggest", json=asked).json()["trials"]
    done = bob.post(f"/v1/studies/ann-study/trials/{trial['trial_id']}:complete", json={"objective": 1.0})
    assert done.json()["state"] == "done"
    bodies = {"rename": {"name": "x"}, "extend": {"trials": 1}}
    for act in ("delete", "rename", "extend", "pause", "resume", "stop", "share"):
        assert bob.post(f"/v1/studies/ann-study:{act}", json=bodies.get(act, {})).status_code == 403, act
    ann.post("/v1/studies/ann-study:share", json={"shared": False})
    assert bob.get("/v1/studies/ann-study").status_code == 404


def test_support_sees_all_and_changes_nothing_of_others(ask: Ask) -> None:
    support = ask(SUPPORT)
    assert support.get("/v1/runs/ann-run1").status_code == 200
    assert support.post("/v1/runs/ann-run1:delete").status_code == 403
    assert support.post("/v1/studies/ann-study:delete", json={}).status_code == 403
    assert support.get("/v1/audit").status_code == 403


def test_an_export_holds_everything_that_is_stored_of_the_run(ask: Ask) -> None:
    with zipfile.ZipFile(io.BytesIO(ask(ANN).get("/v1/runs/ann-run0/export").content)) as packed:
        facts = json.loads(packed.read("run.json"))
        steps = pq.read_table(io.BytesIO(packed.read("step.parquet")))
    assert (facts["run"]["run_id"], facts["run"]["user"], len(facts["ranks"])) == ("ann-run0", "ann", RANKS)
    assert [place["gpus"] for place in facts["placements"]] == [["GPU-ann"]]
    assert len(steps) == STEPS * RANKS
    assert set(steps["run_id"].to_pylist()) == {"ann-run0"}


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_deleted_run_is_nowhere_any_more_and_the_others_are_as_before(
    ask: Ask, store: Store, is_compacted: bool
) -> None:
    run_id, ann = f"ann-run{2 + is_compacted}", ask(ANN)
    if is_compacted:
        compact(store.lake, settle_seconds=0)
    before = store.lake.frame("select count(*) as rows from step")["rows"][0]
    answer = ann.post(f"/v1/runs/{run_id}:delete").json()
    assert answer == {"deleted": run_id, "rows": STEPS * RANKS}
    assert store.lake.frame("select count(*) as rows from step")["rows"][0] == before - STEPS * RANKS
    assert f'"{run_id}"' not in ann.get("/v1/runs?limit=100").text + ann.get("/v1/studies/ann-study/trials").text
    assert ann.get(f"/v1/runs/{run_id}").status_code == 404
    assert ann.get("/v1/runs/ann-run4/report").json()["outcome"]["steps"] == STEPS - 3
    assert compact(store.lake, settle_seconds=0).problems == []
    assert store.lake.frame("select count(*) as rows from step where run_id = ?", [run_id])["rows"][0] == 0


def test_the_audit_keeps_who_did_what_and_forgets_it_after_its_time(ask: Ask, store: Store) -> None:
    for shared in (True, False):
        ask(ANN).post("/v1/runs/ann-run5:share", json={"shared": shared})
    pseudonym = store.lake.frame("select distinct \"user\" from job where name = 'ann-gpt'")["user"][0]
    owner = ask(OWNER)
    assert owner.post(f"/v1/pseudonyms/{pseudonym}:reveal").json() == {"pseudonym": pseudonym, "name": "ann"}
    assert owner.post("/v1/pseudonyms/u-nobody:reveal").status_code == 404
    assert ask(ANN).post(f"/v1/pseudonyms/{pseudonym}:reveal").status_code == 403
    entries = owner.get("/v1/audit?limit=20").json()
    every = [(entry["who"], entry["act"], entry["subject"]) for entry in entries["entries"]]
    acts = [act for act in every if act[1] != "create token"][:4]
    assert acts == [
        (this_person(), "reveal pseudonym", "u-nobody"),
        (this_person(), "reveal pseudonym", pseudonym),
        ("person ann", "unshare run", "ann-run5"),
        ("person ann", "share run", "ann-run5"),
    ]
    newest = owner.get("/v1/audit?limit=2").json()
    older = owner.get(newest["next_url"]).json()["entries"]
    assert older[0]["entry_id"] == entries["entries"][2]["entry_id"]
    assert {entry["who"] for entry in owner.get("/v1/audit?who=person ann").json()["entries"]} == {"person ann"}
    with store.catalog.write() as session:
        session.audit.forget(time.time_ns() + 364 * DAY_NS)
        assert session.audit.find({}, Part(1)) != []
        session.audit.forget(time.time_ns() + 366 * DAY_NS)
        assert session.audit.find({}, Part(1)) == []


def sent(
    client: TestClient, spool: Path, *records: tuple[str, Mapping[str, object]], rows_of: str | None = None
) -> Any:
    """Return the answer to a batch with these records, and a step of a run."""
    with SpoolWriter(spool, "n1") as writer:
        for name, record in records:
            writer.append_record(name, record)
        if rows_of:
            writer.append_rows(MetricSet("step", "", STEP.columns), {"ts_ns": [1], "run_id": [rows_of], "step": [99]})
    path = sealed_segments(spool)[-1]
    return client.post(BATCHES, content=path.read_bytes(), headers=headers_of(path))


def test_a_run_that_a_bound_token_sends_belongs_to_its_user(ask: Ask, store: Store, tmp_path: Path) -> None:
    assert sent(ask(ANN), tmp_path, ("run", RECORD), rows_of="new1").status_code == 201
    with store.catalog.read() as session:
        run = session.runs.get("new1")
    assert (run.user, run.account) == ("ann", "ann-lab")


@pytest.mark.parametrize(
    ("principal", "record", "rows_of", "why"),
    [
        (ANN, ("run", {**RECORD, "user": "bob"}), None, "its user is 'bob'"),
        (ANN, ("run", {**RECORD, "account": "bob-lab"}), None, "its account is 'bob-lab'"),
        (ANN, ("run", {**RECORD, "run_id": "bob-run0"}), None, "run bob-run0: it is another user's"),
        (ANN, ("run", RECORD), "bob-run1", "run bob-run1: it is another user's"),
        (
            ANN,
            ("rank", {"run_id": "bob-run0", "rank": 0, "node": "x", "pid": 1, "started_ns": 1}),
            None,
            "run bob-run0: it is another user's",
        ),
        (ANN, ("allocation", {"job_id": "7", "node": "x", "sampled_as": "x", "source": "prolog"}), None, "allocations"),
        (JOB, ("run", {**RECORD, "job_id": "ann-job8"}), None, "this token is of lab ann-job9"),
    ],
)
def test_a_bound_token_writes_nothing_of_another(
    ask: Ask,
    store: Store,
    tmp_path: Path,
    principal: Principal,
    record: Record,
    rows_of: str | None,
    why: str,
) -> None:
    with store.catalog.read() as session:
        before = session.ingested(), session.runs.get("bob-run0"), session.ranks.of("bob-run0")
    refusal = sent(ask(principal), tmp_path, record, rows_of=rows_of)
    assert refusal.status_code == 403, refusal.text
    assert why in refusal.json()["detail"]
    with store.catalog.read() as session:
        assert (session.ingested(), session.runs.get("bob-run0"), session.ranks.of("bob-run0")) == before


def test_an_agent_writes_for_all_and_sees_nothing(ask: Ask, tmp_path: Path) -> None:
    of_bob = {**RECORD, "run_id": "bob-new", "user": "bob"}
    place = {"job_id": "bob-job0", "system": "lab", "node": "x", "sampled_as": "x", "source": "prolog"}
    assert sent(ask(AGENT), tmp_path, ("run", of_bob), ("allocation", place)).status_code == 201
    assert ask(AGENT).get("/v1/runs").json()["runs"] == []


def samples(client: TestClient, spool: Path, node: str) -> Any:
    """Return the answer to a batch with one sample of this node."""
    with SpoolWriter(spool, "n1") as writer:
        writer.append_rows(HEAT, {"ts_ns": [1], "node": [node], "device": ["cpu0"], "heat_celsius": [1]})
    path = sealed_segments(spool)[-1]
    return client.post(BATCHES, content=path.read_bytes(), headers=headers_of(path))


def test_an_agent_of_a_system_stores_samples_of_its_own_node_alone(ask: Ask, store: Store, tmp_path: Path) -> None:
    agent = ask(replace(AGENT, system="lab"))
    assert samples(agent, tmp_path / "1", "n1").status_code == 201
    refused = samples(agent, tmp_path / "2", "n2")
    assert (refused.status_code, refused.json()["detail"]) == (403, "node n2: this token may store samples of n1")
    place = {"job_id": "7", "system": "lab", "node": "n2", "sampled_as": "n2", "source": "prolog"}
    assert sent(agent, tmp_path / "3", ("allocation", place)).status_code == 403
    assert samples(ask(AGENT), tmp_path / "4", "n2").status_code == 201
    assert agent.post("/v1/ingest/prometheus", content=b"").status_code == 403


def test_a_job_stores_samples_of_the_nodes_that_it_has(ask: Ask, store: Store, tmp_path: Path) -> None:
    job = ask(replace(JOB, name="ann-job77"))
    place = {"job_id": "ann-job77", "system": "lab", "node": "n7", "sampled_as": "n7", "source": "prolog"}
    assert sent(ask(AGENT), tmp_path / "1", ("allocation", place)).status_code == 201
    assert samples(job, tmp_path / "2", "n7").status_code == 201
    assert samples(job, tmp_path / "3", "n8").status_code == 403


def test_runs_are_of_the_user_whom_the_accounts_of_their_jobs_name(store: Store) -> None:
    with store.catalog.write() as session:
        session.runs.merge(Run("late", "gpt", "lab", RunState.COMPLETED, job_id="late-job"))
        session.runs.merge(Run("elsewhere", "gpt", "other", RunState.COMPLETED, job_id="late-job"))
    store.jobs.put(Job("lab", "late-job", user="ann", account="ann-lab", state="COMPLETED", started_ns=1))
    assert settle_owners(store) == 1
    with store.catalog.read() as session:
        owners = [(run.user, run.account) for run in map(session.runs.get, ("late", "elsewhere"))]
    assert owners == [("ann", "ann-lab"), (None, None)]


def test_a_user_sends_no_more_in_a_day_than_their_quota(store: Store, tmp_path: Path) -> None:
    first, second = (segment(tmp_path, first=5000 + number).read_bytes() for number in (0, 10))
    settings = ServerSettings(quota_bytes=len(first) + len(second) - 1)
    ann, agent = client_of(store, ANN, settings), client_of(store, AGENT, settings)
    paths = sealed_segments(tmp_path)
    answers = [ann.post(BATCHES, content=path.read_bytes(), headers=headers_of(path)) for path in paths]
    assert [answer.status_code for answer in answers] == [201, 429]
    assert 0 < int(answers[1].headers["retry-after"]) <= 86_400
    assert answers[1].json()["type"] == "/problems/quota"
    assert agent.post(BATCHES, content=second, headers=headers_of(paths[1])).status_code == 201

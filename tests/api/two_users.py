"""A store of two users, ann and bob, who run the same cohort on one system; everything of bob's has his mark."""

import os
import time
from collections.abc import Mapping
from dataclasses import replace

from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.api.access.issuing import bearer, issued, stranger
from tests.traced_run import store_traces

from crosswind.api.app import LOOPBACK, create_app
from crosswind.api.peer import PEER, Peer
from crosswind.api.settings import ServerSettings
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.access import OWNER, Principal, PrincipalKind, Role, Scope
from crosswind.data.schema.checks import Measured
from crosswind.data.schema.injection import Injected
from crosswind.data.schema.job import Job
from crosswind.data.schema.metric import with_node_keys
from crosswind.data.schema.occupancy import Allocation, Placement, Source
from crosswind.data.schema.report import Report
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.schema.saved_cohort import SavedCohort
from crosswind.data.schema.steps import STEP
from crosswind.data.schema.trial import Study, Trial, TrialRecord, TrialState
from crosswind.data.store.store import Store
from crosswind.ingest.agent.self_metrics import AGENT
from crosswind.ingest.agent.sweep import COLLECTOR
from crosswind.ingest.load.load import load_spool
from crosswind.ingest.preflight.record import Occasion, record

MARK = "bob"  # in every id, name, node, command and text of his
NUMBER = 73_819.0  # and in a configuration of his
SECOND = 1_000_000_000
NOW_NS = time.time_ns() // SECOND * SECOND
START_NS = NOW_NS - 3600 * SECOND
RUNS, STEPS, RANKS = 24, 14, 2
COMMON = "common-node"  # of both, at the same time
COHORT: Mapping[str, int] = {"batch": 8}
SCOPES = frozenset(Scope) - {Scope.ADMIN}
SPACE = {"batch": {"kind": "int", "low": 1, "high": 64}}


def user_of(name: str) -> Principal:
    """Return a person without any special role."""
    return Principal(PrincipalKind.PERSON, name, Role.USER, SCOPES, user=name, accounts=frozenset({f"{name}-lab"}))


ANN, BOB = user_of("ann"), user_of(MARK)


def client_of(store: Store, principal: Principal, settings: ServerSettings = LOOPBACK) -> TestClient:
    """Return a client of an application over the store, for requests of this principal."""
    return asking_as(create_app(store, settings), principal)


def asking_as(app: FastAPI, principal: Principal) -> TestClient:
    """Return a client of an application for requests of this principal."""
    client = stranger(app, url="http://localhost:8000")
    if principal is OWNER:
        client.app_state[PEER] = Peer("127.0.0.1", os.geteuid())
    else:
        client.headers.update(bearer(issued(app.state.client.store, principal).secret))
    return client


def fill(store: Store) -> None:
    """Store the runs, jobs, places, samples, checks and studies of both."""
    for number, user in enumerate(("ann", MARK)):
        _fill(store, user, START_NS + number * SECOND)
    store.jobs.put(*(job(user, number) for user in ("ann", MARK) for number in range(RUNS)))


def _fill(store: Store, user: str, start_ns: int) -> None:
    with store.catalog.write() as session:
        for run in runs(user, start_ns):
            session.runs.merge(run)
            for rank in range(RANKS):
                session.ranks.merge(Rank(run.run_id, rank, f"{user}-node{rank}", 100 + rank, run.started_ns or 0))
        for number in range(RUNS):
            at = start_ns + number * 60 * SECOND
            place = (f"{user}-node0", f"{user}-node0.lab", Source.PROLOG, "lab")
            session.places.merge(Allocation(f"{user}-job{number}", *place, started_ns=at, ended_ns=at + 30 * SECOND))
        process = (f"{user}-node0", 100, 7, f"{user}-node0.lab", Source.PROLOG, "lab", f"{user}-job0")
        session.places.merge(Placement(*process, run_id=f"{user}-run0", rank=0, gpus=(f"GPU-{user}",)))
        session.injections.put(
            Injected(f"{user}-run0", "cpu_hog", 1.0, "x", f"{user}-node0", 0, start_ns, start_ns + 9)
        )
    run_ids = tuple(f"{user}-run{number}" for number in range(RUNS // 2))
    cohort = SavedCohort(f"{user}-cohort", f"{user}-selection", start_ns, run_ids, note=f"{user}-note")
    with store.catalog.seen_by(user_of(user).row_rule).write() as session:
        session.cohorts.add(cohort)
    store.lake.append(f"steps-{user}", to_table(STEP, step_columns(user, start_ns)))
    store_traces(store, f"{user}-run{RUNS - 1}", mark=user)
    _sample(store, user)
    _study(store, user, start_ns)


def runs(user: str, start_ns: int) -> list[Run]:
    """Return a user's runs: of the cohort of both, one of their own configuration, one of their own workload."""
    both = [run_of(user, number, start_ns) for number in range(RUNS)]
    own = {"batch": NUMBER if user == MARK else 16.0, f"{user}_flag": f"{user}-value"}
    return [
        *both,
        replace(both[0], run_id=f"{user}-run{RUNS}", configuration=own, started_ns=start_ns - 99 * SECOND),
        replace(both[0], run_id=f"{user}-run{RUNS + 1}", workload=f"{user}-work", started_ns=start_ns - 199 * SECOND),
    ]


def run_of(user: str, number: int, start_ns: int) -> Run:
    """Return one run of the cohort."""
    started = start_ns + number * 60 * SECOND
    return Run(
        f"{user}-run{number}",
        "gpt",
        "lab",
        RunState.COMPLETED,
        world_size=RANKS,
        configuration=COHORT,
        job_id=f"{user}-job{number}",
        nodes=(f"{user}-node0", f"{user}-node1", COMMON),
        started_ns=started,
        ended_ns=started + 30 * SECOND,
        exit_code=0,
        command=("python", f"{user}-train.py"),
        software={"torch": f"2.0+{user}"},
        tags={"note": f"{user}-note"},
        user=user,
        account=f"{user}-lab",
    )


def job(user: str, number: int) -> Job:
    """Return the job of one run of the cohort."""
    started = START_NS + number * 60 * SECOND
    return Job(
        "lab",
        f"{user}-job{number}",
        name=f"{user}-gpt",
        user=user,
        account=f"{user}-lab",
        state="COMPLETED",
        nodes=(f"{user}-node0", f"{user}-node1", COMMON),
        node_count=3,
        started_ns=started,
        ended_ns=started + 40 * SECOND,
        fields={"Comment": f"{user}-comment"},
    )


def step_columns(user: str, start_ns: int) -> dict[str, list[int]]:
    """Return steps of the cohort's runs; rank 1 of ann's last one waits for its core, and the other for it."""
    rows = [_step(user, start_ns, n, step, rank) for n in range(RUNS) for step in range(STEPS) for rank in range(RANKS)]
    ids = [f"{user}-run{n}" for n in range(RUNS) for _ in range(STEPS * RANKS)]
    return {"run_id": ids, **{name: [row[name] for row in rows] for name in rows[0]}}  # type: ignore[dict-item]


def _step(user: str, start_ns: int, number: int, step: int, rank: int) -> dict[str, int]:
    slower = 30.0 if (user, number) == ("ann", RUNS - 1) else 0.0
    late, jitter = slower * rank, (step * 7 + number) % 5 * 0.2
    own, duration = 40 + jitter + late, 45 + jitter + slower
    milliseconds = {
        "duration_seconds": duration,
        "input_seconds": 2.0,
        "compute_seconds": own - 2.0,
        "comm_seconds": duration - own,
        "checkpoint_seconds": 0.0,
        "other_seconds": 0.0,
        "tail_seconds": 1.0,
        "cpu_user_seconds": own - late - 2.0,
        "cpu_system_seconds": 0.1,
        "run_queue_wait_seconds": 0.3 + late,
    }
    keys = {"ts_ns": start_ns + number * 60 * SECOND + step * SECOND, "rank": rank, "step": step}
    return {**keys, **{name: round(value * 1_000_000) for name, value in milliseconds.items()}}


def _sample(store: Store, user: str) -> None:
    """Store what the agents of the user's nodes say of themselves, and a check of both nodes."""
    nodes = [f"{user}-node0", f"{user}-node0.lab", f"{user}-node1"]
    keys = {"ts_ns": [NOW_NS - 60 * SECOND] * 3, "node": nodes}
    store.lake.append(f"agent-{user}", to_table(with_node_keys(AGENT), keys))
    down = {**keys, "device": [f"{user}-source"] * 3, "up": [0] * 3, "reason": [f"{user}-reason"] * 3}
    store.lake.append(f"collector-{user}", to_table(with_node_keys(COLLECTOR), down))
    for number in range(3):
        check = Occasion(f"{user}-check{number}", NOW_NS - number, "lab", f"{user}-job{number}")
        measured = (
            Measured(nodes[0], "gemm", 1.5e11, "cpu", method="torch", hardware="Fast 9000"),
            Measured(nodes[0], "bandwidth", 1e9, peer=nodes[2], method="gloo"),
        )
        record(store.home / "spool", check, measured)
    assert load_spool(store, store.home / "spool").problems == []


def _study(store: Store, user: str, start_ns: int) -> None:
    study = Study(f"{user}-study", f"{user}-search", SPACE, "step_p50_seconds", "s", 0, start_ns, workload="gpt")
    named = {"workload": "gpt", "system": "lab", "world_size": RANKS, "command": (f"{user}-train.py",)}
    catalog = store.catalog.seen_by(user_of(user).row_rule)
    with catalog.write() as session:
        session.studies.add(replace(study, **named))
        for number in range(3):
            trial = Trial({"batch": 2 + number}, TrialState.DONE, 0.1 + number, f"{user}-trial{number}")
            details = {"owner": f"{user}-host", "run_id": f"{user}-run{number}", "reason": f"{user}-reason"}
            session.leases.add(TrialRecord(trial, study.study_id, **details))
        session.reports.add(study.study_id, f"{user}-trial0", [Report(1, 0.5)])

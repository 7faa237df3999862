"""Every route, asked by every kind of principal."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.api.access.issuing import (
    ADMIN,
    AGENT,
    ANNA,
    BEN,
    EVERY_DAY,
    JOB,
    NOBODY,
    SERVICE,
    bearer,
    expired,
    issued,
    revoked,
    stranger,
)
from tests.needs import ROOT, needs
from tests.serving import answering

from crosswind.api.access.credentials import COOKIE
from crosswind.api.access.scopes import methods
from crosswind.api.app import create_app, routes_of
from crosswind.api.late_pages import page_routes
from crosswind.api.peer import PEER, Peer
from crosswind.data.schema.access import Principal, Role, Scope, TokenUse
from crosswind.data.store.store import Store

OPEN = """
GET /healthz
GET /problems/{name}
GET /static/{name}
GET /login
POST /login
GET /login/oidc
GET /login/oidc/callback
POST /logout
"""
OVER_ALL_ROWS = "GET /metrics"
READ = """
GET /
GET /overview.json
GET /overview.csv
GET /overview.html
GET /readyz
GET /openapi.json
GET /docs
GET /docs/examples/{name}
GET /runs
GET /runs.json
GET /runs.csv
GET /runs.html
GET /runs/{run_id}
GET /runs/{run_id}.json
GET /compare
GET /compare.json
GET /compare.csv
GET /compare.html
GET /predict
GET /predict.json
GET /predict.csv
GET /predict.html
GET /runs/{run_id}.csv
GET /runs/{run_id}.html
GET /runs/{run_id}/trace
GET /runs/{run_id}/trace.json
GET /runs/{run_id}/trace.csv
GET /runs/{run_id}/trace.html
GET /variability
GET /variability.json
GET /selection
GET /selection.json
GET /selection.csv
GET /selection.html
GET /variability.csv
GET /variability.html
GET /stragglers
GET /stragglers.json
GET /stragglers.csv
GET /stragglers.html
GET /regressions
GET /regressions.json
GET /regressions.csv
GET /regressions.html
GET /counters
GET /counters.json
GET /counters.csv
GET /counters.html
GET /interference
GET /interference.json
GET /interference.csv
GET /interference.html
GET /checks
GET /checks.json
GET /links
GET /links.json
GET /links.csv
GET /links.html
GET /energy
GET /energy.json
GET /energy.csv
GET /energy.html
GET /data
GET /data.json
GET /data.csv
GET /data.html
GET /checks.csv
GET /checks.html
GET /studies
GET /studies.json
GET /studies.csv
GET /studies.html
GET /models
GET /models.json
GET /models.csv
GET /models.html
GET /sql
GET /sql.json
GET /sql.csv
GET /sql.html
GET /v1/sql
POST /v1/sql
POST /v1/predictions
POST /v1/predictions:batch
POST /v1/walltime-advice
POST /v1/scaling-advice
GET /v1/runs
GET /v1/runs/{run_id}
GET /v1/runs/{run_id}/report
GET /v1/runs/{run_id}/steps
GET /v1/runs/{run_id}/comparison
GET /v1/runs/{run_id}/explanation
GET /v1/runs/{run_id}/waits
GET /v1/runs/{run_id}/remaining
GET /v1/runs/{run_id}/batch-shares
GET /v1/runs/{run_id}/stragglers
GET /v1/runs/{run_id}/replay
GET /v1/runs/{run_id}/trace
GET /v1/runs/{run_id}/trace/difference
GET /v1/runs/{run_id}/trace/events
GET /v1/runs/{run_id}/trace/perfetto
GET /v1/traces
GET /v1/run-outcomes
GET /v1/jobs
GET /v1/jobs/{job_id}
GET /v1/jobs/{job_id}/nodes
GET /v1/nodes
GET /v1/cohorts
GET /v1/cohorts/{cohort_id}
GET /v1/cohorts/{cohort_id}/runs
GET /v1/cohorts/{cohort_id}/comparison
GET /v1/nodes/{node}
GET /v1/nodes/{node}/history
GET /v1/systems
GET /v1/systems/{system}
GET /v1/metrics
GET /v1/series
GET /v1/series/points
GET /v1/weather
GET /v1/counters
GET /v1/interference
GET /v1/stragglers
GET /v1/regressions
GET /v1/checks
GET /v1/operations/{operation_id}
GET /v1/models
GET /v1/models/{name}
GET /v1/models/{name}/drift
GET /v1/models/{name}/versions/{version}
GET /v1/studies
GET /v1/studies:status
GET /v1/studies/{study_id}
GET /v1/studies/{study_id}/trials
GET /v1/studies/{study_id}/reports
GET /v1/studies/{study_id}/runs/{run_id}/disturbance
GET /v1/studies/{study_id}/trials/{trial_id}
GET /v1/runs/{run_id}/export
GET /v1/events
GET /v1/webhooks
GET /v1/webhooks/{webhook_id}
GET /v1/webhooks/{webhook_id}/deliveries
GET /v1/tokens
POST /v1/tokens
POST /v1/tokens:link
POST /v1/tokens/{token_id}:revoke
"""
INGEST = """
POST /v1/ingest/batches
POST /v1/ingest/prometheus
POST /v1/ingest/otlp/v1/metrics
POST /v1/tokens:job
"""
TUNE = """
POST /v1/studies
POST /v1/cohorts
POST /v1/cohorts/{cohort_id}:share
POST /v1/cohorts/{cohort_id}:delete
POST /v1/studies/{study_id}:extend
POST /v1/studies/{study_id}:pause
POST /v1/studies/{study_id}:resume
POST /v1/studies/{study_id}:stop
POST /v1/studies/{study_id}:rename
POST /v1/studies/{study_id}:delete
POST /v1/studies/{study_id}:share
POST /v1/runs/{run_id}:share
POST /v1/webhooks
POST /v1/webhooks/{webhook_id}:delete
POST /v1/webhooks/{webhook_id}:enable
POST /v1/webhooks/{webhook_id}:test
POST /v1/runs/{run_id}:delete
POST /v1/studies/{study_id}/trials:suggest
POST /v1/studies/{study_id}/trials:enqueue
POST /v1/studies/{study_id}/trials/{trial_id}:heartbeat
POST /v1/studies/{study_id}/trials/{trial_id}:report
POST /v1/studies/{study_id}/trials/{trial_id}:complete
POST /v1/studies/{study_id}/trials/{trial_id}:fail
POST /v1/studies/{study_id}/trials/{trial_id}:retry
POST /v1/studies/{study_id}/trials/{trial_id}:release
POST /v1/studies/{study_id}/trials/{trial_id}:define
POST /studies
"""
ADMIN_ALONE = """
POST /models
GET /status
GET /status.json
POST /v1/models/{name}/versions/{version}:promote
POST /v1/models/{name}:rollback
POST /v1/models/{name}:train
POST /v1/pseudonyms/{pseudonym}:reveal
GET /v1/audit
"""
ENTRIES: Mapping[str, Scope | None] = {
    route: scope
    for scope, lines in (
        (None, OPEN),
        (Scope.READ, OVER_ALL_ROWS),
        (Scope.READ, READ),
        (Scope.INGEST, INGEST),
        (Scope.TUNE, TUNE),
        (Scope.ADMIN, ADMIN_ALONE),
    )
    for route in lines.strip().splitlines()
}
PARTS = {"run_id": "none", "job_id": "none", "study_id": "none", "trial_id": "none", "operation_id": "none"}
PARTS |= {"node": "none", "system": "none", "cohort_id": "none", "webhook_id": "none"}
PARTS |= {"name": "forbidden", "version": "1", "token_id": "none", "pseudonym": "none"}
OF_FORBIDDEN_ACTS = {  # routes that also look at who asks, and at what for
    *("POST /v1/tokens", "POST /v1/tokens:link", "POST /v1/tokens:job"),
    *("POST /v1/ingest/prometheus", "POST /v1/ingest/otlp/v1/metrics"),
}


@dataclass(frozen=True)
class Asked:
    """A kind of principal: how it asks, and what it may do."""

    client: Callable[[FastAPI, Store], TestClient]
    principal: Principal | None = None  # None: nobody knows who it is

    def expects(self, route: str, scope: Scope | None) -> set[int]:
        """Return the refusals of access, of which one must come; none where the principal gets in."""
        if scope is None:
            return set()
        if self.principal is None:
            return {401}
        is_over_all = route == OVER_ALL_ROWS and not self.principal.row_rule.sees_all
        return set() if self.principal.allows(scope) and not is_over_all else {403}


def with_token(principal: Principal) -> Asked:
    return Asked(lambda app, store: stranger(app, bearer(issued(store, principal).secret)), principal)


def with_cookie(app: FastAPI, store: Store) -> TestClient:
    return stranger(app, {"Cookie": f"{COOKIE}={issued(store, ANNA, use=TokenUse.SESSION).secret}"})


def with_child_of_revoked(app: FastAPI, store: Store) -> TestClient:
    parent = issued(store, ANNA)
    child = issued(store, ANNA, parent_id=parent.token.token_id)
    revoked(store.catalog, parent)
    return stranger(app, bearer(child.secret))


def without(scope: Scope) -> Principal:
    return replace(ANNA, scopes=EVERY_DAY - {scope})


PRINCIPALS = {
    "none": Asked(lambda app, _: stranger(app)),
    "expired": Asked(lambda app, store: stranger(app, bearer(expired(store, ADMIN)))),
    "revoked": Asked(lambda app, store: stranger(app, bearer(revoked(store.catalog, issued(store, ADMIN))))),
    "made with a revoked one": Asked(with_child_of_revoked),
    "forged": Asked(lambda app, _: stranger(app, bearer("cw_" + "A" * 43))),
    "a link's": Asked(lambda app, store: stranger(app, bearer(issued(store, ADMIN, use=TokenUse.LINK).secret))),
    "a session's as bearer": Asked(
        lambda app, store: stranger(app, bearer(issued(store, ADMIN, use=TokenUse.SESSION).secret))
    ),
    "another user over loopback": Asked(lambda app, _: stranger(app, peer=Peer("127.0.0.1", NOBODY))),
    "root through a proxy": Asked(lambda app, _: stranger(app, {"Via": "1.1 portal"}, Peer("127.0.0.1", 0))),
    "user": with_token(replace(ANNA, scopes=EVERY_DAY)),
    "another user": with_token(replace(BEN, scopes=EVERY_DAY)),
    "session": Asked(with_cookie, ANNA),
    "job": with_token(Principal(JOB, "12_3", scopes=EVERY_DAY, system="lab")),
    "another job": with_token(Principal(JOB, "13", scopes=EVERY_DAY, system="lab")),
    "agent": with_token(Principal(AGENT, "n1", scopes=frozenset({Scope.INGEST}))),
    "support": with_token(Principal(SERVICE, "help", Role.SUPPORT)),
    "admin": with_token(ADMIN),
    **{f"without {scope}": with_token(without(scope)) for scope in sorted(EVERY_DAY)},
    "this user": Asked(lambda app, _: stranger(app, peer=Peer("127.0.0.1", os.geteuid())), ADMIN),
    "this user over the Unix socket": Asked(
        lambda app, _: stranger(app, peer=Peer(uid=os.geteuid(), is_unix=True)), ADMIN
    ),
}


@pytest.fixture(scope="module")
def app(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    home = Path(shutil.copytree(filled, tmp_path_factory.mktemp("matrix") / "store"))
    with Store.open(home) as store:
        yield create_app(store)


def path_of(route: str) -> str:
    return route.partition(" ")[2].format(**PARTS)


def test_every_route_has_an_entry(app: FastAPI) -> None:
    routes = {f"{method} {route.path}" for route in (*routes_of(app), *page_routes()) for method in methods(route)}
    assert routes - set(ENTRIES) == set()
    assert set(ENTRIES) - routes == set()


OTHERS = ("another user", "another job")  # may do what the first ones may


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] if name in OTHERS else []) for name in PRINCIPALS]
)
def test_every_route_answers_those_who_may_ask_it_and_nobody_else(app: FastAPI, name: str) -> None:
    asked = PRINCIPALS[name]
    client = asked.client(app, app.state.client.store)
    client.headers["Accept"] = "application/json"
    wrong = {}
    for number, (route, scope) in enumerate(ENTRIES.items()):
        peer = client.app_state[PEER]
        if peer.address is not None and peer.uid is None:  # from everywhere, as one place may not fail so often
            client.app_state[PEER] = Peer(f"192.0.{number // 250}.{number % 250}")
        answer = client.request(route.partition(" ")[0], path_of(route), **body_of(route))
        refusals = asked.expects(route, scope)
        is_right = answer.status_code in refusals if refusals else is_let_in(answer.status_code, route, asked)
        if not is_right:
            wrong[route] = answer.status_code, answer.text[:200]
    assert wrong == {}


def body_of(route: str) -> dict[str, object]:
    """Return a body that no route stores anything of; a form where a form is expected."""
    if route == "POST /login":
        return {"content": b"", "headers": {"Content-Type": "application/x-www-form-urlencoded"}}
    return {"json": {}} if route.startswith("POST") else {}


def is_let_in(status: int, route: str, asked: Asked) -> bool:
    is_of_others = status == 403 and route in OF_FORBIDDEN_ACTS and asked.principal is not None
    return status < 500 and status != 401 and (status != 403 or is_of_others)


@needs(ROOT, "acts as another user", unless=os.geteuid() == 0)
def test_a_process_of_another_user_gets_nothing_over_loopback(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store"):
        pass
    with answering(tmp_path / "store") as url:
        lines = []
        for route in ENTRIES:
            method, path = route.partition(" ")[0], path_of(route)
            lines += [f'url = "{url.rstrip("/")}{path}"', f"request = {method}", 'output = "/dev/null"']
            lines += ['write-out = "%{http_code}\\n"', "next"]
        command = ["/usr/bin/curl", "--silent", "--config", "-"]
        text = "\n".join(lines[:-1])
        said = subprocess.run(
            command, input=text, user="nobody", cwd="/", capture_output=True, text=True, check=True, timeout=60
        )
    statuses = dict(zip(ENTRIES, map(int, said.stdout.split()), strict=True))
    assert {route for route, status in statuses.items() if status != 401} == set(OPEN.strip().splitlines())

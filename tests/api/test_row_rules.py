"""The rows of ann: no answer, page, figure, export or error to her says anything of bob's, and counts are of hers."""

import re
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.api.two_users import ANN, COHORT, COMMON, MARK, NUMBER, RANKS, RUNS, SPACE, asking_as, fill

from crosswind.api.access.scopes import methods
from crosswind.api.app import create_app, routes_of
from crosswind.api.late_pages import page_routes
from crosswind.dashboards.pages.overview.parts import PARTS
from crosswind.data.schema.access import OWNER
from crosswind.data.schema.run import Run, RunState, cohort_digest
from crosswind.data.store.store import Store

NOBODY = "zoe"  # whose things are nowhere: bob's must look the same
RUN, JOB, STUDY, TRIAL = "WHO-run23", "WHO-job23", "WHO-study", "WHO-trial0"
COMPARED = ("", f"?a={RUN}", f"?a=ann-run0&b={RUN}", "?a=ann-run0", "?run=ann-run0&run=ann-run1")
OF_RUN = ("report", "steps", "explanation", "waits", "remaining", "batch-shares", "stragglers", "replay", "trace")
QUESTION: Mapping[str, Any] = {"workload": "gpt", "system": "lab", "configuration": COHORT, "world_size": RANKS}
DIGEST = cohort_digest(Run("any", "gpt", "lab", RunState.COMPLETED, RANKS, COHORT))
STRANGE: Mapping[str, Any] = {**QUESTION, "configuration": {"batch": 3, "flag": 1}}
UNKNOWN: Mapping[str, Any] = {**QUESTION, "workload": "WHO-work?"}
NAMELESS: Mapping[str, Any] = {**QUESTION, "workload": "qqq"}
LIKE: Mapping[str, Any] = {"like": RUN}
PAGES = (
    "runs",
    "predict",
    "variability",
    "selection",
    "stragglers",
    "regressions",
    "counters",
    "interference",
    "checks",
    "links",
    "energy",
    "data",
    "studies",
    "models",
    "sql",
)
LISTS = ("run-outcomes", "nodes", "jobs", "weather", "counters", "interference", "stragglers", "regressions", "checks")
TABLES = ["format=csv", "format=arrow"]
OF_RUNS = ("runs", "ranks", "verdicts", "step", "progress", "collective")
SQL_TABLES = (*OF_RUNS, "studies", "trials", "reports", "jobs", "preflight", "agent", "collector", "columns")
SQL_QUERIES = (
    f"select {', '.join(f'(select list(t) from {table} t)' for table in SQL_TABLES)}",
    "select * from step join runs using (run_id) where run_id = 'WHO-run3'",
    "select (select list(s) from step s where run_id in ('WHO-run3', 'x')), "
    "(select list(a) from agent a where node = 'WHO-node0')",
    "select count(*) from step where run_id not in (select run_id from runs)",
)
QUERIES = {
    "/sql": [f"query={quote(SQL_QUERIES[1])}"],
    **{path: ["system=lab", "workload=WHO-work&period=365d"] for path in ("/", "/overview")},
    "/runs": ["q=WHO", "workload=WHO-work", "q=WHO-note"],
    "/predict": ["like=WHO-run23", "workload=WHO-work&ranks=2", "like=WHO-run23&steps=9", "script=srun+WHO-work"],
    "/variability": ["workload=gpt"],
    "/energy": ["workload=WHO-work"],
    "/selection": [f"cohort={DIGEST}", f"cohort={DIGEST}&runs=WHO-run23,WHO-run22,WHO-run21", "cohort=WHO-cohort"],
    "/checks": ["system=lab", "check=WHO-check0"],
    "/studies": ["study=WHO-search"],
    "/v1/runs": ["id_end=WHO-run1", "job_id=WHO-job1", "workload=WHO-work", "limit=3", "user=WHO", *TABLES],
    "/v1/run-outcomes": ["limit=3", "account=WHO-lab&since=0", *TABLES],
    "/v1/jobs": ["user=WHO", "name=WHO-gpt", "limit=2", "account=WHO-lab", "job_id=WHO-job1", *TABLES],
    "/v1/nodes": ["since_seconds=4000000000", *TABLES],
    "/v1/studies": ["sort=name", *TABLES],
    **{f"/v1/studies/{{study_id}}/{part}": TABLES for part in ("trials", "reports")},
    **{f"/v1/{noun}": TABLES for noun in ("studies:status", "audit", "tokens")},
    "/v1/checks": ["system=lab", "system=lab&sort=-node&format=csv"],
    "/v1/weather": ["system=lab&workload=gpt", "system=lab&workload=WHO-work"],
    **{f"/v1/{noun}": ["system=lab", "workload=WHO-work"] for noun in ("counters", "interference", "stragglers")},
}
FORM = re.compile(r"\.(json|csv|html)$")
ALIKE = re.compile(rf"{FORM.pattern}|^/v1/series/points$")  # of what another address holds
TIMES = "from=2026-01-01&to=2100-01-01&step=365d"
OF_WHOM = ("node=WHO-node0", "run=WHO-run23", "job=WHO-job23", "job=WHO-job23&system=lab")
ASKED: Mapping[str, list[str]] = {  # the addresses by which every route is tried, WHO for whom it is about
    **{f"/{page}{form}": [f"/{page}{form}"] for page in PAGES for form in ("", ".json", ".csv", ".html")},
    **{f"/compare{form}": [f"/compare{form}{query}" for query in COMPARED] for form in ("", ".json", ".csv", ".html")},
    **{f"/runs/{{run_id}}{form}": [f"/runs/{RUN}{form}"] for form in ("", ".json", ".csv", ".html")},
    **{f"/runs/{{run_id}}/trace{form}": [f"/runs/{RUN}/trace{form}"] for form in ("", ".json", ".csv", ".html")},
    **{f"/v1/{noun}": [f"/v1/{noun}"] for noun in LISTS},
    **{f"/v1/runs/{{run_id}}/{part}": [f"/v1/runs/{RUN}/{part}"] for part in OF_RUN},
    **{
        path: [
            f"{path}?metric=collector.up&{TIMES}",
            *(f"{path}?metric=collector.up&{TIMES}&{whom}" for whom in OF_WHOM),
            *(f"{path}?metric=step.duration_seconds&{TIMES}&{whom}" for whom in OF_WHOM[1:]),
        ]
        for path in ("/v1/series", "/v1/series/points")
    },
    "/v1/metrics": ["/v1/metrics"],
    "/v1/cohorts": ["/v1/cohorts"],
    "/v1/cohorts/{cohort_id}": ["/v1/cohorts/WHO-cohort"],
    **{f"/v1/cohorts/{{cohort_id}}/{part}": [f"/v1/cohorts/WHO-cohort/{part}"] for part in ("runs", "comparison")},
    "/v1/systems": ["/v1/systems"],
    "/v1/systems/{system}": ["/v1/systems/lab"],
    "/v1/nodes/{node}": ["/v1/nodes/WHO-node0", "/v1/nodes/WHO-node0.lab", f"/v1/nodes/{COMMON}"],
    "/v1/nodes/{node}/history": [
        f"/v1/nodes/WHO-node0/history?{TIMES.partition('&step')[0]}",
        f"/v1/nodes/{COMMON}/history?{TIMES.partition('&step')[0]}",
    ],
    "/v1/runs": ["/v1/runs"],
    "/v1/runs/{run_id}": [f"/v1/runs/{RUN}"],
    "/v1/runs/{run_id}/trace/events": [f"/v1/runs/{RUN}/trace/events", f"/v1/runs/{RUN}/trace/events?format=csv"],
    "/v1/runs/{run_id}/trace/difference": [f"/v1/runs/ann-run0/trace/difference?with={RUN}"],
    "/v1/runs/{run_id}/trace/perfetto": [f"/v1/runs/{RUN}/trace/perfetto"],
    "/v1/traces": ["/v1/traces", "/v1/traces?format=csv"],
    "/v1/runs/{run_id}/remaining": [f"/v1/runs/{RUN}/remaining?total_steps=20"],
    "/v1/runs/{run_id}/batch-shares": [f"/v1/runs/{RUN}/batch-shares?batch=64"],
    "/v1/runs/{run_id}/comparison": [f"/v1/runs/ann-run0/comparison?with={RUN}"],
    "/v1/runs/{run_id}/export": [f"/v1/runs/{RUN}/export"],
    **{
        path: [path]
        for path in (
            "/v1/audit",
            "/v1/tokens",
            "/login",
            "/login/oidc",
            "/login/oidc/callback",
            "/status",
            "/status.json",
        )
    },
    "/v1/sql": ["/v1/sql"],
    "/v1/events": ["/v1/events?limit=500", "/v1/events?run_id=WHO-run23", "/v1/events?study_id=WHO-study"],
    "/v1/webhooks": ["/v1/webhooks"],
    **{f"/v1/webhooks/{{webhook_id}}{part}": [f"/v1/webhooks/WHO{part}"] for part in ("", "/deliveries")},
    "/v1/jobs/{job_id}": [f"/v1/jobs/{JOB}", f"/v1/jobs/{JOB}?system=lab"],
    "/v1/jobs/{job_id}/nodes": [f"/v1/jobs/{JOB}/nodes"],
    "/v1/studies": ["/v1/studies"],
    "/v1/studies:status": ["/v1/studies:status"],
    "/v1/studies/{study_id}": [f"/v1/studies/{STUDY}", "/v1/studies/WHO-search"],
    **{f"/v1/studies/{{study_id}}/{part}": [f"/v1/studies/{STUDY}/{part}"] for part in ("trials", "reports")},
    "/v1/studies/{study_id}/trials/{trial_id}": [f"/v1/studies/{STUDY}/trials/{TRIAL}"],
    "/v1/studies/{study_id}/runs/{run_id}/disturbance": [f"/v1/studies/{STUDY}/runs/WHO-run1/disturbance"],
    "/v1/models": ["/v1/models"],
    "/v1/models/{name}": ["/v1/models/run-seconds"],
    "/v1/models/{name}/drift": ["/v1/models/run-seconds/drift"],
    "/v1/models/{name}/versions/{version}": ["/v1/models/run-seconds/versions/1"],
    "/v1/operations/{operation_id}": ["/v1/operations/none"],
    **{
        path: [f"{path}?part={part}" for part in ("all", *PARTS)]
        for path in ("/", "/overview.json", "/overview.csv", "/overview.html")
    },
    **{path: [path] for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/static/crosswind.css")},
    "/problems/{name}": ["/problems/not-found"],
    **{path: [path.replace("{name}", "write-request.snappy")] for path in ("/docs", "/docs/examples/{name}")},
}
POSTED: Mapping[str, list[tuple[str, Mapping[str, Any]]]] = {
    "/v1/predictions": [("/v1/predictions", body) for body in (QUESTION, STRANGE, UNKNOWN, NAMELESS, LIKE)],
    "/v1/predictions:batch": [
        ("/v1/predictions:batch", {**body, "world_size": [RANKS]}) for body in (QUESTION, STRANGE, UNKNOWN, NAMELESS)
    ],
    "/v1/walltime-advice": [("/v1/walltime-advice", body) for body in (QUESTION, STRANGE, UNKNOWN, NAMELESS, LIKE)],
    "/v1/scaling-advice": [
        ("/v1/scaling-advice", {**body, "node_counts": [2, 4]}) for body in (QUESTION, STRANGE, UNKNOWN, NAMELESS, LIKE)
    ],
    "/v1/sql": [("/v1/sql", {"query": query, "limit": 5000}) for query in SQL_QUERIES],
    "/v1/studies": [("/v1/studies", {"name": "ann-new", "space": SPACE, "objective": "step_p50_seconds"})],
    **{
        f"/v1/studies/{{study_id}}:{act}": [(f"/v1/studies/{STUDY}:{act}", body)]
        for act, body in (
            ("extend", {"trials": 5}),
            *((act, {}) for act in ("pause", "resume", "stop")),
            ("rename", {"name": "ann-other"}),
            ("delete", {}),
        )
    },
    "/v1/runs/{run_id}:share": [(f"/v1/runs/{RUN}:share", {"shared": False})],
    "/v1/runs/{run_id}:delete": [("/v1/runs/WHO-run22:delete", {})],
    "/v1/studies/{study_id}:share": [(f"/v1/studies/{STUDY}:share", {"shared": False})],
    "/v1/cohorts": [("/v1/cohorts", {"name": "one", "run_ids": [RUN]})],
    "/v1/cohorts/{cohort_id}:share": [("/v1/cohorts/WHO-cohort:share", {"shared": False})],
    "/v1/cohorts/{cohort_id}:delete": [("/v1/cohorts/WHO-cohort:delete", {})],
    "/v1/webhooks": [("/v1/webhooks", {"url": "https://ann.example/", "run_id": "WHO-run23"})],
    **{f"/v1/webhooks/{{webhook_id}}:{act}": [(f"/v1/webhooks/WHO:{act}", {})] for act in ("delete", "enable", "test")},
    "/v1/tokens": [("/v1/tokens", {})],
    "/v1/tokens:link": [("/v1/tokens:link", {})],
    "/v1/tokens/{token_id}:revoke": [("/v1/tokens/WHO:revoke", {})],
    "/v1/pseudonyms/{pseudonym}:reveal": [("/v1/pseudonyms/u-0123456789abcdef:reveal", {})],
    "/v1/studies/{study_id}/trials:suggest": [(f"/v1/studies/{STUDY}/trials:suggest", {"owner": "ann-host"})],
    "/v1/studies/{study_id}/trials:enqueue": [
        (f"/v1/studies/{STUDY}/trials:enqueue", {"configurations": [{"batch": 9}]})
    ],
    **{
        f"/v1/studies/{{study_id}}/trials/{{trial_id}}:{act}": [(f"/v1/studies/{STUDY}/trials/{TRIAL}:{act}", body)]
        for act, body in (
            ("heartbeat", {"owner": "ann-host"}),
            ("report", {"reports": [{"step": 2, "value": 0.25}]}),
            ("complete", {"objective": 0.1}),
            ("fail", {"reason": "no"}),
            ("retry", {}),
            ("release", {}),
            ("define", {"configuration": {"batch": 3}}),
        )
    },
}
ELSEWHERE = {  # what says nothing of rows: bodies of its own, or for administrators, by tests of their own
    *("/studies", "/models"),  # forms of pages
    *("/v1/models/{name}/versions/{version}:promote", "/v1/models/{name}:rollback", "/v1/models/{name}:train"),
    *("/v1/ingest/batches", "/v1/ingest/prometheus", "/v1/ingest/otlp/v1/metrics"),
    *("/login", "/logout", "/v1/tokens:job"),
}


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.thorough)])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The store of ann and bob, once in each database."""
    url = None if request.param == "sqlite" else request.getfixturevalue("lasting_postgres_url")
    with Store.open(tmp_path_factory.mktemp("two") / "store", database=url) as opened:
        fill(opened)
        yield opened


@pytest.fixture(scope="module")
def app(store: Store) -> FastAPI:
    """One application, and so one set of caches, for both."""
    return create_app(store)


@pytest.fixture(scope="module")
def ann(app: FastAPI) -> TestClient:
    return asking_as(app, ANN)


@pytest.fixture(scope="module")
def owner(app: FastAPI) -> TestClient:
    return asking_as(app, OWNER)


@pytest.fixture(scope="module")
def secret(store: Store) -> re.Pattern[str]:
    """The words that ann may not read: bob's mark, a number of his, and his pseudonym."""
    with store.catalog.read() as session:
        pseudonym = session.people.pseudonym(MARK)
    return re.compile(f"{MARK}|{int(NUMBER)}|{pseudonym}", re.IGNORECASE)


def addresses(path: str) -> list[str]:
    plain = ASKED.get(path, [])
    queries = QUERIES.get(FORM.sub("", path), ())
    return [*plain, *(f"{address}?{query}" for address in plain[:1] for query in queries)]


def of_every_day() -> list[str]:
    """Return the addresses of every path; of those that hold what another one holds, the first ones."""
    return [
        address for path in ASKED for address in (first(addresses(path)) if ALIKE.search(path) else addresses(path))
    ]


def first(every: list[str]) -> list[str]:
    """Return the first address, and the first that names something of somebody."""
    return list(dict.fromkeys([every[0], next((address for address in every if "WHO" in address), every[0])]))


def test_every_route_is_tried(app: FastAPI) -> None:
    """Return a route that nobody has said how to try: add it above."""
    routes = {(method, route.path) for route in (*routes_of(app), *page_routes()) for method in methods(route)}
    tried = (
        {("GET", path) for path in ASKED} | {("POST", path) for path in POSTED} | {("POST", path) for path in ELSEWHERE}
    )
    assert {("GET", "/static/{name}")} | tried - {("GET", "/static/crosswind.css")} == routes


def test_no_answer_to_ann_says_anything_of_bobs(ann: TestClient, owner: TestClient, secret: re.Pattern[str]) -> None:
    said_to_owner = "".join(answers_to_owner(of_every_day(), ann, owner, secret))
    for part in ("run23", "job23", "node0", "train.py", "note", "work", "search", "study", "trial0", "value", "check0"):
        assert f"{MARK}-{part}" in said_to_owner, f"the owner is told of no {MARK}-{part}: the test looks nowhere"
    assert str(int(NUMBER)) in said_to_owner
    assert len(set(secret.findall(said_to_owner))) >= 3, "the owner is told of no pseudonym"


@pytest.mark.thorough
def test_nothing_that_holds_the_same_in_another_form_says_anything_of_bobs(
    ann: TestClient, owner: TestClient, secret: re.Pattern[str]
) -> None:
    every = [address for path in ASKED if ALIKE.search(path) for address in addresses(path)]
    assert MARK in "".join(answers_to_owner(every, ann, owner, secret))


def answers_to_owner(every: list[str], ann: TestClient, owner: TestClient, secret: re.Pattern[str]) -> Iterator[str]:
    """Yield what the owner is answered of bob's, where ann is answered with nothing of it."""
    for address in every:
        of_owner = get(owner, address.replace("WHO", "ann"))  # what is cached of this is not for ann
        own = get(ann, address.replace("WHO", "ann"))
        assert_free(own, address, secret)
        assert own.status_code < 500, (address, own.text)
        if "WHO" in address:
            assert_as_of_nobody(get(ann, address.replace("WHO", MARK)), get(ann, address.replace("WHO", NOBODY)))
            of_owner = get(owner, address.replace("WHO", MARK))
        yield of_owner.text if "export" not in address else ""


def test_no_question_of_anns_is_answered_with_anything_of_bobs(
    ann: TestClient, owner: TestClient, secret: re.Pattern[str]
) -> None:
    said_to_owner = ""
    for address, body in [pair for pairs in POSTED.values() for pair in pairs if not pair[0].endswith(":delete")]:
        if "prediction" in address or "advice" in address:
            owner.post(address, json=for_whom(body, "ann"))
        own = ann.post(address.replace("WHO", "ann"), json=for_whom(body, "ann"))
        assert_free(own, address, secret)
        assert own.status_code < 500, (address, own.text)
        if "WHO" in address or body is LIKE:
            theirs, nobodys = (
                ann.post(address.replace("WHO", who), json=for_whom(body, who)) for who in (MARK, NOBODY)
            )
            assert_as_of_nobody(theirs, nobodys)
        elif "prediction" in address or "advice" in address:
            said_to_owner += owner.post(address, json=for_whom(body, MARK)).text
    for part in ("run", "work"):
        assert f"{MARK}-{part}" in said_to_owner, f"the owner is told of no {MARK}-{part}: the test looks nowhere"


def test_counts_are_of_anns_rows(ann: TestClient, owner: TestClient) -> None:
    runs = 2 + RUNS
    assert len(ann.get("/v1/runs?limit=100").json()["runs"]) == runs
    assert len(owner.get("/v1/runs?limit=100").json()["runs"]) == 2 * runs
    assert ann.get("/runs.json").json()["asked"]["scope"]["stored"] == runs
    assert ann.get("/v1/jobs?limit=100").json()["jobs"] != []
    assert len(ann.get("/v1/jobs?limit=100").json()["jobs"]) == RUNS
    assert len(owner.get("/v1/jobs?limit=100").json()["jobs"]) == 2 * RUNS
    assert [node["node"] for node in ann.get("/v1/nodes").json()["nodes"]] == [
        "ann-node0",
        "ann-node0.lab",
        "ann-node1",
    ]
    assert {study["name"][:3] for study in ann.get("/v1/studies").json()["studies"]} == {"ann"}
    assert ann.get("/metrics").status_code == 403
    assert ann.get("/v1/stragglers?system=lab").json()["runs"] <= runs
    assert ann.get("/v1/counters?system=lab").json()["runs"] == runs
    effects = {who: client.get("/v1/interference?system=lab").json() for who, client in (("ann", ann), ("all", owner))}
    assert (effects["ann"]["seen"]["job"], effects["all"]["seen"]["job"]) == (0, 2 * RUNS)


def test_pages_lead_through_all_of_anns_runs_and_no_others(ann: TestClient) -> None:
    seen, address = [], "/v1/runs?limit=3"
    while address:
        page = ann.get(address).json()
        seen += [run["run_id"] for run in page["runs"]]
        address = page["next_url"]
    assert sorted(seen) == sorted(f"ann-run{number}" for number in range(RUNS + 2))


def test_the_cohort_of_both_explains_anns_run_without_naming_bobs(ann: TestClient) -> None:
    explanation = ann.get("/v1/runs/ann-run23/explanation").json()
    assert explanation["cohort_runs"] == 2 * RUNS - 1
    prediction = ann.post("/v1/predictions", json=QUESTION).json()
    assert prediction["cohort_runs"] == 2 * RUNS
    assert all(run["run_id"].startswith("ann-") for run in prediction["evidence"])


def test_checks_of_other_nodes_are_there_to_compare_with_under_other_names(ann: TestClient) -> None:
    earlier = ann.get("/v1/checks?system=lab").json()["earlier"]
    nodes = {series["node"] for series in earlier}
    assert "ann-node0" in nodes
    assert any(node.startswith("another-") for node in nodes)


def get(client: TestClient, address: str) -> Any:
    """Return the answer, after waiting for a page that is being computed."""
    for _ in range(100):
        answer = client.get(address)
        if answer.status_code not in (202, 503):
            break
        time.sleep(0.1)
    return answer


def for_whom(body: Any, who: str) -> Any:
    if isinstance(body, Mapping):
        return {name: for_whom(value, who) for name, value in body.items()}
    return body.replace("WHO", who) if isinstance(body, str) else body


def assert_free(answer: Any, address: str, secret: re.Pattern[str]) -> None:
    said = f"{answer.headers} {answer.text}"
    place = secret.search(said)
    assert place is None, f"{address} says {said[max(0, place.start() - 100) : place.end() + 100]!r}"


def assert_as_of_nobody(theirs: Any, nobodys: Any) -> None:
    """Check that what is bob's looks as if it did not exist, but for the name that was asked for."""
    plain = re.sub(MARK, NOBODY, unlike(theirs), flags=re.IGNORECASE)
    assert (theirs.status_code, plain) == (nobodys.status_code, unlike(nobodys)), theirs.request.url


def unlike(answer: Any) -> str:
    """Return an answer without what differs from one request to the next."""
    times = r'"(now_ns|now_at|at_ns|at|seconds)": ?("[^"]*"|[0-9.]+)| in [0-9.]+ m?s(?=[.]</h1>)'
    times += "|A Crosswind report, .*?</time>"
    return re.sub(f"{times}|content-length[^,]*,|etag[^,]*,", "", answer.text)

"""Systems, and nodes with their history: the same from the store here and over HTTP, as far as one may see."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from starlette.testclient import TestClient
from tests.api.conftest import START_NS, run
from tests.api.test_nodes import hear
from tests.serving import answering

from crosswind.client.local import Local
from crosswind.client.remote import Remote
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.access import RowRule
from crosswind.data.schema.checks import Measured
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.metric import with_node_keys
from crosswind.data.schema.node_question import HistoryQuestion
from crosswind.data.schema.occupancy import Allocation, Source
from crosswind.data.schema.run import RunState
from crosswind.data.store.store import Store
from crosswind.ingest.agent.self_metrics import AGENT
from crosswind.ingest.load.load import load_spool
from crosswind.ingest.preflight.record import Occasion, record

SECOND = 1_000_000_000
WHOLE = HistoryQuestion(from_ns=START_NS - 3600 * SECOND, to_ns=START_NS + 3600 * SECOND)


def sweep(store: Store, node: str, seconds: range) -> None:
    """Store sweeps of a node at these seconds after START_NS."""
    times = [START_NS + second * SECOND for second in seconds]
    keys = {"ts_ns": times, "mono_ns": times, "node": [node] * len(times), "boot_id": ["b"] * len(times)}
    store.lake.append(
        f"sweeps-{node}-{seconds.start}", to_table(with_node_keys(AGENT), {**keys, "device": ["agent"] * len(times)})
    )


@pytest.fixture
def remote(store: Store) -> Iterator[Remote]:
    with answering(store.home) as url:
        yield Remote(url)


def test_a_system_has_its_workloads_nodes_and_accelerators(store: Store, client: TestClient) -> None:
    with store.catalog.write() as session:
        session.runs.merge(replace(run("r8", 8), system="big", facts=Facts(accelerator="H200"), nodes=("m1", "m2")))
    page = client.get("/v1/systems").json()
    assert [(one["system"], one["runs"], one["node_count"]) for one in page["systems"]] == [
        ("big", 1, 2),
        ("lab", 9, 1),
    ]
    lab = client.get("/v1/systems/lab").json()
    assert lab["system"]["workloads"] == ["nanogpt", "bert"]
    assert (lab["system"]["from_ns"], lab["system"]["to_ns"]) == (START_NS - 1, START_NS + 450 * SECOND)
    assert [(one["workload"], one["runs"]) for one in lab["workloads"]] == [("nanogpt", 8), ("bert", 1)]
    assert lab["nodes"] == ["n1"]
    assert client.get("/v1/systems/big").json()["system"]["accelerators"] == ["H200"]
    unknown = client.get("/v1/systems/lap")
    assert (unknown.status_code, "stored are big, lab" in unknown.json()["detail"]) == (404, True)


def test_an_empty_store_has_no_systems(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Store.open(tmp_path_factory.mktemp("empty") / "store") as store:
        assert Local(store).fleet.systems() == ()
        with pytest.raises(NotFoundError, match="stored are none"):
            Local(store).fleet.system("lab")
        with pytest.raises(NotFoundError, match="node 'n1'"):
            Local(store).fleet.node("n1")


def test_a_nodes_history_has_its_jobs_runs_checks_and_gaps(store: Store, client: TestClient) -> None:
    sweep(store, "n1", range(60))
    sweep(store, "n1", range(90, 150))
    check = Occasion("c1", START_NS, "lab", "12_3")
    record(store.home / "spool", check, (Measured("n1", "gemm", 1.5e11, "cpu", method="torch", hardware="Fast"),))
    assert load_spool(store, store.home / "spool").problems == []
    address = "/v1/nodes/n1/history?from=2026-01-02T03:04:00Z&to=2026-01-02T03:06:40Z"
    history = client.get(address).json()
    assert [one["run_id"] for one in history["runs"]] == ["r2", "r1", "r0"]
    assert [(one["job_id"], one["system"], one["state"]) for one in history["jobs"]] == [("12_3", "lab", "FAILED")]
    assert [(one["measure"], one["values"]) for one in history["checks"]] == [("gemm", [1.5e11])]
    assert [(one["begin_ns"] - START_NS, one["seconds"]) for one in history["gaps"]] == [
        (59 * SECOND, 31.0),
        (149 * SECOND, 5.999999994),
        (-5 * SECOND - 6, 5.000000006),
    ]
    assert history["state"]["sweeps"] == 120
    assert client.get(f"{address}&limit=1").json()["runs"][0]["run_id"] == "r2"


def test_a_node_goes_by_all_of_its_names(store: Store) -> None:
    with store.catalog.write() as session:
        session.places.merge(Allocation("77", "n1", "n1.lab", Source.PROLOG, "lab", started_ns=START_NS))
    hear(store, "n1.lab", time.time_ns() - 60 * SECOND)
    for name in ("n1", "n1.lab"):
        report = Local(store).fleet.node(name)
        assert (report.names, report.systems) == (("n1", "n1.lab"), ("lab",))
        assert report.state is not None
        assert [job.job_id for job in report.jobs] == ["77"]


def test_what_runs_on_a_node_now_is_shown(store: Store) -> None:
    with store.catalog.write() as session:
        session.runs.merge(replace(run("now", 0), state=RunState.RUNNING, ended_ns=None, exit_code=None))
    assert [one.run_id for one in Local(store).fleet.node("n1").runs] == ["now"]


def test_others_see_their_own_jobs_and_runs_and_gaps_in_the_times_of_these(store: Store) -> None:
    sweep(store, "n1", range(0, 400, 2))
    sweep(store, "n2", range(0, 400, 2))
    with store.catalog.write() as session:
        session.runs.merge(replace(run("mine", 1), user="ann"))
    fleet = Local(store).seen_by(RowRule(users=frozenset({"ann"}))).fleet
    history = fleet.node_history("n1", WHOLE)
    assert ([one.run_id for one in history.runs], history.jobs, history.gaps) == (["mine"], (), ())
    assert Local(store).fleet.node_history("n1", WHOLE).gaps != ()
    for unseen in (lambda: fleet.node("n2"), lambda: fleet.node_history("n2", WHOLE), lambda: fleet.system("big")):
        with pytest.raises(NotFoundError):
            unseen()
    assert [one.runs for one in fleet.systems()] == [1]


def test_both_clients_answer_the_same(store: Store, remote: Remote) -> None:
    sweep(store, "n1", range(60))
    local = Local(store).fleet
    assert local.systems() == remote.fleet.systems()
    assert local.system("lab") == remote.fleet.system("lab")
    assert local.node("n1") == remote.fleet.node("n1")
    assert local.node_history("n1", WHOLE) == remote.fleet.node_history("n1", WHOLE)


@pytest.mark.parametrize("question", [HistoryQuestion(5, 5), HistoryQuestion(limit=0), HistoryQuestion(limit=501)])
def test_a_time_without_length_and_too_long_lists_are_refused(store: Store, question: HistoryQuestion) -> None:
    with pytest.raises(InvalidInputError, match="expected"):
        Local(store).fleet.node_history("n1", question)

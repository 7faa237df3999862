"""Stores of which every page is opened in a browser: with something for each, with nothing, with one run, with many."""

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from tests.api.openapi.sample_store import write_part_of_samples
from tests.dashboards.test_pages_of_the_fleet import TOPOLOGY, swept
from tests.models.preflight.stored_checks import store_checks
from tests.models.registry.models import poor, trained
from tests.models.stragglers.made_up_fleet import BEGIN_NS, SECOND_NS, add_steps, drawn_nodes, store_fleet
from tests.traced_run import store_traces

from crosswind.data.lake.lake import to_table
from crosswind.data.samples.lab_runs import load_lab_runs
from crosswind.data.schema.metric import with_node_keys
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.schema.trial import Study
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.ingest.collectors.network import NETWORK
from crosswind.ingest.collectors.nvml import GPU
from crosswind.models.baseline import Ewma
from crosswind.models.explain.explain import explain_runs
from crosswind.models.registry.registry import Registry
from crosswind.models.tuner.service.catalog import CatalogStudyService
from crosswind.models.tuner.service.service import Lease

MS = 1_000_000
START_NS = 1_760_000_000_000_000_000  # 2025-10-09 08:53:20 UTC
CONFIGURATION = {"batch_size": 8, "bucket_cap_mb": 25, "precision": "bf16"}
MANY = int(os.environ.get("CROSSWIND_TEST_RUNS", "20000"))  # runs of the large store
SLOW_NODE, LIVE, TRACED, STUDY = "n3", "live", "today3", "ddp"
HOSTILE = "<img src=x onerror=alert(1)>{{7*191}}\"'</script>"


def fill_sample(home: Path) -> None:
    """Part of the sample data, and made-up rows for what that does not have: each page has something to show."""
    write_part_of_samples(home / "part", '"batch": 64,.*"link": "direct"')
    store_fleet(home, drawn_nodes(60, 4, 12), {3: np.log(1.2)})
    (home / "topology.conf").write_text(TOPOLOGY)
    with Store.open(home) as store:
        load_lab_runs(store, home / "part")
        store_checks(store, checks=3, nodes=8, slow={2: "n5"}, links=True)
        _of_today(store)
        _agents(store)
        _links(store)
        _energy(store)
        _search(store, STUDY)
        registry, evidence = Registry(store), trained().evidence
        for one in (evidence, poor(evidence)):
            registry.register("step-time", Ewma(), one)
        registry.promote("step-time", 1)
        explain_runs(store, all_runs(store))


def fill_one(home: Path) -> None:
    """One run of few steps."""
    store_fleet(home, [[0, 1]], {})
    with Store.open(home) as store:
        explain_runs(store, all_runs(store))


def fill_many(home: Path) -> None:
    """As many runs as a busy site has in a week."""
    sys.path.append(str(Path(__file__).parents[2]))  # the benchmarks are not part of the package
    from benchmarks.many_runs import fill  # noqa: PLC0415

    with Store.open(home) as store:
        fill(store, MANY)


def fill_hostile(home: Path) -> None:
    """The sample of the fleet under names that a browser would run if it took them for HTML."""
    with Store.open(home) as store:
        for number in range(5):
            _hostile_run(store, number)
        store_checks(store, checks=2, nodes=4, slow={1: "n3"})
        _search(store, HOSTILE)
        explain_runs(store, all_runs(store))


FILLS: Mapping[str, Callable[[Path], None]] = {
    "sample": fill_sample,
    "empty": lambda home: Store.open(home).close(),
    "one": fill_one,
    "many": fill_many,
    "hostile": fill_hostile,
}


@dataclass(frozen=True)
class Recorded:
    """A run of 2 ranks, a minute after the one before; rank 1 computes longer, waiting for its core meanwhile."""

    run_id: str
    number: int
    slower_ms: int = 0
    state: RunState = RunState.COMPLETED
    from_ns: int = START_NS
    workload: str = "nanogpt-124m"
    steps: int = 20


def record(store: Store, recorded: Recorded) -> None:
    """Store a run with its steps."""
    run_id, start = recorded.run_id, recorded.from_ns + recorded.number * 60_000 * MS
    names = [column.name for column in STEP.columns]
    rows = [_row(run_id, start, step, rank, recorded.slower_ms) for step in range(recorded.steps) for rank in range(2)]
    store.lake.append(run_id, to_table(STEP, {name: [row.get(name) for row in rows] for name in names}))
    ended = None if recorded.state is RunState.RUNNING else start + recorded.steps * 50 * MS
    nodes = ("node0", "node1")
    named = (run_id, recorded.workload, "lab", recorded.state, 2, CONFIGURATION)
    run = Run(*named, nodes=nodes, started_ns=start, ended_ns=ended)
    with store.catalog.write() as session:
        session.runs.merge(run)
        for rank in range(2):
            session.ranks.merge(Rank(run_id, rank, nodes[rank], 100 + rank, start))


def _row(run_id: str, start: int, step: int, rank: int, slower_ms: int) -> dict[str, int | str]:
    jitter = step * 7 % 5
    late = slower_ms if rank else 0
    local = 400 + jitter + late * 10
    total = 400 + jitter + slower_ms * 10 + 50
    tenths = {
        "duration_seconds": total,
        "input_seconds": 20,
        "compute_seconds": local - 20,
        "comm_seconds": total - local,
        "checkpoint_seconds": 0,
        "other_seconds": 0,
        "tail_seconds": 10,
        "run_queue_wait_seconds": 3 + late * 10,
    }
    keys: dict[str, int | str] = {"ts_ns": start + step * 50 * MS, "run_id": run_id, "rank": rank, "step": step}
    return {**keys, **{name: value * MS // 10 for name, value in tenths.items()}}


def _minutes_ago(minutes: int) -> int:
    return time.time_ns() - minutes * 60 * SECOND_NS


def _of_today(store: Store) -> None:
    """A cohort of which the fourth run was slow, and one of its runs in progress."""
    from_ns = _minutes_ago(90)
    for number in range(10):
        record(store, Recorded(f"today{number}", number, 30 if number == 3 else 0, from_ns=from_ns))
    record(store, Recorded(LIVE, 89, state=RunState.RUNNING, from_ns=from_ns, steps=8))
    for run_id in ("today1", TRACED):
        store_traces(store, run_id)


def _agents(store: Store) -> None:
    """Agents of three nodes over the last three hours, of which one is silent for two."""
    from_ns = _minutes_ago(180)
    swept(store, "n1", [*range(60)], from_ns=from_ns)
    for node in ("n2", SLOW_NODE):
        swept(store, node, [*range(181)], from_ns=from_ns)


def _links(store: Store) -> None:
    """Five nodes for an hour, of which one drops a hundred times as much as the others."""
    minutes = np.arange(61)
    for number in range(5):
        columns = {
            "ts_ns": (BEGIN_NS + minutes * 60 * SECOND_NS).tolist(),
            **{name: [value] * 61 for name, value in (("node", f"n{number}"), ("device", "eth0"), ("boot_id", "b"))},
            "receive_packets_total": (5000 * minutes).tolist(),
            "transmit_packets_total": (5000 * minutes).tolist(),
            "receive_drops_total": ((100 if number == 2 else 1) * minutes).tolist(),
            "speed_bytes_per_second": [10 if number == 4 else 100] * 61,
        }
        store.lake.append(f"network-n{number}", to_table(with_node_keys(NETWORK), columns))


def _energy(store: Store) -> None:
    """Runs of three batches whose records state joules, and the GPU that they held, at times idle."""
    began = _minutes_ago(120)
    with store.catalog.write() as session:
        for number, (batch, took, joules) in enumerate([(8, 10, 900), (16, 20, 500), (32, 30, 700), (8, 12, 1100)]):
            named = (f"gpt{number}", "gpt", "lab", RunState.COMPLETED, 1, {"batch": batch})
            times = {"started_ns": began, "ended_ns": began + took * SECOND_NS}
            session.runs.merge(Run(*named, nodes=("n0",), tags={"energy_joules": str(joules)}, **times))
    times_ns = [began + second * SECOND_NS for second in range(10)]
    columns = {"ts_ns": times_ns, "node": ["n0"] * 10, "device": ["GPU-1"] * 10, "boot_id": ["b"] * 10}
    used = {"utilization_ratio": [0] * 4 + [90] * 6, "name": [None] * 10}
    store.lake.append("gpu", to_table(with_node_keys(GPU), {**columns, **used}))


def _search(store: Store, name: str) -> None:
    """A study of two parameters, of which one matters; its budget of 14 trials is spent."""
    space = {"batch": {"kind": "int", "low": 1, "high": 64}, "idle": {"kind": "int", "low": 1, "high": 64}}
    study = Study("s1", name, space, "step_p50_seconds", "s", 0, BEGIN_NS, trials_max=14)
    service = CatalogStudyService(store.catalog)
    service.create(replace(study, search="random"))
    for number in range(14):
        [record] = service.suggest(name, 1, Lease("job 7", 60.0))
        seconds = 1.0 + abs(float(record.trial.configuration["batch"]) - 40) / 10
        service.complete(name, record.trial_id, seconds, owner="job 7", run_id=f"r{number}")


def _hostile_run(store: Store, number: int) -> None:
    """20 steps of a run of two ranks, of which the last run is slow."""
    run_id, started = f"{HOSTILE.replace('/', '')}{number}", BEGIN_NS + number * 60 * SECOND_NS
    columns: dict[str, list[int | str | None]] = {column.name: [] for column in STEP.columns}
    for _ in range(3):
        add_steps(columns, run_id, started, [1.0, 1.0 + (number == 4)], waits=True)
    columns["step"] = [place // 2 for place in range(len(columns["step"]))]
    store.lake.append(f"hostile-{number}", to_table(STEP, columns))
    configuration = {HOSTILE: HOSTILE}
    facts = {
        "started_ns": started,
        "ended_ns": started + 30 * SECOND_NS,
        "nodes": (HOSTILE, "b"),
        "tags": {HOSTILE: HOSTILE},
    }
    with store.catalog.write() as session:
        session.runs.merge(
            Run(run_id, HOSTILE, HOSTILE, RunState.COMPLETED, 2, configuration, HOSTILE, user=HOSTILE, **facts)
        )
        for rank in range(2):
            session.ranks.merge(Rank(run_id, rank, facts["nodes"][rank], 100 + rank, started))
    store_traces(store, run_id, mark=HOSTILE)

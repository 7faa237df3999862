from dataclasses import replace
from pathlib import Path

import pytest

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.job import Job
from crosswind.data.schema.metric import NODE_KEYS
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.run_facts import facts_of_runs
from crosswind.data.store.store import Store
from crosswind.ingest.collectors.nvml import GPU

STORED = replace(GPU, columns=(*NODE_KEYS, *GPU.columns))
SECOND = 10**9
BEGIN = 1_767_323_045 * SECOND
RUN = Run(
    *("r1", "gpt", "alps", RunState.COMPLETED),
    job_id="4711",
    nodes=("n1",),
    started_ns=BEGIN,
    ended_ns=BEGIN + 60 * SECOND,
    facts=Facts(framework="PyTorch"),
)
ACCOUNT = Job("alps", "4711", node_count=1, fields={"AllocTRES": "gres/gpu:a100=4"}, started_ns=BEGIN)


def sampled(store: Store, node: str, names: list[str], *, at: int = BEGIN + SECOND) -> None:
    """One sample of every GPU of a node."""
    rows = {
        "ts_ns": [at] * len(names),
        "node": [node] * len(names),
        "device": [f"GPU-{number}" for number in range(len(names))],
        "name": names,
        "driver_version": ["550.54.15"] * len(names),
        "memory_total_bytes": [80 * 10**9] * len(names),
    }
    store.lake.append(f"{node}-{at}", to_table(STORED, rows))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path)


def test_a_run_has_the_accelerators_of_its_job(store: Store) -> None:
    store.jobs.put(ACCOUNT, replace(ACCOUNT, system="other", fields={}))
    [facts] = facts_of_runs(store, [RUN])
    assert facts == Facts(
        framework="PyTorch", accelerator="a100", accelerators=4, accelerators_per_node=4, node_count=1
    )


def test_a_run_has_the_accelerators_that_were_sampled_on_its_nodes(store: Store) -> None:
    sampled(store, "n1", ["NVIDIA H100 80GB HBM3"] * 2)
    sampled(store, "n2", ["NVIDIA A100"], at=BEGIN - 3600 * SECOND)  # at another time
    earlier = replace(RUN, run_id="r0", started_ns=BEGIN - 7200 * SECOND, ended_ns=BEGIN - 7100 * SECOND)
    elsewhere = replace(RUN, run_id="r2", nodes=("n1", "n2"))
    of_node = Facts(
        accelerator="NVIDIA H100 80GB HBM3",
        accelerators_per_node=2,
        driver="550.54.15",
        accelerator_memory_bytes=80e9,
        framework="PyTorch",
    )
    assert facts_of_runs(store, [earlier, elsewhere, RUN]) == [of_node, RUN.facts, of_node]


def test_what_a_run_states_itself_comes_first(store: Store) -> None:
    store.jobs.put(ACCOUNT)
    sampled(store, "n1", ["NVIDIA H100 80GB HBM3"])
    own = replace(RUN, facts=Facts(accelerator="Tesla V100"))
    on_processors = replace(RUN, facts=Facts(accelerators_per_node=0))
    assert facts_of_runs(store, [own, on_processors]) == [own.facts, on_processors.facts]
    assert facts_of_runs(store, []) == []

"""Stores with neighbours, for tests."""

import numpy as np

from crosswind.data.schema.job import Job
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store

HOUR_NS = 3_600_000_000_000


def run(number: int, hours: float = 1.0, **facts: object) -> Run:
    """One every two hours, each of an hour; facts say what is different."""
    began = (1 + number) * 2 * HOUR_NS
    defaults = {"run_id": f"r{number:03d}", "workload": "bert", "system": "lab", "state": RunState.COMPLETED}
    times = {"started_ns": began, "ended_ns": began + int(hours * HOUR_NS), "nodes": ("n1",)}
    return Run(**(defaults | times | facts))  # type: ignore[arg-type]


def neighbourhood(store: Store, *, node: str = "n1") -> None:
    """60 runs on n1; mallory's jobs are beside every fifth on `node` and make it 20 % slower, alice's do nothing."""
    random = np.random.default_rng(1)
    noise = random.normal(0, 0.03, 60)
    with store.catalog.write() as session:
        for number in range(60):
            session.runs.merge(run(number, float(np.exp(noise[number])) * (1.2 if number % 5 == 0 else 1.0)))
    store.jobs.put(*(_job(number, "mallory" if number % 5 == 0 else "alice", node) for number in range(60)))


def _job(number: int, user: str, node: str) -> Job:
    began = (1 + number) * 2 * HOUR_NS
    nodes = (node,) if user == "mallory" or number % 3 == 0 else ("n9",)
    facts = {"name": f"{user}s-job", "user": user, "state": "COMPLETED", "nodes": nodes}
    return Job("lab", str(number), started_ns=began, ended_ns=began + HOUR_NS, **facts)  # type: ignore[arg-type]

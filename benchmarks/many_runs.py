"""A store of many made-up runs with steps, whose features and verdicts are stored as a server would have by then.

Runs of 40 cohorts, one every 26 s, of two ranks and 16 steps. The verdicts of some of the newest are computed; the
others have the features of one of these, which nobody reads, so that the catalog is as large as it would be.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from sqlalchemy import text

from crosswind.data.lake.lake import arrow_schema
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store
from crosswind.models.explain.explain import explain_runs

SECOND = 1_000_000_000
FIRST_NS, EVERY_NS = 1_767_225_600 * SECOND, 26 * SECOND
DAY_NS = 86_400 * SECOND
RANKS, STEPS, STEP_NS = 2, 16, 250_000_000
WORKLOADS, SYSTEMS, BATCHES = 5, 2, (8, 16, 32, 64)
COHORTS = WORKLOADS * SYSTEMS * len(BATCHES)  # runs of one follow each other at this distance
COMPUTED, OF_COHORTS = 200, 4  # the newest runs of some cohorts
WITH_RANKS = 12_000  # newest runs, whose nodes are compared

_FEATURES = """
insert into run_features select run_id, form, features, explanation
from (select run_id from runs) cross join (select form, features, explanation from run_features where run_id = :like)
where run_id not in (select run_id from run_features)
"""
_VERDICTS = """
update run_verdicts set made = wanted, due = 0, verdict = 'normal', steps = 13, step_p50_seconds = 0.25
where verdict is null
"""


def run_id_of(number: int) -> str:
    return f"run-{number:08}"


def run_of(number: int) -> Run:
    began = FIRST_NS + number * EVERY_NS
    node = number % 50
    named = (run_id_of(number), f"workload-{number % WORKLOADS}", f"system-{number // 5 % SYSTEMS}")
    return Run(
        *named,
        RunState.FAILED if number % 97 == 0 else RunState.COMPLETED,
        world_size=RANKS,
        configuration={"batch": BATCHES[number // 10 % len(BATCHES)], "precision": "bf16", "optimizer": "adam"},
        job_id=str(number // 3),
        nodes=(f"n{node:03}", f"n{node + 1:03}"),
        started_ns=began,
        ended_ns=began + STEPS * STEP_NS,
        command=("torchrun", "--nproc-per-node=1", "train.py", "--epochs=1"),
        software={"torch": "2.9.0", "python": "3.11.7", "numpy": "2.1"},
        tags={"git.commit": f"{number % 200:040x}", "launcher": "torchrun"},
    )


def fill(store: Store, runs: int) -> None:
    """Store so many runs with their steps, features and verdicts."""
    with store.catalog.write() as session:
        session.runs.put_all(map(run_of, range(runs)))
    a_day = DAY_NS // EVERY_NS
    for day, begin in enumerate(range(0, runs, a_day)):
        store.lake.append(f"steps-{day}", _steps(np.arange(begin, min(begin + a_day, runs)), day))
    with store.catalog.write() as session:
        for rank in _ranks(max(0, runs - WITH_RANKS), runs):
            session.ranks.merge(rank)
    finish(store, runs)


def finish(store: Store, runs: int) -> None:
    """Compute the verdicts of the newest runs of some cohorts, and fill in those of all others."""
    explain_runs(store, [run_of(number) for number in computed(runs)])
    with store.catalog.write() as session:
        session._connection.execute(text(_FEATURES), {"like": run_id_of(runs - 1)})
        session._connection.execute(text(_VERDICTS))


def computed(runs: int) -> list[int]:
    """Return the numbers of the runs whose verdicts are computed."""
    return [runs - 1 - COHORTS * (place // OF_COHORTS) - place % OF_COHORTS for place in range(COMPUTED)]


def _ranks(first: int, end: int) -> Iterator[Rank]:
    for number in range(first, end):
        run = run_of(number)
        for rank in range(RANKS):
            yield Rank(run.run_id, rank, run.nodes[rank], 1000 + rank, run.started_ns or 0)


def _steps(numbers: np.ndarray, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    shape = (len(numbers), STEPS, RANKS)
    compute = (0.2 * SECOND * random.lognormal(0, 0.03, shape)).astype("int64")
    reading = random.integers(1_000_000, 3_000_000, shape)
    end = (compute + reading).max(axis=2, keepdims=True) + np.int64(20_000_000)
    zero = np.zeros(shape, "int64")
    step = np.arange(STEPS)[None, :, None] + zero
    columns = {
        "ts_ns": FIRST_NS + numbers[:, None, None] * EVERY_NS + step * STEP_NS,
        "rank": np.arange(RANKS) + zero,
        "step": step,
        "duration_seconds": end + zero,
        "input_seconds": reading,
        "compute_seconds": compute,
        "comm_seconds": end - compute - reading,
        "checkpoint_seconds": zero,
        "other_seconds": zero,
        "tail_seconds": random.integers(1_000_000, 1_100_000, shape),
        "cpu_user_seconds": compute,
        "cpu_system_seconds": zero,
        "run_queue_wait_seconds": random.integers(0, 40_000, shape),
    }
    schema = arrow_schema(STEP)
    arrays = {name: pa.array(values.reshape(-1)) for name, values in columns.items()}
    names = pa.array([run_id_of(int(number)) for number in numbers])
    arrays["run_id"] = names.take(pa.array(np.repeat(np.arange(len(numbers)), STEPS * RANKS)))
    rows = len(numbers) * STEPS * RANKS
    missing = {name: pa.nulls(rows, schema.field(name).type) for name in schema.names if name not in arrays}
    return pa.Table.from_arrays([(arrays | missing)[name] for name in schema.names], schema=schema)

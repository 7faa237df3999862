"""Two recorded runs without traces: phases of the loop, waits and transfers sum to the difference of their steps."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.answers.trace_difference import PartKind
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.store.store import Store
from crosswind.models.explain.evidence.step_grid import Rows
from crosswind.models.traces.difference.difference import difference_of_steps
from crosswind.models.traces.difference.of_runs import difference_of_runs, recorded_steps
from crosswind.models.traces.difference.paths import Paths


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    with Store.open(tmp_path / "store") as opened:
        yield opened


def rows(compute: list[float], *, count: int = 40, seed: int = 0) -> Rows:
    """Return synchronous steps of ranks that compute so many seconds, with noise, and communicate for 2 ms."""
    random = np.random.default_rng(seed)
    local = np.array(compute) * random.normal(1, 0.01, (count, len(compute)))
    whole = np.repeat(local.max(axis=1, keepdims=True) + 0.002, len(compute), axis=1)
    step, rank = np.divmod(np.arange(local.size), len(compute))
    nothing = {f"{name}_seconds": np.zeros(local.size) for name in ("input", "checkpoint", "other")}
    times = {
        "compute_seconds": local.ravel(),
        "comm_seconds": (whole - local).ravel(),
        "duration_seconds": whole.ravel(),
    }
    return {"step": step.astype(float), "rank": rank.astype(float), **nothing, **times}


def test_a_slower_rank_is_its_compute_and_the_others_wait() -> None:
    paths = Paths()
    answer = difference_of_steps(
        *(recorded_steps(one, paths) for one in (rows([0.05, 0.05]), rows([0.05, 0.06], seed=1))), paths
    )
    assert sum(part.seconds.value for part in answer.parts) + answer.unexplained.value == pytest.approx(
        answer.seconds.value, abs=1e-12
    )
    slower, wait = answer.parts[:2] if answer.parts[0].kind == PartKind.SLOWER else answer.parts[1::-1]
    assert (slower.kind, slower.operator, slower.rank) == (PartKind.SLOWER, ("compute",), 1)
    assert (wait.kind, wait.rank) == (PartKind.WAIT, 0)
    assert slower.rank_seconds == pytest.approx(0.010, rel=0.1)
    assert answer.first.over == "probe"
    assert "rank 1's compute slower" in answer.sentence


def test_steps_that_a_rank_lacks_are_left_out() -> None:
    whole = rows([0.05, 0.05], count=4)
    steps = recorded_steps({name: values[:-1] for name, values in whole.items()}, Paths())
    assert len(steps.time) == 3
    with pytest.raises(InvalidInputError, match="no step was recorded by all ranks"):
        recorded_steps({name: values[[0, 3]] for name, values in whole.items()}, Paths())


def test_runs_that_cannot_be_compared_are_refused(store: Store) -> None:
    with pytest.raises(InvalidInputError, match="compared with itself"):
        difference_of_runs(store, "r1", "r1")
    with pytest.raises(NotFoundError, match="r1"):
        difference_of_runs(store, "r1", "r2")


@pytest.mark.thorough
def test_measured_runs_are_compared(store: Store) -> None:
    load_lab_samples(store)
    with store.catalog.read() as session:
        runs = session.runs.find(limit=500)
    late = next(run for run in runs if run.tags.get("injected", "").startswith("late_checkpoint:1:1000"))
    alike = [run for run in runs if run.configuration == late.configuration and run.workload == late.workload]
    quiet = next(run for run in alike if run.tags.get("injected") == "none")
    answer = difference_of_runs(store, quiet.run_id, late.run_id)
    assert sum(part.seconds.value for part in answer.parts) + answer.unexplained.value == pytest.approx(
        answer.seconds.value, abs=1e-9
    )
    assert abs(answer.unexplained.value) < 1e-6
    checkpoint = next(part for part in answer.parts if part.operator == ("checkpoint",))
    assert (checkpoint.rank, checkpoint.seconds.value > 0) == (1, True)

"""Excess of runs over their cohorts."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store
from crosswind.models.association.outcomes import outcomes

SECOND = 10**9


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def keep(store: Store, *runs: Run) -> None:
    with store.catalog.write() as session:
        for run in runs:
            session.runs.merge(run)


def run(number: int, seconds: float, **facts: object) -> Run:
    began = number * 1000 * SECOND
    defaults = {"run_id": f"r{number:02d}", "workload": "bert", "system": "lab", "state": RunState.COMPLETED}
    return Run(**(defaults | {"started_ns": began, "ended_ns": began + int(seconds * SECOND)} | facts))  # type: ignore[arg-type]


def test_excess_is_over_the_own_cohort(store: Store) -> None:
    keep(store, *(run(number, 10.0) for number in range(5)), run(5, 12.0))
    keep(store, *(run(10 + number, 100.0, world_size=64) for number in range(4)))
    compared = outcomes(store)
    assert compared.system == "lab"
    assert np.exp(compared.log_excess) == pytest.approx([1, 1, 1, 1, 1, 1.2, 1, 1, 1, 1])
    assert compared.usual_seconds == pytest.approx([10] * 6 + [100] * 4)


def test_cohorts_of_three_and_runs_that_failed_are_left_out(store: Store) -> None:
    keep(store, *(run(number, 10.0) for number in range(4)), *(run(number, 10.0, world_size=2) for number in (5, 6, 7)))
    keep(store, run(9, 10.0, state=RunState.FAILED))
    compared = outcomes(store)
    assert ([member.run_id for member in compared.runs], compared.looked_at) == (["r00", "r01", "r02", "r03"], 7)


def test_more_steps_are_no_excess(store: Store) -> None:
    steps = [20, 20, 20, 40]
    keep(store, *(run(number, float(count)) for number, count in enumerate(steps)))
    for number, count in enumerate(steps):
        table = {
            "ts_ns": [number * 1000 * SECOND + step * SECOND for step in range(count)],
            "run_id": [f"r{number:02d}"] * count,
            "rank": [0] * count,
            "step": list(range(count)),
            "duration_seconds": [SECOND] * count,
        }
        store.lake.append(f"steps-{number}", to_table(STEP, table))
    assert outcomes(store).log_excess == pytest.approx([0.0] * 4)


def test_the_system_of_most_runs_is_meant(store: Store) -> None:
    keep(store, *(run(number, 10.0) for number in range(4)), run(9, 10.0, system="new"))
    keep(store, run(10, 10.0, system="new", workload="gpt"))
    assert outcomes(store).system == "lab"
    assert outcomes(store, "gpt").system == "new"
    assert outcomes(store, system="new").looked_at == 2


def test_among_systems_of_as_many_runs_the_newer_is_meant(store: Store) -> None:
    keep(store, *(run(number, 10.0, system="ab"[number % 2]) for number in range(8)))
    assert outcomes(store).system == "b"


@pytest.mark.parametrize(
    ("workload", "system", "message"),
    [
        ("gpt", "lab", "workload 'gpt': no run of it has completed on system 'lab', known are bert"),
        (None, "nowhere", "system 'nowhere': no completed run is stored, known are lab"),
    ],
)
def test_what_is_not_stored_is_refused_with_what_is(
    store: Store, workload: str | None, system: str, message: str
) -> None:
    keep(store, run(0, 10.0))
    with pytest.raises(InvalidInputError, match=message):
        outcomes(store, workload, system)


def test_an_empty_store_is_refused(store: Store) -> None:
    with pytest.raises(InvalidInputError, match="no completed run is stored"):
        outcomes(store)

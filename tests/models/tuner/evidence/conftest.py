from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.metric import Scalar
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.schema.trial import Parameter
from crosswind.data.store.store import Store

AddRun = Callable[..., Run]
HOUR_NS = 3600 * 10**9


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    with Store.open(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def add_run(store: Store) -> AddRun:
    """Stores a run of one rank whose steps took so many seconds."""

    def add(
        run_id: str,
        configuration: dict[str, Parameter],
        *,
        steps: Sequence[float] = (1.0,) * 20,
        state: RunState = RunState.COMPLETED,
        system: str = "here",
        **facts: object,
    ) -> Run:
        ended = None if state is RunState.RUNNING else HOUR_NS + round(sum(steps) * 1e9)
        given: dict[str, object] = {"workload": "gpt", "world_size": 2, "started_ns": HOUR_NS, "ended_ns": ended}
        run = Run(run_id=run_id, system=system, state=state, configuration=configuration, **(given | facts))  # type: ignore[arg-type]
        with store.catalog.write() as session:
            session.runs.merge(run)
        rows = len(steps)
        columns: dict[str, Sequence[Scalar]] = {
            "ts_ns": [HOUR_NS + round(sum(steps[:number]) * 1e9) for number in range(rows)],
            "run_id": [run_id] * rows,
            "rank": [0] * rows,
            "step": list(range(rows)),
            "duration_seconds": [round(seconds * 1e9) for seconds in steps],
            "compute_seconds": [round(seconds * 1e9) for seconds in steps],
        }
        if rows:
            store.lake.append(run_id, to_table(STEP, columns))
        return run

    return add

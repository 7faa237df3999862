"""Rows of the steps of runs, as the lake has them."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from crosswind.data.lake.steps_summary import time_of
from crosswind.data.schema.run import Rank, Run
from crosswind.data.store.features import WARM_UP_STEPS
from crosswind.data.store.store import Store
from crosswind.models.explain.cohort.own_segments import GRID_COLUMNS
from crosswind.models.explain.evidence.step_grid import Rows

# Numbers alone, in any order: of long runs the run's name in every row would cost more than all else.
_STEPS = f"""
with runs as (select unnest(?) as run_id, unnest(?) as run)
select run, rank, step, {", ".join(GRID_COLUMNS)} from step join runs using (run_id)
where step >= {WARM_UP_STEPS}
"""  # noqa: S608 - names of columns

# By the clock of each rank's node.
_SPANS = """
select run_id, rank, min(ts_ns) as begin_ns, max(ts_ns) as end_ns, count(*) as steps, min(step) as first,
    max(step) as last
from step where run_id in (select unnest(?)) group by run_id, rank
"""
ROWS_TOGETHER = 300_000  # of steps: more cost more to be put in order than to be read by another query


def ranks_of(store: Store, runs: Sequence[Run]) -> list[Rank]:
    """Return the records of all ranks of these runs."""
    with store.catalog.read() as session:
        return [rank for run in runs for rank in session.ranks.of(run.run_id)]


def spans_of(store: Store, runs: Sequence[Run]) -> pd.DataFrame:
    """Return from when to when each rank made its steps, and the first and last of their numbers.

    Columns: run_id rank begin_ns end_ns steps first last.
    """
    return store.lake.frame(_SPANS, [[run.run_id for run in runs]], within=time_of(runs))


def step_rows(store: Store, runs: Sequence[Run], spans: pd.DataFrame) -> Iterator[tuple[str, Rows]]:
    """Yield run id and step rows after warm-up of each run, columns run, rank, step and GRID_COLUMNS, in any order.

    Short runs are read together, long ones alone. spans: as `spans_of`. Raises: MalformedError.
    """
    counts = {str(run_id): int(rows) for run_id, rows in spans.groupby("run_id")["steps"].sum().items()}
    for together in _batches([run for run in runs if run.run_id in counts], counts):
        run_ids = [run.run_id for run in together]
        steps = store.lake.arrays(_STEPS, [run_ids, list(range(len(run_ids)))], within=time_of(together))
        for number, rows in _by_run(steps) if len(together) > 1 else [(0, steps)]:
            yield run_ids[number], rows


def _batches(runs: Sequence[Run], counts: Mapping[str, int]) -> Iterator[list[Run]]:
    """Yield runs of ROWS_TOGETHER rows at the most, and longer ones alone."""
    together: list[Run] = []
    rows = 0
    for run in runs:
        if together and rows + counts[run.run_id] > ROWS_TOGETHER:
            yield together
            together, rows = [], 0
        together.append(run)
        rows += counts[run.run_id]
    if together:
        yield together


def _by_run(steps: Rows) -> Iterator[tuple[int, Rows]]:
    """Yield the number of each run and its rows, which are stored in any order."""
    order = np.argsort(steps["run"], kind="stable")
    ordered = {name: column[order] for name, column in steps.items()}
    first = np.flatnonzero(np.append(True, np.diff(ordered["run"]) != 0)[: len(order)])
    for begin, end in zip(first, [*first[1:], len(order)], strict=True):
        yield int(ordered["run"][begin]), {name: column[begin:end] for name, column in ordered.items()}

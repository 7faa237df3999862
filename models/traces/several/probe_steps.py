"""The probe's records of a run's steps in the form of traces, so that a run without captures is analysed as others are.

A record has the lengths of a step's phases, not their order: here they follow one another as below. Of a step's
exposed communication, what the rank that waits least still spends is the transfer, as in every collective.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crosswind.data.lake.steps_summary import time_of
from crosswind.data.schema.run import Run
from crosswind.data.schema.steps import PHASES, STEP
from crosswind.data.store.features import WARM_UP_STEPS
from crosswind.data.store.store import Store
from crosswind.data.store.traced_runs import stream_of_run, traced_among
from crosswind.data.traces.columns import EventColumns
from crosswind.data.traces.trace import NONE, Group, Integers, Kind, Place, RankTrace
from crosswind.models.traces.graph.build import PROBE

KINDS = {
    "input": Kind.IO,
    "compute": Kind.USEFUL,
    "comm": Kind.MESSAGE,
    "checkpoint": Kind.IO,
    "other": Kind.ANNOTATION,
}
NAMES = (*(f"{phase} of a step" for phase in PHASES), "step")
ROWS_MAX = 200_000  # of all ranks: the last steps of longer runs
FEWEST = 10  # steps of a run of very many ranks
LOOP = (Place("training loop"),)
NOTES = (
    "from the probe's records: the phases of a step are placed one after another",
    f"the first {WARM_UP_STEPS} steps are warm-up, and left out",
)


def ranks_of_run(store: Store, run_id: str, *, every_capture: bool = False) -> Iterator[RankTrace]:
    """Yield the stored traces of a run, of one capture or every one, or, without any, its steps as traces, by rank.

    Raises: NotFoundError for a run that is not stored, or has neither traces nor steps.
    """
    with store.catalog.read() as session:
        run = session.runs.get(run_id)
    steps = None if traced_among(store, [run]) else _rows(store, run)
    if steps is None or not len(steps):
        yield from stream_of_run(store, run_id, every_capture=every_capture)
        return
    ranks = tuple(pc.unique(steps["rank"]).to_pylist())
    of_rank = steps["rank"].to_numpy()
    for rank in sorted(ranks):
        yield _trace(rank, tuple(sorted(ranks)), steps.filter(pa.array(of_rank == rank)))


def _rows(store: Store, run: Run) -> pa.Table | None:
    """Return the run's last steps after warm-up, times in ns; None where no step of any run is stored."""
    if STEP.name not in store.lake.sets():
        return None
    within, columns = time_of([run]), ["duration_seconds", *(f"{phase}_seconds" for phase in PHASES)]
    count = "select max(step) as last, count(distinct rank) as ranks from step where run_id = $1 and rank is not null"
    [facts] = store.lake.table(count, [run.run_id], within=within).to_pylist()
    if facts["last"] is None:
        return None
    first = max(WARM_UP_STEPS, facts["last"] + 1 - max(FEWEST, ROWS_MAX // max(1, facts["ranks"])))
    where, values = "run_id = ? and step >= ? and rank is not null", [run.run_id, first]
    return store.lake.counters(STEP.name, columns, where=where, parameters=values, within=within)


def _trace(rank: int, ranks: tuple[int, ...], rows: pa.Table) -> RankTrace:
    rows = rows.sort_by([("step", "ascending"), ("ts_ns", "ascending")])
    number, begin, columns = _numbers(rows, "step"), _numbers(rows, "ts_ns"), EventColumns()
    _add(columns, (begin, _numbers(rows, "duration_seconds")), (Kind.STEP, len(PHASES)), number)
    at = begin.copy()
    for name, phase in enumerate(PHASES):
        length = _numbers(rows, f"{phase}_seconds")
        _add(columns, (at, length), (KINDS[phase], name), number)
        at += length
    group = Group("all ranks", ranks, len(ranks))
    facts = {"rank": rank, "world_size": len(ranks), "source": f"steps of rank {rank}", "format": PROBE}
    return RankTrace(columns.events(), NAMES, LOOP, (group,), notes=NOTES, **facts)  # type: ignore[arg-type]


def _add(columns: EventColumns, times: tuple[Integers, Integers], what: tuple[Kind, int], number: Integers) -> None:
    """Add the steps, or a phase of those that have it."""
    rows, (kind, name) = np.flatnonzero(times[1] > 0), what
    is_shared = kind == Kind.MESSAGE
    facts = {"kind": kind, "name": name, "place": 0, "group": 0 if is_shared else NONE}
    values = {column: np.full(len(rows), value) for column, value in facts.items()}
    values |= {"begin_ns": times[0][rows], "duration_ns": times[1][rows]}
    columns.add(len(rows), values | {"sequence": number[rows] if is_shared else np.full(len(rows), NONE)})


def _numbers(rows: pa.Table, name: str) -> Integers:
    numbers: Integers = pc.fill_null(rows[name], 0).to_numpy().astype(np.int64)
    return numbers

"""Reading from the store what explanations are made of."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from crosswind.data.lake.delta import differences
from crosswind.data.lake.series import in_order
from crosswind.data.lake.steps_summary import time_of
from crosswind.data.schema.run import Rank, Run
from crosswind.data.store.features import WARM_UP_STEPS
from crosswind.data.store.store import Store
from crosswind.models.explain.cells import Cells
from crosswind.models.explain.during import sampled_during
from crosswind.models.explain.segments import GRID_COLUMNS, Segments, segments_from
from crosswind.models.explain.step_grid import Rows

# Numbers alone, in any order: of long runs the run's name in every row would cost more than all else.
_STEPS = f"""
with runs as (select unnest(?) as run_id, unnest(?) as run)
select run, rank, step, {", ".join(GRID_COLUMNS)} from step join runs using (run_id)
where step >= {WARM_UP_STEPS}
"""  # noqa: S608 - names of columns

# When each rank made which steps, by the clock of its node.
_SPANS = """
select run_id, rank, min(ts_ns) as begin_ns, max(ts_ns) as end_ns, count(*) as steps, min(step) as first,
    max(step) as last
from step where run_id in (select unnest(?)) group by run_id, rank
"""
_WHERE = "(node, device) in (select (unnest(?), unnest(?))) and ts_ns between ? and ?"
WAITED = ("run_queue_wait_seconds_total", "main_thread_run_queue_wait_seconds_total")
FEWEST_SAMPLES = 3
ROWS_TOGETHER = 300_000  # of steps: more cost more to be put in order than to be asked for again


def own_segments(
    store: Store, runs: Sequence[Run], ranks: Sequence[Rank], spans: pd.DataFrame
) -> Iterator[tuple[str, Segments]]:
    """Run id and segments of every run that recorded collectives, without what other runs tell of it.

    ranks: all of these runs; spans: as `spans_of`. Raises: MalformedError.
    """
    waited, during = _thread_waits(store, ranks, spans), sampled_during(store.lake, runs, spans)
    for run_id, rows in _step_rows(store, runs, spans):
        of_run = during.get(run_id, {}) | {"comm_thread_wait": waited.get(run_id, float("nan"))}
        segments = segments_from(run_id, rows, of_run)
        if segments is not None:
            yield run_id, segments


def _step_rows(store: Store, runs: Sequence[Run], spans: pd.DataFrame) -> Iterator[tuple[str, Rows]]:
    """The steps' rows of each run: short runs are read together, long ones each by itself."""
    rows_of = {str(run_id): int(rows) for run_id, rows in spans.groupby("run_id")["steps"].sum().items()}
    for together in _batches([run for run in runs if run.run_id in rows_of], rows_of):
        run_ids = [run.run_id for run in together]
        steps = store.lake.arrays(_STEPS, [run_ids, list(range(len(run_ids)))], within=time_of(together))
        for number, rows in _by_run(steps) if len(together) > 1 else [(0, steps)]:
            yield run_ids[number], rows


def _batches(runs: Sequence[Run], rows_of: Mapping[str, int]) -> Iterator[list[Run]]:
    together: list[Run] = []
    rows = 0
    for run in runs:
        if together and rows + rows_of[run.run_id] > ROWS_TOGETHER:
            yield together
            together, rows = [], 0
        together.append(run)
        rows += rows_of[run.run_id]
    if together:
        yield together


def _by_run(steps: Rows) -> Iterator[tuple[int, Rows]]:
    """The rows of each run by its number, in which they were not stored."""
    order = np.argsort(steps["run"], kind="stable")
    ordered = {name: column[order] for name, column in steps.items()}
    first = np.flatnonzero(np.append(True, np.diff(ordered["run"]) != 0)[: len(order)])
    for begin, end in zip(first, [*first[1:], len(order)], strict=True):
        yield int(ordered["run"][begin]), {name: column[begin:end] for name, column in ordered.items()}


def spans_of(store: Store, runs: Sequence[Run]) -> pd.DataFrame:
    """Return when each rank made its steps: run_id rank begin_ns end_ns steps first last, the last two step numbers."""
    return store.lake.frame(_SPANS, [[run.run_id for run in runs]], within=time_of(runs))


def comm_thread_waits(store: Store, runs: Sequence[Run]) -> dict[str, float]:
    """Seconds a step that a rank's threads other than its loop's waited for a core: the worst rank of each run."""
    return _thread_waits(store, ranks_of(store, runs), spans_of(store, runs))


def ranks_of(store: Store, runs: Sequence[Run]) -> list[Rank]:
    """The records of all ranks of these runs."""
    with store.catalog.read() as session:
        return [rank for run in runs for rank in session.runs.ranks(run.run_id)]


def _thread_waits(store: Store, ranks: Sequence[Rank], spans: pd.DataFrame) -> dict[str, float]:
    rows = [(rank.run_id, rank.rank, rank.node, str(rank.pid)) for rank in ranks]
    processes = pd.DataFrame(rows, columns=["run_id", "rank", "node", "device"])
    named = spans[spans["end_ns"] > spans["begin_ns"]].merge(processes, on=["run_id", "rank"])
    if named.empty or "process" not in store.lake.sets():
        return {}
    within = int(named["begin_ns"].min()), int(named["end_ns"].max())
    places = [named["node"].tolist(), named["device"].tolist(), *within]
    samples = store.lake.counters("process", WAITED, where=_WHERE, parameters=places, within=within)
    return {str(run_id): float(seconds) for run_id, seconds in _waited(samples, named).dropna().items()}


def _waited(samples: pa.Table, spans: pd.DataFrame) -> pd.Series:
    """Seconds a step that the other threads waited, by run: of its worst rank.

    Growth while the rank made its steps, over as many steps as it made from the first sample to the last. One process
    may make several runs: what it waited from the last sample of one to the first of the next counts in neither.
    """
    series = in_order(samples)
    whole, main = (differences(series, name)["growth"].to_numpy(np.float64, na_value=np.nan) for name in WAITED)
    places = spans.assign(from_ns=spans["begin_ns"], until_ns=spans["end_ns"] + 1)
    cells = Cells.of(samples, places, by=("node", "device"))
    of = spans.iloc[cells.place]
    waited = whole - main
    is_scalar = cells.sums((~np.isnan(waited)).astype(float), skipped=1) > 0
    is_enough = is_scalar & (cells.last - cells.first >= FEWEST_SAMPLES)
    times = samples["ts_ns"].to_numpy()[cells.order]
    seen = np.where(is_enough, times[cells.last - 1] - times[np.minimum(cells.first, len(times) - 1)], 0)
    steps = of["steps"].to_numpy() * seen / (of["end_ns"] - of["begin_ns"]).to_numpy()
    per_step = np.where(seen > 0, cells.sums(waited, skipped=1) / np.where(seen > 0, steps, 1.0), np.nan)
    worst: pd.Series = pd.Series(per_step).groupby(of["run_id"].to_numpy()).max()
    return worst

"""Reading from the store what explanations are made of."""

from collections.abc import Sequence

import pandas as pd
import pyarrow as pa

from crosswind.data.delta import differences
from crosswind.data.features import WARM_UP_STEPS
from crosswind.data.run import Rank, Run
from crosswind.data.series import in_order
from crosswind.data.steps_summary import time_of
from crosswind.data.store import Store
from crosswind.models.explain.during import sampled_during
from crosswind.models.explain.segments import GRID_COLUMNS, Segments, segments_of

# Numbers alone, in any order: of long runs the run's name in every row would cost more than all else.
_STEPS = f"""
with runs as (select unnest(?) as run_id, unnest(?) as run)
select run, rank, step, {", ".join(GRID_COLUMNS)} from step join runs using (run_id)
where step >= {WARM_UP_STEPS}
"""  # noqa: S608 - names of columns

# Of each rank the process, and when it made its first and its last step.
_SPANS = """
with ranks as (select unnest(?) as run_id, unnest(?) as node, unnest(?) as device, unnest(?) as rank)
select run_id, rank, node, device, min(ts_ns) as begin_ns, max(ts_ns) as end_ns, count(*) as steps
from step join ranks using (run_id, rank) group by all having end_ns > begin_ns
"""
_WHERE = "(node, device) in (select (unnest(?), unnest(?))) and ts_ns between ? and ?"
WAITED = ("run_queue_wait_seconds_total", "main_thread_run_queue_wait_seconds_total")
FEWEST_SAMPLES = 3


def read_segments(store: Store, runs: Sequence[Run]) -> dict[str, Segments]:
    """The segments of every run that recorded collectives, by run id."""
    run_ids = [run.run_id for run in runs]
    steps = store.lake.frame(_STEPS, [run_ids, list(range(len(run_ids)))], within=time_of(runs))
    waited, during = comm_thread_waits(store, runs), sampled_during(store, runs)
    found = {}
    for number, rows in steps.groupby("run", sort=False):
        run_id = run_ids[int(str(number))]
        of_run = during.get(run_id, {}) | {"comm_thread_wait": waited.get(run_id, float("nan"))}
        segments = segments_of(run_id, rows, of_run)
        if segments is not None:
            found[run_id] = segments
    return found


def comm_thread_waits(store: Store, runs: Sequence[Run]) -> dict[str, float]:
    """Seconds a step that a rank's threads other than its loop's waited for a core: the worst rank of each run."""
    if "process" not in store.lake.sets():
        return {}
    with store.catalog.read() as session:
        ranks = [rank for run in runs for rank in session.runs.ranks(run.run_id)]
    if not ranks:
        return {}
    spans = store.lake.frame(_SPANS, _columns(ranks), within=time_of(runs))
    if spans.empty:
        return {}
    within = int(spans["begin_ns"].min()), int(spans["end_ns"].max())
    places = [spans["node"].tolist(), spans["device"].tolist(), *within]
    samples = store.lake.counters("process", WAITED, where=_WHERE, parameters=places, within=within)
    return {str(run_id): float(seconds) for run_id, seconds in _waited(samples, spans).dropna().items()}


def _columns(ranks: Sequence[Rank]) -> list[object]:
    return [
        [rank.run_id for rank in ranks],
        [rank.node for rank in ranks],
        [str(rank.pid) for rank in ranks],
        [rank.rank for rank in ranks],
    ]


def _waited(samples: pa.Table, spans: pd.DataFrame) -> pd.Series:
    """Seconds a step that the other threads waited, by run: of its worst rank.

    Growth while the rank made its steps, over as many steps as it made from the first sample to the last.
    """
    spans = spans.assign(span=range(len(spans)))
    found = samples.select(["node", "device", "ts_ns"]).to_pandas()
    found = found.assign(row=range(len(found))).merge(spans.drop(columns=["run_id", "rank"]), on=["node", "device"])
    found = found[found["ts_ns"].between(found["begin_ns"], found["end_ns"])]
    # One process may make several runs: each has its own first sample.
    rows = samples.take(found["row"].to_numpy()).append_column("span", pa.array(found["span"]))
    series = in_order(rows, apart=["span"])
    whole, main = (differences(series, name)["growth"].array for name in WAITED)
    of_span = found.assign(whole=whole, main=main).groupby("span")
    told = spans.join(of_span.agg(first=("ts_ns", "min"), last=("ts_ns", "max"), samples=("ts_ns", "size")), on="span")
    grown = of_span[["whole", "main"]].sum(min_count=1).reindex(spans["span"])
    steps = told["steps"] * (told["last"] - told["first"]) / (told["end_ns"] - told["begin_ns"])
    waited = (grown["whole"] - grown["main"]).array / steps.where((told["samples"] >= FEWEST_SAMPLES) & (steps > 0))
    worst: pd.Series = waited.groupby(told["run_id"]).max()
    return worst

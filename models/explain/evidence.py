"""Reading from the store what explanations are made of."""

from collections.abc import Sequence

import pandas as pd

from crosswind.data.run import Run
from crosswind.data.store import Store
from crosswind.models.explain.segments import Segments, segments_of

_STEPS = "select * from step where run_id in (select unnest(?)) order by run_id, step, rank"

# Growth of the counters of each rank's process while its run lasted, over the steps it made meanwhile.
_OTHER_THREADS = """
with ranks as (select unnest(?) as run_id, unnest(?) as node, unnest(?) as device, unnest(?) as rank),
spans as (
    select run_id, rank, min(ts_ns) as begin_ns, max(ts_ns) as end_ns, count(*) as steps
    from step where run_id in (select run_id from ranks) group by run_id, rank
),
grown as (
    select ranks.run_id, ranks.rank, count(*) as samples,
        max(run_queue_wait_seconds_total) - min(run_queue_wait_seconds_total)
        - (max(main_thread_run_queue_wait_seconds_total) - min(main_thread_run_queue_wait_seconds_total)) as waited,
        (max(process.ts_ns) - min(process.ts_ns)) / (any_value(end_ns) - any_value(begin_ns)) as covered,
        covered * any_value(steps) as steps
    from process join ranks using (node, device) join spans on spans.run_id = ranks.run_id and spans.rank = ranks.rank
    where process.ts_ns between begin_ns and end_ns group by all
)
select run_id, max(waited / steps) as waited from grown where samples >= 3 and steps > 0 group by run_id
"""


def read_segments(store: Store, runs: Sequence[Run]) -> dict[str, Segments]:
    """The segments of every run that recorded collectives, by run id."""
    steps = store.lake.frame(_STEPS, [[run.run_id for run in runs]])
    waited = comm_thread_waits(store, runs)
    found = {}
    for run_id, rows in steps.groupby("run_id"):
        segments = segments_of(str(run_id), rows, waited.get(str(run_id), float("nan")))
        if segments is not None:
            found[str(run_id)] = segments
    return found


def comm_thread_waits(store: Store, runs: Sequence[Run]) -> dict[str, float]:
    """Seconds a step that a rank's threads other than its loop's waited for a core: the worst rank of each run."""
    if "process" not in store.lake.sets():
        return {}
    with store.catalog.read() as session:
        ranks = [rank for run in runs for rank in session.runs.ranks(run.run_id)]
    if not ranks:
        return {}
    columns = [
        [rank.run_id for rank in ranks],
        [rank.node for rank in ranks],
        [str(rank.pid) for rank in ranks],
        [rank.rank for rank in ranks],
    ]
    frame: pd.DataFrame = store.lake.frame(_OTHER_THREADS, columns)
    return {str(run_id): float(waited) for run_id, waited in zip(frame["run_id"], frame["waited"], strict=True)}

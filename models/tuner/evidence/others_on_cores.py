"""The share of the cores' time that others took on a run's nodes while it made its steps.

The cores' time is sampled node by node, that of the run's own ranks process by process: the difference is others',
whatever the configuration. Nodes of one `boot_id` are one machine, counted once.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from crosswind.data.lake.steps_summary import time_of
from crosswind.data.schema.run import Rank, Run
from crosswind.data.store.store import Store

FEWEST_SAMPLES = 3
_BUSY = " + ".join(f"{mode}_seconds_total" for mode in ("user", "nice", "system", "irq", "softirq"))
# A second: by how many seconds cores, processes and groups grew on each machine.
_CORES = f"""
with spans as (select unnest(?) as run_id, unnest(?) as node, unnest(?) as from_ns, unnest(?) as until_ns),
of_core as (
    select run_id, boot_id, node, device,
        (max({_BUSY}) - min({_BUSY})) * 1e9 / nullif(max(ts_ns) - min(ts_ns), 0) as used
    from cpu join spans using (node) where ts_ns between from_ns and until_ns and device <> 'all'
    group by all having count(*) >= {FEWEST_SAMPLES}
),
of_node as (select run_id, boot_id, node, sum(used) as used from of_core group by all)
select run_id, boot_id, median(used) as used from of_node group by all
"""  # noqa: S608 - names of columns
_OWN = f"""
with spans as (
    select unnest(?) as run_id, unnest(?) as node, unnest(?) as device, unnest(?) as from_ns, unnest(?) as until_ns
),
of_process as (
    select run_id, boot_id, node, device,
        (max(run_seconds_total) - min(run_seconds_total)) * 1e9 / nullif(max(ts_ns) - min(ts_ns), 0) as used
    from process join spans using (node, device) where ts_ns between from_ns and until_ns
    group by all having count(*) >= {FEWEST_SAMPLES}
)
select run_id, boot_id, sum(used) as used from of_process group by all
"""  # noqa: S608 - a number


def others_shares(store: Store, runs: Sequence[Run], ranks: Sequence[Rank], spans: pd.DataFrame) -> dict[str, float]:
    """Return by run the share of its machines' busy core time that was others', of the machine where it is largest.

    Runs whose nodes' cores or ranks were not sampled are left out. `spans` as models.explain.cohort.step_rows.spans_of
    gives them. A rank's children, such as loaders, count as others.
    """
    if spans.empty or not {"cpu", "process"} <= set(store.lake.sets()):
        return {}
    places = _places(ranks, spans)
    within = time_of(runs)
    cores = [places[name].tolist() for name in ("run_id", "node", "begin_ns", "end_ns")]
    of_ranks = [places[name].tolist() for name in ("run_id", "node", "device", "begin_ns", "end_ns")]
    busy = store.lake.frame(_CORES, cores, within=within)
    own = store.lake.frame(_OWN, of_ranks, within=within)
    both = busy.merge(own, on=["run_id", "boot_id"], suffixes=("", "_own")).dropna()
    both = both[both["used"] > 0]
    share = (1 - both["used_own"] / both["used"]).clip(0.0, 1.0)
    worst: Mapping[object, float] = share.groupby(both["run_id"]).max().to_dict()
    return {str(run_id): float(value) for run_id, value in worst.items()}


def _places(ranks: Sequence[Rank], spans: pd.DataFrame) -> pd.DataFrame:
    """Return a row a rank: its node, its process, and the beginning and end of its steps."""
    rows = [(rank.run_id, rank.rank, rank.node, str(rank.pid)) for rank in ranks]
    processes = pd.DataFrame(rows, columns=["run_id", "rank", "node", "device"])
    return spans[spans["end_ns"] > spans["begin_ns"]].merge(processes, on=["run_id", "rank"])

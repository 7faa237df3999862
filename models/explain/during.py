"""What was sampled on a run's nodes while it made its steps."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from crosswind.data.lake import Lake
from crosswind.data.run import Run
from crosswind.data.steps_summary import time_of
from crosswind.data.store import Store
from crosswind.models.conditions.sampled import sampled

# Column of a segment -> the rate a second that it comes of, of the worst node: docs/models/conditions.md.
RATES: Mapping[str, str] = {
    "throttled": "throttled_ratio_recent",
    "out_of_order": "out_of_order_recent",
    "timeouts": "retransmit_timeouts_recent",
    "overlimits": "queue_overlimits_recent",
}
NO_QUOTA = "throttled"  # a group without a quota is not sampled: nothing stops it

# When a run made its steps, by its own clock; the time of a step.
_SPANS = """
select run_id, min(ts_ns) as begin_ns, max(ts_ns) as end_ns, (max(step) - min(step)) as steps
from step where run_id in (select unnest(?)) group by run_id having steps > 0
"""


def sampled_during(store: Store, runs: Sequence[Run]) -> dict[str, dict[str, float]]:
    """Of each run what RATES names, each a step: seconds or counts of its worst node, NaN where nobody sampled."""
    spans = store.lake.frame(_SPANS, [[run.run_id for run in runs]], within=time_of(runs)).set_index("run_id")
    told = [run for run in runs if run.run_id in spans.index and run.nodes]
    if not told:
        return {}
    spans = spans.loc[[run.run_id for run in told]]
    rates = _rates(store.lake, told, spans)
    step_seconds = ((spans["end_ns"] - spans["begin_ns"]) / spans["steps"] / 1e9).to_numpy(np.float64)
    table = pd.DataFrame({name: rates[rate].to_numpy() * step_seconds for name, rate in RATES.items()})
    was_sampled = table.drop(columns=NO_QUOTA).notna().any(axis=1)
    table[NO_QUOTA] = table[NO_QUOTA].mask(table[NO_QUOTA].isna() & was_sampled, 0.0)
    return dict(zip(spans.index, table.to_dict("records"), strict=True))


def _rates(lake: Lake, runs: Sequence[Run], spans: pd.DataFrame) -> pd.DataFrame:
    rows = [
        (number, node, int(begin), int(end) + 1)
        for number, (run, begin, end) in enumerate(zip(runs, spans["begin_ns"], spans["end_ns"], strict=True))
        for node in dict.fromkeys(run.nodes)
    ]
    places = pd.DataFrame(rows, columns=["moment", "at_node", "from_ns", "until_ns"])
    return sampled(lake, places, len(runs), names=tuple(RATES.values()))

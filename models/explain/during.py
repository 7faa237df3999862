"""Samples on a run's nodes while it made its steps."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from crosswind.data.lake.lake import Lake
from crosswind.data.schema.run import Run
from crosswind.models.explain.rates import CLOCKS, RATES
from crosswind.models.explain.rates_during import rates_during

GAUGES = {rate.column for rate in RATES if rate.is_gauge}
NO_QUOTA = "throttled"  # a group without a quota is not sampled: nothing stops it


def sampled_during(lake: Lake, runs: Sequence[Run], spans: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Of each run what RATES names, each a step: seconds or counts of its worst node, NaN where nobody sampled.

    spans: as `spans_of`. Of gauges it is the mean. Raises: MalformedError.
    """
    by_run = spans.groupby("run_id")
    whole = by_run.agg(
        begin_ns=("begin_ns", "min"), end_ns=("end_ns", "max"), first=("first", "min"), last=("last", "max")
    )
    whole = whole[whole["last"] > whole["first"]]
    placed = [run for run in runs if run.run_id in whole.index and run.nodes]
    if not placed:
        return {}
    whole = whole.loc[[run.run_id for run in placed]]
    rates = rates_during(lake, _places(placed, whole), len(placed), RATES)
    step_seconds = ((whole["end_ns"] - whole["begin_ns"]) / (whole["last"] - whole["first"]) / 1e9).to_numpy(np.float64)
    table = {name: values if name in GAUGES else values * step_seconds for name, values in rates.items()}
    others = [values for name, values in table.items() if name not in (NO_QUOTA, *CLOCKS)]
    was_sampled = ~np.isnan(others).all(axis=0)
    quota = table[NO_QUOTA]
    table[NO_QUOTA] = np.where(np.isnan(quota) & was_sampled, 0.0, quota)
    return dict(zip(whole.index, pd.DataFrame(table).to_dict("records"), strict=True))


def _places(runs: Sequence[Run], spans: pd.DataFrame) -> pd.DataFrame:
    rows = [
        (number, node, int(begin), int(end) + 1)
        for number, (run, begin, end) in enumerate(zip(runs, spans["begin_ns"], spans["end_ns"], strict=True))
        for node in dict.fromkeys(run.nodes)
    ]
    return pd.DataFrame(rows, columns=["moment", "at_node", "from_ns", "until_ns"])

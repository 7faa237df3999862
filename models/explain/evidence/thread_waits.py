"""Run-queue wait of the threads of a rank other than its loop's, from samples of its process."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from crosswind.data.lake.delta import differences
from crosswind.data.lake.lake import Lake
from crosswind.data.lake.series import in_order
from crosswind.data.schema.run import Rank
from crosswind.models.explain.evidence.device_windows import DeviceWindows

_WHERE = "(node, device) in (select (unnest(?), unnest(?))) and ts_ns between ? and ?"
WAITED = ("run_queue_wait_seconds_total", "main_thread_run_queue_wait_seconds_total")
FEWEST_SAMPLES = 3


def thread_waits(lake: Lake, ranks: Sequence[Rank], spans: pd.DataFrame) -> dict[str, float]:
    """Return by run id the seconds a step that the other threads of its worst rank waited for a core.

    spans: as `spans_of`. Runs of which too little was sampled are left out. Raises: MalformedError.
    """
    rows = [(rank.run_id, rank.rank, rank.node, str(rank.pid)) for rank in ranks]
    processes = pd.DataFrame(rows, columns=["run_id", "rank", "node", "device"])
    named = spans[spans["end_ns"] > spans["begin_ns"]].merge(processes, on=["run_id", "rank"])
    if named.empty or "process" not in lake.sets():
        return {}
    within = int(named["begin_ns"].min()), int(named["end_ns"].max())
    places = [named["node"].tolist(), named["device"].tolist(), *within]
    samples = lake.counters("process", WAITED, where=_WHERE, parameters=places, within=within)
    return {str(run_id): float(seconds) for run_id, seconds in _worst(samples, named).dropna().items()}


def _worst(samples: pa.Table, spans: pd.DataFrame) -> pd.Series:
    """Return the seconds a step of each run's worst rank.

    That is growth while the rank made its steps, over as many steps as it made from the first sample to the last. One
    process may make several runs: its wait from the last sample of one to the first of the next counts in neither.
    """
    series = in_order(samples)
    whole, main = (differences(series, name)["growth"].to_numpy(np.float64, na_value=np.nan) for name in WAITED)
    places = spans.assign(from_ns=spans["begin_ns"], until_ns=spans["end_ns"] + 1)
    windows = DeviceWindows.of(samples, places, by=("node", "device"))
    of = spans.iloc[windows.place]
    waited = whole - main
    is_recorded = windows.sums((~np.isnan(waited)).astype(float), skipped=1) > 0
    is_enough = is_recorded & (windows.last - windows.first >= FEWEST_SAMPLES)
    times = samples["ts_ns"].to_numpy()[windows.order]
    sampled = np.where(is_enough, times[windows.last - 1] - times[np.minimum(windows.first, len(times) - 1)], 0)
    steps = of["steps"].to_numpy() * sampled / (of["end_ns"] - of["begin_ns"]).to_numpy()
    per_step = np.where(sampled > 0, windows.sums(waited, skipped=1) / np.where(sampled > 0, steps, 1.0), np.nan)
    worst: pd.Series = pd.Series(per_step).groupby(of["run_id"].to_numpy()).max()
    return worst

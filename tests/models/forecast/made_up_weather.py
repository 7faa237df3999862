"""Runs under a made-up weather: a daily cycle and a factor that drifts, felt by some workloads more than by others."""

import numpy as np
import pandas as pd

HOUR_NS = 3_600_000_000_000
BEGIN_NS = 1_700_000_000_000_000_000
DAYS = 30
DRIFT_HOURS = 48.0
SENSITIVITY = {"stiff": 0.5, "touchy": 1.0}


def weather(
    count: int, *, daily: float, drift: float, noise: float = 0.1, seed: int = 0, days: int = 30
) -> pd.DataFrame:
    """Columns started_ns workload log_ratio, and `truth`, the log ratio without the noise of a single run."""
    draw = np.random.default_rng(seed)
    hours = np.sort(draw.uniform(0, 24 * DAYS, count))
    factor = np.zeros(count)
    for index in range(1, count):
        kept = np.exp((hours[index - 1] - hours[index]) / DRIFT_HOURS)
        factor[index] = kept * factor[index - 1] + drift * np.sqrt(1 - kept**2) * draw.normal()
    workload = draw.choice(list(SENSITIVITY), count)
    felt = np.array([SENSITIVITY[name] for name in workload])
    started_ns = BEGIN_NS + (hours * HOUR_NS).astype(np.int64)
    in_day = (started_ns % (24 * HOUR_NS)) / HOUR_NS
    truth = felt * (daily * np.sin(2 * np.pi * in_day / 24) + factor)
    log_ratio = truth + draw.normal(0, noise, count)
    return pd.DataFrame({"started_ns": started_ns, "workload": workload, "log_ratio": log_ratio, "truth": truth})


def shown(runs: pd.DataFrame) -> pd.DataFrame:
    """Return what a model may see of the runs."""
    return runs.drop(columns="truth")

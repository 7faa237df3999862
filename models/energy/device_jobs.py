"""The measured jobs of one device: static power, batch curves, and slowdown and draw under power limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.energy.batch_curve import BatchCurve

COLUMNS = ("job", "batch", "limit_watts", "seconds", "watts")
# The least power seen in any job is static power and a little dynamic power of a device that hardly computes.
STATIC_SHARE = 0.97
DYNAMIC_WATTS_MIN = 0.5


def check_jobs(table: pd.DataFrame) -> None:
    """Refuses tables without the columns, or without positive numbers in them. Raises: InvalidInputError."""
    missing = [column for column in COLUMNS if column not in table.columns]
    if missing or len(table) == 0:
        lacks = f"has no column {', '.join(missing)}" if missing else "has no row"
        raise InvalidInputError(f"the table of jobs {lacks}, expected rows of {', '.join(COLUMNS)}")
    for column in COLUMNS[1:]:
        values = pd.to_numeric(table[column], errors="coerce").to_numpy(dtype=np.float64)
        good = np.isfinite(values) & (values > 0)
        if not good.all():
            row = int(np.argmin(good))
            raise InvalidInputError(f"{column} of row {row} is {table[column].iloc[row]}, expected a positive number")


@dataclass(frozen=True)
class JobCurves:
    """One job at the device's highest power limit, against the batch."""

    seconds: BatchCurve
    log_batches: Floats  # (n,), rising
    log_dynamic_watts: Floats  # (n,), above static power

    def log_watts(self, log_batches: Floats) -> Floats:
        """Log watts above static power at any batches (n,); beyond the measured ones those of the nearest."""
        return np.asarray(np.interp(log_batches, self.log_batches, self.log_dynamic_watts), dtype=np.float64)

    def log_joules(self, log_batches: Floats) -> Floats:
        """Log joules above static power in an epoch, (n,)."""
        return self.log_watts(log_batches) + self.seconds.log_seconds(log_batches)


@dataclass(frozen=True)
class DeviceJobs:
    """One device. Rows under limits are kept as logarithms: headroom, slowdown, draw, each (n_rows,)."""

    static_watts: float
    jobs: Mapping[str, JobCurves]
    log_headrooms: Floats
    log_slowdowns: Floats
    log_draws: Floats

    @classmethod
    def of(cls, table: pd.DataFrame) -> Self:
        """Learns from rows of COLUMNS, a batch of each job measured at its highest limit. Raises: InvalidInputError."""
        check_jobs(table)
        static = STATIC_SHARE * float(table["watts"].min())
        jobs: dict[str, JobCurves] = {}
        limited: list[Floats] = []
        for job, rows in table.groupby("job"):
            curves = _curves(rows[rows["limit_watts"] == rows["limit_watts"].max()], static)
            jobs[str(job)] = curves
            limited.append(_limited(rows, curves, static))
        headrooms, slowdowns, draws = np.concatenate(limited, axis=1)
        return cls(static, jobs, headrooms, slowdowns, draws)


def log_dynamic(watts: Floats, static_watts: float) -> Floats:
    """Log of the power above static power, of DYNAMIC_WATTS_MIN at least, (n,)."""
    return np.asarray(np.log(np.maximum(watts - static_watts, DYNAMIC_WATTS_MIN)), dtype=np.float64)


def logs(table: pd.DataFrame, column: str) -> Floats:
    """The logarithm of a column, shape (n_rows,)."""
    return np.asarray(np.log(table[column].to_numpy(dtype=np.float64)), dtype=np.float64)


def _curves(top: pd.DataFrame, static: float) -> JobCurves:
    top = top.groupby("batch", as_index=False)[["seconds", "watts"]].median()
    batches, seconds = logs(top, "batch"), logs(top, "seconds")
    watts = log_dynamic(top["watts"].to_numpy(dtype=np.float64), static)
    return JobCurves(BatchCurve.of(batches, seconds), batches, watts)


def _limited(rows: pd.DataFrame, curves: JobCurves, static: float) -> Floats:
    batches = logs(rows, "batch")
    free = curves.seconds.log_seconds(batches)
    demand = curves.log_watts(batches)
    headrooms = log_dynamic(rows["limit_watts"].to_numpy(dtype=np.float64), static) - demand
    draws = log_dynamic(rows["watts"].to_numpy(dtype=np.float64), static) - demand
    return np.stack([headrooms, logs(rows, "seconds") - free, draws])

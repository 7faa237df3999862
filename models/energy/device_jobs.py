"""The measured jobs of one device: static power, batch curves, and slowdown and draw under power limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
import pandas as pd

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.energy.batch_curve import BatchCurve
from crosswind.models.energy.surface import Surface

COLUMNS = ("job", "limit_watts", "seconds", "watts")
BATCH = ("batch",)  # the numbers that jobs differ by, unless others are named
Curve: TypeAlias = BatchCurve | Surface
# The least power seen in any job is static power and a little dynamic power of a device that hardly computes.
STATIC_SHARE = 0.97
DYNAMIC_WATTS_MIN = 0.5


def check_jobs(table: pd.DataFrame, coordinates: Sequence[str] = BATCH) -> None:
    """Refuses tables without the columns, or without positive numbers in them. Raises: InvalidInputError."""
    job, *numbers = (*COLUMNS, *coordinates)
    missing = [column for column in (job, *numbers) if column not in table.columns]
    if missing or len(table) == 0:
        lacks = f"has no column {', '.join(missing)}" if missing else "has no row"
        raise InvalidInputError(f"the table of jobs {lacks}, expected rows of {', '.join((job, *numbers))}")
    for column in numbers:
        values = pd.to_numeric(table[column], errors="coerce").to_numpy(dtype=np.float64)
        good = np.isfinite(values) & (values > 0)
        if not good.all():
            row = int(np.argmin(good))
            raise InvalidInputError(f"{column} of row {row} is {table[column].iloc[row]}, expected a positive number")


@dataclass(frozen=True)
class JobCurves:
    """One job at the device's highest power limit, against the logarithms of its coordinates."""

    seconds: Curve
    watts: Surface  # above static power

    def log_joules(self, points: Floats) -> Floats:
        """Log joules above static power in an epoch at points (n, n_coordinates), (n,)."""
        return self.watts.logs(points) + self.seconds.logs(points)


@dataclass(frozen=True)
class DeviceJobs:
    """One device. Rows under limits are kept as logarithms: headroom, slowdown, draw, each (n_rows,)."""

    static_watts: float
    jobs: Mapping[str, JobCurves]
    log_headrooms: Floats
    log_slowdowns: Floats
    log_draws: Floats

    @classmethod
    def of(cls, table: pd.DataFrame, coordinates: Sequence[str] = BATCH) -> Self:
        """Learns from rows of COLUMNS and coordinates, some of each job at its highest limit.

        Raises: InvalidInputError.
        """
        check_jobs(table, coordinates)
        static = STATIC_SHARE * float(table["watts"].min())
        jobs: dict[str, JobCurves] = {}
        limited: list[Floats] = []
        for job, rows in table.groupby("job"):
            curves = _curves(rows[rows["limit_watts"] == rows["limit_watts"].max()], coordinates, static)
            jobs[str(job)] = curves
            limited.append(_limited(rows, points_of(rows, coordinates), curves, static))
        headrooms, slowdowns, draws = np.concatenate(limited, axis=1)
        return cls(static, jobs, headrooms, slowdowns, draws)


def log_dynamic(watts: Floats, static_watts: float) -> Floats:
    """Log of the power above static power, of DYNAMIC_WATTS_MIN at least, (n,)."""
    return np.asarray(np.log(np.maximum(watts - static_watts, DYNAMIC_WATTS_MIN)), dtype=np.float64)


def logs(table: pd.DataFrame, column: str) -> Floats:
    """The logarithm of a column, shape (n_rows,)."""
    return np.asarray(np.log(table[column].to_numpy(dtype=np.float64)), dtype=np.float64)


def points_of(table: pd.DataFrame, coordinates: Sequence[str]) -> Floats:
    """The logarithms of the coordinates, shape (n_rows, n_coordinates)."""
    return np.stack([logs(table, column) for column in coordinates], axis=1)


def _curves(top: pd.DataFrame, coordinates: Sequence[str], static: float) -> JobCurves:
    top = top.groupby(list(coordinates), as_index=False)[["seconds", "watts"]].median()
    points, seconds = points_of(top, coordinates), logs(top, "seconds")
    watts = log_dynamic(top["watts"].to_numpy(dtype=np.float64), static)
    curve = BatchCurve.of(points[:, 0], seconds) if len(coordinates) == 1 else Surface(points, seconds)
    return JobCurves(curve, Surface(points, watts))


def _limited(rows: pd.DataFrame, points: Floats, curves: JobCurves, static: float) -> Floats:
    free, demand = curves.seconds.logs(points), curves.watts.logs(points)
    headrooms = log_dynamic(rows["limit_watts"].to_numpy(dtype=np.float64), static) - demand
    draws = log_dynamic(rows["watts"].to_numpy(dtype=np.float64), static) - demand
    return np.stack([headrooms, logs(rows, "seconds") - free, draws])

"""Epoch time and dynamic power at a device's highest limit, scaled from other devices by one anchor a job."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.energy.device_jobs import BATCH, DeviceJobs, log_dynamic, logs, points_of

RATIO_VARIANCE_MIN = 0.01  # of log seconds between jobs: the least assumed between two devices


@dataclass(frozen=True)
class Anchor:
    """One job's run at the target's highest limit for it."""

    point: Floats  # (n_coordinates,), logarithms
    log_seconds: float
    log_watts: float  # above static power
    limit_watts: float


@dataclass(frozen=True)
class Free:
    """Rows as they would be at the highest limit, and that limit; each (n_rows,)."""

    log_seconds: Floats
    log_watts: Floats  # above static power
    anchor_log_watts: Floats
    anchor_limit_watts: Floats


@dataclass(frozen=True)
class DeviceScaling:
    """Source devices, weighted by the agreement between jobs of the ratios of the anchors' times to theirs."""

    devices: Mapping[str, DeviceJobs]
    anchors: Mapping[str, Anchor]
    weights: Mapping[str, float]
    coordinates: tuple[str, ...] = BATCH

    @classmethod
    def of(
        cls,
        devices: Mapping[str, DeviceJobs],
        target: pd.DataFrame,
        static_watts: float,
        coordinates: Sequence[str] = BATCH,
    ) -> Self:
        """Takes the middle one of each job's runs at its highest limit as anchor.

        Raises: InvalidInputError without common jobs.
        """
        top = target[at_top(target)]
        anchors = {str(job): _anchor(rows, coordinates, static_watts) for job, rows in top.groupby("job")}
        precisions = {name: _precision(device, anchors) for name, device in devices.items()}
        total = sum(precisions.values())
        if total == 0:
            raise InvalidInputError(f"no source ran one of the jobs {', '.join(anchors)}, expected one at least")
        weights = {name: precision / total for name, precision in precisions.items()}
        return cls(devices, anchors, weights, tuple(coordinates))

    def free(self, table: pd.DataFrame) -> Free:
        """Return rows of job and coordinates without a limit.

        Raises: InvalidInputError without an anchor or a source.
        """
        columns = np.empty((4, len(table)))
        jobs = table["job"].to_numpy(dtype=str)
        points = points_of(table, self.coordinates)
        for job in np.unique(jobs):
            rows = jobs == job
            columns[:, rows] = self._of_job(str(job), points[rows])
        return Free(*columns)

    def _of_job(self, job: str, asked: Floats) -> Floats:
        by_source = {name: device.jobs[job] for name, device in self.devices.items() if job in device.jobs}
        if job not in self.anchors or not by_source:
            where = "no run at the target's highest limit" if by_source else "run on no source device"
            raise InvalidInputError(f"job {job} has {where}, expected one at least")
        anchor, shares = self.anchors[job], [self.weights[name] for name in by_source]
        points = np.vstack([asked, anchor.point])
        seconds = np.average([curves.seconds.logs(points) for curves in by_source.values()], axis=0, weights=shares)
        joules = [curves.log_joules(points) for curves in by_source.values()]
        energy = np.average(joules, axis=0, weights=shares)
        slower, hungrier = seconds[:-1] - seconds[-1], energy[:-1] - energy[-1]
        same = np.ones(len(asked))
        return np.stack(
            [
                anchor.log_seconds + slower,
                anchor.log_watts + hungrier - slower,  # an epoch's dynamic energy is what devices have in common
                anchor.log_watts * same,
                anchor.limit_watts * same,
            ]
        )


def at_top(table: pd.DataFrame) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Return the rows at their job's highest limit, as a mask (n_rows,)."""
    limits = table["limit_watts"]
    return np.asarray(limits == limits.groupby(table["job"].astype(str)).transform("max"), dtype=np.bool_)


def _anchor(runs: pd.DataFrame, coordinates: Sequence[str], static_watts: float) -> Anchor:
    """The run whose coordinates are nearest to the median of all; the first of these where some are as near."""
    points = points_of(runs, coordinates)
    middle = int(np.argmin(np.sum((points - np.median(points, axis=0)) ** 2, axis=1)))
    run = runs.iloc[middle : middle + 1]
    watts = log_dynamic(run["watts"].to_numpy(dtype=np.float64), static_watts)
    numbers = [logs(run, "seconds"), watts, run["limit_watts"].to_numpy(dtype=np.float64)]
    return Anchor(points[middle], *(float(values[0]) for values in numbers))


def _precision(device: DeviceJobs, anchors: Mapping[str, Anchor]) -> float:
    ratios = [
        anchor.log_seconds - float(device.jobs[job].seconds.logs(anchor.point[None, :])[0])
        for job, anchor in anchors.items()
        if job in device.jobs
    ]
    return 1 / max(float(np.var(ratios)), RATIO_VARIANCE_MIN) if ratios else 0.0

"""Epoch time and power of known jobs on a new device, from other devices and a few runs a job."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeAlias

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.energy.device_jobs import (
    BATCH,
    STATIC_SHARE,
    DeviceJobs,
    check_jobs,
    log_dynamic,
    logs,
    points_of,
)
from crosswind.models.energy.power_limit import PowerLimitCurve
from crosswind.models.surrogate.surrogate import NotFittedError
from crosswind.models.transfer.device_scaling import DeviceScaling, Free, at_top
from crosswind.models.transfer.multi_task_gp import MultiTaskGp

Texts: TypeAlias = "pd.Series[Any]"

DESCRIBED = ("job", "limit_watts")  # and the coordinates
FIT_DEVIATION = 0.1  # of log seconds and log watts around the curves, a prior
RATIO_DEVIATION = 0.3  # of a job's log slowdown over the curve's
RUNS_OVER_JOBS_MIN = 3  # more runs than jobs, before residuals are learned


@dataclass(frozen=True)
class LimitedDevice:
    """The target under limits; jobs may slow down more or less than the curve."""

    static_watts: float
    curve: PowerLimitCurve
    slowdown_ratios: Mapping[str, float] = field(default_factory=dict)  # of log slowdowns, 1 where a job is not named

    def under(self, table: pd.DataFrame, free: Free) -> tuple[Floats, Floats]:
        """Log seconds and log watts of rows under their limits, each (n_rows,)."""
        slower, drawn = self.effects(table, free)
        ratios = np.array([self.slowdown_ratios.get(str(job), 1.0) for job in table["job"]])
        return free.log_seconds + ratios * slower, np.log(self.static_watts + np.exp(free.log_watts + drawn))

    def effects(self, table: pd.DataFrame, free: Free) -> tuple[Floats, Floats]:
        """Log slowdown and log draw against the anchor's limit by the curve, each (n_rows,)."""
        limits = table["limit_watts"].to_numpy(dtype=np.float64)
        headroom = log_dynamic(limits, self.static_watts) - free.log_watts
        at_anchor = log_dynamic(free.anchor_limit_watts, self.static_watts) - free.anchor_log_watts
        return (
            self.curve.log_slowdown(headroom) - self.curve.log_slowdown(at_anchor),
            self.curve.log_draw(headroom) - self.curve.log_draw(at_anchor),
        )


@dataclass
class DeviceTransfer:
    """Time and power on a device from its runs, other devices' batch curves, and the law of power limits.

    Each job needs one run at the device's highest limit. An epoch's time and dynamic energy against the batch are the
    sources', scaled to it; limits act through headroom, which means the same on every device. More runs correct the
    batch curves, then static power and the lowest clock, and the slowdown of each job under limits.
    """

    seed: int = 0
    coordinates: tuple[str, ...] = BATCH  # columns of positive numbers that a job's runs differ by
    _scaling: DeviceScaling | None = field(default=None, init=False, repr=False)
    _device: LimitedDevice | None = field(default=None, init=False, repr=False)
    _corrections: dict[str, MultiTaskGp] = field(default_factory=dict, init=False, repr=False)

    @property
    def weights(self) -> Mapping[str, float]:
        """Source device -> its weight. Raises: NotFittedError."""
        if self._scaling is None:
            raise NotFittedError("DeviceTransfer.weights came before fit")
        return dict(self._scaling.weights)

    def fit(self, sources: Mapping[str, pd.DataFrame], target: pd.DataFrame) -> Self:
        """Learns from a table of `COLUMNS` and coordinates a source device, and from the target's runs.

        Raises: InvalidInputError.
        """
        if not sources:
            raise InvalidInputError("there is no source device, expected one at least")
        check_jobs(target, self.coordinates)
        devices = {name: DeviceJobs.of(table, self.coordinates) for name, table in sources.items()}
        curve = PowerLimitCurve.of(
            np.concatenate([jobs.log_headrooms for jobs in devices.values()]),
            np.concatenate([jobs.log_slowdowns for jobs in devices.values()]),
            np.concatenate([jobs.log_draws for jobs in devices.values()]),
        )
        static = STATIC_SHARE * float(target["watts"].min())
        self._scale(LimitedDevice(static, curve), devices, target)
        self._scale(self._calibrated(target), devices, target)
        self._device = self._with_job_ratios(target)
        return self

    def medians(self, X: pd.DataFrame) -> tuple[Floats, Floats]:
        """Medians of seconds an epoch and of watts, (n_rows,) each, for rows of `DESCRIBED` and the coordinates.

        Raises: NotFittedError, InvalidInputError for a job without an anchor or a source.
        """
        columns = (*DESCRIBED, *self.coordinates)
        missing = [column for column in columns if column not in X.columns]
        if missing:
            raise InvalidInputError(f"the table has no column {', '.join(missing)}, expected {', '.join(columns)}")
        if self._device is None:
            raise NotFittedError("DeviceTransfer.medians came before fit")
        seconds, watts = self._device.under(X, self._free(X))
        return np.exp(seconds), np.exp(watts)

    def _free(self, table: pd.DataFrame) -> Free:
        assert self._scaling is not None  # noqa: S101  # set before
        free = self._scaling.free(table)
        return replace(
            free,
            log_seconds=free.log_seconds + self._correction("seconds", table),
            log_watts=free.log_watts + self._correction("watts", table),
        )

    def _correction(self, name: str, table: pd.DataFrame) -> Floats:
        if name not in self._corrections:
            return np.zeros(len(table))
        return np.log(self._corrections[name].predict(self._described(table)).at(0.5))

    def _scale(self, device: LimitedDevice, sources: Mapping[str, DeviceJobs], target: pd.DataFrame) -> None:
        """Scale sources to anchors above this device's static power, and correct the batch curves."""
        self._scaling = DeviceScaling.of(sources, target, device.static_watts, self.coordinates)
        self._device, self._corrections = device, {}
        self._correct_batches(target[at_top(target)])

    def _correct_batches(self, top: pd.DataFrame) -> None:
        assert self._device is not None  # noqa: S101  # set by fit
        free, described = self._free(top), self._described(top)
        watts = log_dynamic(top["watts"].to_numpy(dtype=np.float64), self._device.static_watts)
        self._correct("seconds", described, logs(top, "seconds") - free.log_seconds)
        self._correct("watts", described, watts - free.log_watts)

    def _described(self, table: pd.DataFrame) -> pd.DataFrame:
        points = points_of(table, self.coordinates)
        named = {f"log_{name}": points[:, place] for place, name in enumerate(self.coordinates)}
        return pd.DataFrame({"job": table["job"].to_numpy(dtype=str), **named})

    def _with_job_ratios(self, target: pd.DataFrame) -> LimitedDevice:
        """The device with each job's own slowdown under limits, from its runs."""
        assert self._device is not None  # noqa: S101  # set before
        free = self._free(target)
        slower, _ = self._device.effects(target, free)
        seen = logs(target, "seconds") - free.log_seconds
        return replace(self._device, slowdown_ratios=_ratios(target["job"], slower, seen))

    def _correct(self, name: str, described: pd.DataFrame, left: Floats) -> None:
        """Learns residuals: log ratios (n_runs,)."""
        if len(left) < described["job"].nunique() + RUNS_OVER_JOBS_MIN:
            return
        # Its noise is learned too, so that noise is not followed. Leaving runs out would show little: they are the ends
        # of the batches and limits, chosen so that nothing else is near.
        empty = (described.iloc[:0], np.empty(0))
        self._corrections[name] = MultiTaskGp(seed=self.seed).fit(*empty, described, np.exp(left))

    def _calibrated(self, target: pd.DataFrame) -> LimitedDevice:
        """The device whose static power, steepness and lowest clock fit the runs best, near the prior."""
        assert self._device is not None  # noqa: S101  # set by fit
        before, free = self._device, self._free(target)
        seconds, watts = logs(target, "seconds"), logs(target, "watts")
        priors = np.array([[np.log(1 / STATIC_SHARE - 1), 1.0], [0.0, 0.3], [before.curve.log_headroom_min, 0.7]])
        least = before.static_watts / STATIC_SHARE

        def device(theta: Floats) -> LimitedDevice:
            static = least / (1 + float(np.exp(theta[0])))
            return LimitedDevice(static, before.curve.of_device(float(np.exp(theta[1])), float(theta[2])))

        def errors(theta: Floats) -> Floats:
            log_seconds, log_watts = device(theta).under(target, _with_static_power(free, before, device(theta)))
            misses = np.concatenate([log_seconds - seconds, log_watts - watts]) / FIT_DEVIATION
            return np.concatenate([misses, (theta - priors[:, 0]) / priors[:, 1]])

        return device(least_squares(errors, priors[:, 0], loss="soft_l1").x)


def _with_static_power(free: Free, before: LimitedDevice, after: LimitedDevice) -> Free:
    """The rows with another static power: what is no longer static is dynamic."""
    less = before.static_watts - after.static_watts
    return replace(
        free,
        log_watts=np.log(np.maximum(np.exp(free.log_watts) + less, 0.5)),
        anchor_log_watts=np.log(np.maximum(np.exp(free.anchor_log_watts) + less, 0.5)),
    )


def _ratios(jobs: Texts, predicted: Floats, seen: Floats) -> dict[str, float]:
    """Ratios of seen to predicted effect by job, by least squares, near 1 where the effects are small."""
    held = (FIT_DEVIATION / RATIO_DEVIATION) ** 2
    names = jobs.to_numpy(dtype=str)
    ratios = {}
    for job in np.unique(names):
        x, y = predicted[names == job], seen[names == job]
        ratios[str(job)] = max(float((x @ y + held) / (x @ x + held)), 0.0)
    return ratios

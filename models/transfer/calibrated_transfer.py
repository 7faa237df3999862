"""Transfer to a device with bands as wide as the transfer erred between the sources."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.energy.device_jobs import BATCH, points_of
from crosswind.models.surrogate.surrogate import NotFittedError
from crosswind.models.surrogate.validation import CAUTIOUS_DEVIATION
from crosswind.models.transfer.device_scaling import at_top
from crosswind.models.transfer.distance_band import DistanceBand
from crosswind.models.transfer.to_device import DeviceTransfer

LEFT_OUT_MAX = 6  # sources, each predicted from the others, of which the bands are learned
QUANTITIES = ("seconds", "watts", "joules")
LIMIT = "limit_watts"


@dataclass(frozen=True)
class OnDevice:
    """Quantiles of an epoch's seconds, of watts, and of an epoch's joules."""

    seconds: Prediction
    watts: Prediction
    joules: Prediction


@dataclass
class CalibratedTransfer:
    """A `DeviceTransfer`; its bands are of its errors on each source, predicted from the others.

    On a source that is left out, it is anchored where the target is: at the runs of the same jobs whose coordinates,
    and shares of the highest limit, are the nearest. Errors grow with the distance from the nearest anchor. Errors of
    one job on one device are alike, so that each such pair counts once, and so does one of which nothing is known.
    With a single source, nothing can be left out, and the band is a cautious guess.
    """

    seed: int = 0
    coordinates: tuple[str, ...] = BATCH
    _transfer: DeviceTransfer | None = field(default=None, init=False, repr=False)
    _bands: dict[str, DistanceBand] = field(default_factory=dict, init=False, repr=False)
    _anchors: dict[str, Floats] = field(default_factory=dict, init=False, repr=False)  # by job, as `_places`

    def fit(self, sources: Mapping[str, pd.DataFrame], target: pd.DataFrame) -> Self:
        """Learns from a table of `COLUMNS` and coordinates a source device, and the target's runs.

        Raises: InvalidInputError.
        """
        self._transfer = DeviceTransfer(self.seed, self.coordinates).fit(sources, target)
        self._anchors = self._places_by_job(target)
        errors = pd.concat([_no_errors(), *self._left_out(sources, target)], ignore_index=True)
        groups = np.asarray(errors.groupby(["device", "job"]).ngroup(), dtype=np.int64)
        distances = errors[["apart", "limit_apart"]].to_numpy(np.float64)
        self._bands = {
            name: DistanceBand.of(errors[name].to_numpy(np.float64), distances, groups, CAUTIOUS_DEVIATION)
            for name in QUANTITIES
        }
        return self

    def predict(self, X: pd.DataFrame) -> OnDevice:
        """Quantiles of rows of job, limit and coordinates. Raises: NotFittedError, InvalidInputError."""
        if self._transfer is None:
            raise NotFittedError("CalibratedTransfer.predict came before fit")
        seconds, watts = self._transfer.medians(X)
        distances = self._distances(X, self._anchors)
        medians = zip(QUANTITIES, (seconds, watts, seconds * watts), strict=True)
        return OnDevice(*(self._bands[name].around(middle, distances) for name, middle in medians))

    def _left_out(self, sources: Mapping[str, pd.DataFrame], target: pd.DataFrame) -> Iterator[pd.DataFrame]:
        """Yield the log errors on each source, learned from the others."""
        for name in list(sources)[-LEFT_OUT_MAX:] if len(sources) > 1 else ():
            others = {other: table for other, table in sources.items() if other != name}
            ran_elsewhere = set().union(*(set(table["job"]) for table in others.values()))
            table = sources[name][sources[name]["job"].isin(ran_elsewhere & set(target["job"]))]
            is_anchor = self._like(target, table)
            if is_anchor.any() and not is_anchor.all():
                yield self._errors(others, table[is_anchor], table[~is_anchor]).assign(device=name)

    def _errors(self, others: Mapping[str, pd.DataFrame], anchors: pd.DataFrame, left: pd.DataFrame) -> pd.DataFrame:
        try:
            transfer = DeviceTransfer(self.seed, self.coordinates).fit(others, anchors)
        except InvalidInputError:  # too few rows under a limit without this source
            return _no_errors()
        seconds, watts = transfer.medians(left)
        slower, hungrier = np.log(left["seconds"] / seconds), np.log(left["watts"] / watts)
        errors = {"job": left["job"], "seconds": slower, "watts": hungrier, "joules": slower + hungrier}
        distances = self._distances(left, self._places_by_job(anchors))
        return pd.DataFrame(errors).assign(apart=distances[:, 0], limit_apart=distances[:, 1])

    def _like(self, target: pd.DataFrame, table: pd.DataFrame) -> NDArray[np.bool_]:
        """Return the rows, as a mask, that are to this table what the target's runs are to the target."""
        mask = np.zeros(len(table), dtype=np.bool_)
        jobs = table["job"].to_numpy(dtype=str)
        for job, runs in target.groupby("job"):
            if not (rows := np.flatnonzero(jobs == job)).size:
                continue
            shares = _places(runs, self.coordinates, float(runs[LIMIT].max()))
            own = table.iloc[rows]
            gaps = _gaps(shares, _places(own, self.coordinates, float(own[LIMIT].max())))
            top = np.flatnonzero(at_top(own))
            for run, is_top in enumerate(at_top(runs)):
                candidates = top if is_top else np.arange(len(rows))
                mask[rows[candidates[np.argmin(gaps[run, candidates].sum(axis=1))]]] = True
        return mask

    def _places_by_job(self, table: pd.DataFrame) -> dict[str, Floats]:
        return {str(job): _places(rows, self.coordinates, 1.0) for job, rows in table.groupby("job")}

    def _distances(self, table: pd.DataFrame, anchors: Mapping[str, Floats]) -> Floats:
        """Distances of coordinates and of limits from the nearest anchor of the row's job, (n_rows, 2)."""
        distances, jobs = np.zeros((len(table), 2)), table["job"].to_numpy(dtype=str)
        places = _places(table, self.coordinates, 1.0)
        for job in np.unique(jobs):
            rows = np.flatnonzero(jobs == job)
            gaps = _gaps(places[rows], anchors[str(job)])
            nearest = np.argmin(gaps.sum(axis=2), axis=1)
            distances[rows] = gaps[np.arange(len(rows)), nearest]
        return distances


def _places(table: pd.DataFrame, coordinates: tuple[str, ...], highest_watts: float) -> Floats:
    """Logarithms of the coordinates and of the share of a limit, (n_rows, n_coordinates + 1)."""
    limits = np.log(table[LIMIT].to_numpy(dtype=np.float64) / highest_watts)
    return np.column_stack([points_of(table, coordinates), limits])


def _gaps(left: Floats, right: Floats) -> Floats:
    """Distances of coordinates and of limits, (n_left, n_right, 2)."""
    apart = np.abs(left[:, None, :] - right[None, :, :])
    return np.stack([np.sqrt(np.sum(apart[:, :, :-1] ** 2, axis=2)), apart[:, :, -1]], axis=2)


def _no_errors() -> pd.DataFrame:
    numbers = {name: np.empty(0) for name in (*QUANTITIES, "apart", "limit_apart")}
    return pd.DataFrame({"device": np.empty(0, dtype=str), "job": np.empty(0, dtype=str), **numbers})

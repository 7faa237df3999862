"""The scaling of a run: speed, efficiency and price over numbers of nodes, and how many to ask for."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosswind.data.schema.carbon import JOULES_PER_KILOWATT_HOUR, Origin
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Prediction
from crosswind.models.energy.of_run import EnergyForecast

HOUR = 3600.0


@dataclass(frozen=True)
class Price:
    """The power and price of a node at work; None where unknown."""

    node_watts: float | None = None
    per_node_hour: float | None = None
    carbon_grams_per_kilowatt_hour: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not 0 <= value < np.inf:
                raise InvalidInputError(f"{name} {value}: expected 0 or more")


@dataclass(frozen=True)
class ScalePoint:
    """One number of nodes: the median run time with its 90 % interval, and what it takes.

    `speedup` and `efficiency` compare with the smallest number of nodes; `joules`, `cost` and `carbon_grams` are None
    where neither the price nor a meter or a data sheet tells them. `energy_origin` says which of the latter two did;
    None where the price gave the watts of a node.
    """

    node_count: int
    seconds: float
    low_seconds: float
    high_seconds: float
    speedup: float
    efficiency: float
    node_hours: float
    joules: float | None
    cost: float | None
    carbon_grams: float | None
    energy_origin: Origin | None = None


@dataclass(frozen=True)
class ScalingCurve:
    """Points by rising number of nodes, and three of these numbers.

    `knee` has the best ratio of efficiency to time (Eager, Zahorjan and Lazowska 1989, "Speedup versus efficiency in
    parallel systems"), `cheapest` the fewest node-hours, `fastest` the shortest median; of two as good the smaller.
    """

    points: tuple[ScalePoint, ...]
    knee: int
    cheapest: int
    fastest: int


def scaling_curve(
    node_counts: Sequence[int],
    prediction: Prediction,
    price: Price,
    energies: Sequence[EnergyForecast | None] = (),
) -> ScalingCurve:
    """The curve from predictions of the same work, one row a number of nodes, and the energy of each where it is known.

    Raises: InvalidInputError.
    """
    counts = np.array(node_counts, dtype=np.int64)
    if len(counts) == 0 or counts[0] < 1 or np.any(np.diff(counts) <= 0):
        raise InvalidInputError(f"numbers of nodes {list(node_counts)}: expected some, rising, the first at least 1")
    median, low, high = (prediction.at(level) for level in (0.5, 0.05, 0.95))
    speedup = median[0] / median
    points = []
    for row, count in enumerate(map(int, counts)):
        node_hours = float(count * median[row]) / HOUR
        gained = (float(speedup[row]), float(speedup[row] * counts[0] / count))
        band = (float(median[row]), float(low[row]), float(high[row]))
        energy = energies[row] if energies and price.node_watts is None else None
        costs = _price_of(node_hours, price, energy)
        origin = None if energy is None else energy.origin
        points.append(ScalePoint(count, *band, *gained, node_hours, *costs, energy_origin=origin))
    return ScalingCurve(
        tuple(points),
        knee=int(counts[np.argmax(speedup / counts / median)]),
        cheapest=int(counts[np.argmin(counts * median)]),
        fastest=int(counts[np.argmin(median)]),
    )


def within(curve: ScalingCurve, deadline_seconds: float) -> int | None:
    """The number of nodes of fewest node-hours whose upper bound keeps the deadline; None when none does.

    For an elastic job: ask with what is left of its work; more nodes than it has means to expand, fewer to shrink.
    """
    kept = [point for point in curve.points if point.high_seconds <= deadline_seconds]
    return min(kept, key=lambda point: (point.node_hours, point.node_count)).node_count if kept else None


def _price_of(
    node_hours: float, price: Price, energy: EnergyForecast | None
) -> tuple[float | None, float | None, float | None]:
    """Joules, cost, grams of carbon dioxide."""
    joules = None if price.node_watts is None else price.node_watts * node_hours * HOUR
    if energy is not None:
        joules = energy.joules
    cost = None if price.per_node_hour is None else price.per_node_hour * node_hours
    intensity = price.carbon_grams_per_kilowatt_hour
    carbon = None if joules is None or intensity is None else joules / JOULES_PER_KILOWATT_HOUR * intensity
    return joules, cost, carbon

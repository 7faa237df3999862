"""The scaling of a run: speed, efficiency and price over numbers of nodes, and how many to ask for."""

from collections.abc import Sequence

import numpy as np

from crosswind.data.schema.answers.advice import ScalePoint, ScalingCurve
from crosswind.data.schema.answers.energy import EnergyForecast
from crosswind.data.schema.carbon import JOULES_PER_KILOWATT_HOUR
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Prediction
from crosswind.data.schema.question import Price

HOUR = 3600.0


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

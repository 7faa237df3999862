"""A node's power between configurations of one workload on one system that were metered."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from crosswind.data.schema.prediction import Floats
from crosswind.models.energy.metered import MeteredRun
from crosswind.models.energy.surface import Surface

CONFIGURATIONS_MIN = 8  # from which on the effects of numbers such as the batch or a power limit are seen
COORDINATES_MAX = 4
BEYOND_MAX = 2.0  # times the largest value that was metered, or a part of the smallest
LEFT_OUT_MAX = 20  # of configurations or workloads, evenly spread; leaving out each of hundreds takes a second
CONFIGURATION_DEVIATION = 0.1  # of log power from a configuration to another, a guess that weighs as much as one
REPEAT_DEVIATION = 0.05  # of log power from run to run, a prior that weighs REPEAT_RUNS runs
REPEAT_RUNS = 3


def power_between(runs: Sequence[MeteredRun], asked: Mapping[str, float], nodes: int) -> tuple[float, float] | None:
    """Median watts of a node and the deviation of their logarithm, by the numbers that runs of a workload differ by.

    asked: the parameters that are numbers. None where too few configurations were metered, or none near these numbers.
    """
    numbers = [_numbers(run.numbers, run.measured.node_count) for run in runs]
    wanted = _numbers(asked, nodes)
    shared = set(wanted).intersection(*numbers)
    names = sorted(name for name in shared if len({of_run[name] for of_run in numbers}) > 1)
    if not 1 <= len(names) <= COORDINATES_MAX:
        return None
    logs = pd.DataFrame(np.log([[of_run[name] for name in names] for of_run in numbers]), columns=names)
    log_watts = np.log([run.measured.node_watts for run in runs])
    by_point = logs.assign(_watts=log_watts).groupby(names)["_watts"]
    points, values = by_point.median().reset_index()[names].to_numpy(), by_point.median().to_numpy(np.float64)
    point = np.log([[wanted[name] for name in names]])
    if len(points) < CONFIGURATIONS_MIN or not _is_near(point[0], points):
        return None
    repeats = log_watts - by_point.transform("median").to_numpy(np.float64)
    [middle] = Surface(points, values).logs(point)
    return float(np.exp(middle)), float(np.hypot(_left_out_deviation(points, values), repeat_deviation(repeats)))


def repeat_deviation(errors: Floats) -> float:
    """Return the root of the mean square of errors (n,) of log power, drawn to REPEAT_DEVIATION."""
    squares = float(np.sum(errors**2)) + REPEAT_RUNS * REPEAT_DEVIATION**2
    return float(np.sqrt(squares / (len(errors) + REPEAT_RUNS)))


def _left_out_deviation(points: Floats, values: Floats) -> float:
    """Return the deviation of configurations from what the others say, drawn to CONFIGURATION_DEVIATION."""
    errors = []
    for place in range(0, len(points), 1 + (len(points) - 1) // LEFT_OUT_MAX):
        others = np.arange(len(points)) != place
        [guess] = Surface(points[others], values[others]).logs(points[place : place + 1])
        errors.append(guess - values[place])
    return float(np.sqrt((np.sum(np.square(errors)) + CONFIGURATION_DEVIATION**2) / (len(errors) + 1)))


def _is_near(point: Floats, points: Floats) -> bool:
    margin = np.log(BEYOND_MAX)
    return bool(np.all((points.min(axis=0) - margin <= point) & (point <= points.max(axis=0) + margin)))


def _numbers(parameters: Mapping[str, float], nodes: int) -> dict[str, float]:
    return {**parameters, "number of nodes": float(nodes)}

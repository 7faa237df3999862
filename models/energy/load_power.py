"""A node's power under the load of the next run, learned from metered runs and jobs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from crosswind.data.schema.answers.energy import MeterScope, PowerBasis
from crosswind.data.schema.prediction import Floats
from crosswind.models.energy.metered import MeteredRun
from crosswind.models.energy.node_power import MEDIAN_WATTS, NODES, NodePower, configurations
from crosswind.models.energy.power_surface import CONFIGURATION_DEVIATION, LEFT_OUT_MAX, power_between, repeat_deviation

# A guess, which weighs as much as one workload that was left out.
STRANGER_DEVIATION = 0.25  # of log power from workload to workload, or from system to system
LOG_RANKS = "log_ranks_per_node"
QUANTILE_90 = 1.6449  # standard deviations from a normal median to its 0.95 quantile


@dataclass(frozen=True)
class LearnedPower:
    """Median watts of a node, the deviation of their logarithm, and the runs and the meter they come from."""

    watts: float
    log_deviation: float
    node_count: int
    scope: MeterScope
    basis: PowerBasis
    runs: int


@dataclass(frozen=True)
class Load:
    """The next run; `node_count` None is derived from the ranks that earlier runs had on a node."""

    workload: str
    system: str
    cohort: str
    ranks: int | None  # None for a job, whose scale is its number of nodes
    node_count: int | None
    accelerator: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)  # of its parameters, those above 0


def learned_power(runs: Sequence[MeteredRun], load: Load) -> LearnedPower | None:
    """A node's power under a load, from the metered runs that are most alike; None without any.

    Meters of different scope are never combined: the widest among those runs counts.
    """
    basis, alike = _most_alike(runs, load)
    if not alike:
        return None
    scope = next(candidate for candidate in MeterScope if any(run.measured.scope is candidate for run in alike))
    alike = [run for run in alike if run.measured.scope is scope]
    nodes = load.node_count or _nodes(alike, load)
    if nodes is None:
        return None
    if basis is PowerBasis.WORKLOAD and (drawn := power_between(alike, load.numbers, nodes)) is not None:
        return LearnedPower(*drawn, nodes, scope, basis, len(alike))
    support = [run for run in _support(runs, alike, basis) if run.measured.scope is scope]
    table = configurations(_table(support), _watts(support))
    model = NodePower().fit(table.drop(columns=MEDIAN_WATTS), table[MEDIAN_WATTS].to_numpy(np.float64))
    errors = np.log(_watts(alike)) - np.log(model.predict(_table(alike)).at(0.5))
    quantiles = model.predict(_row(load, nodes))
    [median], [high] = quantiles.at(0.5), quantiles.at(0.95)
    level = float(np.median(errors))  # the workload's own deviation from the model, to which others contributed
    own = float(np.log(high / median)) / QUANTILE_90
    of_others = own if basis is PowerBasis.COHORT else _left_out_deviation(basis, model, table, load)
    deviations = [repeat_deviation(errors - level), of_others]
    watts = float(median) * np.exp(level)
    return LearnedPower(watts, float(np.hypot.reduce(deviations)), nodes, scope, basis, len(alike))


def _left_out_deviation(basis: PowerBasis, model: NodePower, table: pd.DataFrame, load: Load) -> float:
    """The deviation of log power that a configuration, or a workload, had when it was left out of what was learned.

    All runs of one err alike, so that it counts once. A guess weighs as much as one of them.
    """
    if basis is PowerBasis.WORKLOAD:
        keys, among, guess = ["workload", "system", *table.columns], ["workload", "system"], CONFIGURATION_DEVIATION
    elif load.workload in set(table["workload"]):
        keys, among, guess = ["workload", "system"], [], STRANGER_DEVIATION
    else:
        keys, among, guess = ["workload"], [], STRANGER_DEVIATION
    errors = list(_left_out(model, table, keys, among))
    return float(np.sqrt((np.sum(np.square(errors)) + guess**2) / (len(errors) + 1)))


def _left_out(model: NodePower, table: pd.DataFrame, keys: Sequence[str], among: Sequence[str]) -> Iterator[float]:
    """Yield the log error of each group of configurations, above the level of the others that agree in `among`."""
    groups = table.groupby(list(dict.fromkeys(keys)), dropna=False).ngroup().to_numpy()
    wider = table.groupby(list(among)).ngroup().to_numpy() if among else np.zeros(len(table), dtype=np.int64)
    every = np.unique(groups)
    for group in every[:: 1 + (len(every) - 1) // LEFT_OUT_MAX]:
        is_out = groups == group
        others = ~is_out & (wider == wider[is_out][0])
        if others.any():
            errors = model.without(is_out)
            yield float(np.mean(errors[is_out]) - np.median(errors[others]))


def _most_alike(runs: Sequence[MeteredRun], load: Load) -> tuple[PowerBasis, Sequence[MeteredRun]]:
    here = [run for run in runs if (run.workload, run.system) == (load.workload, load.system)]
    if cohort := [run for run in here if run.cohort == load.cohort]:
        return PowerBasis.COHORT, cohort
    if here:
        return PowerBasis.WORKLOAD, here
    return PowerBasis.RELATED, [run for run in runs if load.accelerator in ("", run.accelerator)]


def _support(runs: Sequence[MeteredRun], alike: Sequence[MeteredRun], basis: PowerBasis) -> Sequence[MeteredRun]:
    """Return the runs that a model is learned from; others on the system add the effect of the number of nodes."""
    if basis is not PowerBasis.WORKLOAD:
        return alike
    return [run for run in runs if run.system == alike[0].system]


def _nodes(runs: Sequence[MeteredRun], load: Load) -> int | None:
    """Number of nodes for the load's ranks, from the ranks that these runs had on a node; None where unknown."""
    ranks = [run.ranks_per_node for run in runs if run.ranks_per_node]
    if load.ranks is None or not ranks:
        return None
    return max(1, int(np.ceil(load.ranks / float(np.median(ranks)))))


def _watts(runs: Sequence[MeteredRun]) -> Floats:
    return np.array([run.measured.node_watts for run in runs])


def _table(runs: Sequence[MeteredRun]) -> pd.DataFrame:
    """Return the table that a node's power is learned from, one row a run."""
    return pd.DataFrame(
        {
            "workload": [run.workload for run in runs],
            "system": [run.system for run in runs],
            NODES: [float(run.measured.node_count) for run in runs],
            LOG_RANKS: [np.log2(run.ranks_per_node) if run.ranks_per_node else np.nan for run in runs],
        }
    )


def _row(load: Load, nodes: int) -> pd.DataFrame:
    """The next run as a row of that table."""
    log_ranks = np.nan if load.ranks is None else np.log2(load.ranks / nodes)
    row = {"workload": [load.workload], "system": [load.system], NODES: [float(nodes)], LOG_RANKS: [log_ranks]}
    return pd.DataFrame(row)

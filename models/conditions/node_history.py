"""Times of the newest runs on the same nodes, against the usual times of their cohorts.

The ratio of a run is log(seconds / median of the runs of its cohort that had ended before it began). Its pace is the
same ratio of its fast steps, the 5 % quantile of its steps' times: a disturbance of part of a run does not change it, a
machine that is slow throughout does.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats
from crosswind.models.conditions.moment import Moment

COHORT_RUNS_MIN = 3  # earlier ones of a cohort, before a run is compared with their median
NEWEST_WEIGHT = 0.3
NEWEST_RUNS = 10  # of the weighted mean; older ones would have 3 % of the weight
NODE_RUNS_PRIOR = 10.0  # runs of no effect that are added to those of a node
NODE_RUNS_MAX = 200
COLUMNS = ("last_log_ratio", "last_age_seconds", "recent_log_ratio", "last_pace", "recent_pace", "node_effect")


@dataclass(frozen=True)
class NodeHistory:
    """Ended runs in the order of their ends; arrays are (n_runs,), ratios NaN where nothing compares."""

    systems: tuple[str, ...]
    nodes: tuple[frozenset[str], ...]
    ended_ns: NDArray[np.int64]
    log_ratio: Floats
    pace: Floats


def node_history(ended: pd.DataFrame) -> NodeHistory:
    """Make the history of completed runs.

    ended: columns system, cohort, nodes, started_ns, ended_ns, run_seconds, step_p05_seconds.
    """
    ordered = ended.sort_values("ended_ns", kind="stable").reset_index(drop=True)
    return NodeHistory(
        tuple(ordered["system"]),
        tuple(map(frozenset, ordered["nodes"])),
        ordered["ended_ns"].to_numpy(np.int64),
        _log_ratios(ordered, "run_seconds"),
        _log_ratios(ordered, "step_p05_seconds"),
    )


def history_before(history: NodeHistory, moments: Sequence[Moment]) -> pd.DataFrame:
    """One row a moment, columns COLUMNS, from the runs on its nodes that had ended before it."""
    on_node = _by_node(history)
    rows = [_before(history, on_node, moment) for moment in moments]
    return pd.DataFrame(rows, columns=list(COLUMNS), dtype="float64")


def _log_ratios(ordered: pd.DataFrame, column: str) -> Floats:
    """Log ratios of the runs to the median of their cohort's runs that ended before they began, (n_runs,)."""
    seconds = ordered[column].to_numpy(np.float64, na_value=np.nan)
    logs = np.log(np.where(seconds > 0, seconds, np.nan))
    ended_ns, started_ns = ordered["ended_ns"].to_numpy(np.int64), ordered["started_ns"].to_numpy(np.int64)
    ratios = np.full(len(ordered), np.nan)
    for places in _members(ordered["cohort"]).values():
        ratios[places] = _above_earlier(logs[places], started_ns[places], ended_ns[places])
    return ratios


def _above_earlier(logs: Floats, started_ns: NDArray[np.int64], ended_ns: NDArray[np.int64]) -> Floats:
    """Distances of a cohort's runs, in the order of their ends, above the median of the runs before them, (n_runs,)."""
    above = np.full(len(logs), np.nan)
    earlier: list[float] = []  # in the order of size
    counted = 0
    counts = np.searchsorted(ended_ns, started_ns)
    for place in np.argsort(started_ns, kind="stable"):
        for log in logs[counted : counts[place]].tolist():
            if not np.isnan(log):
                insort(earlier, log)
        counted = max(counted, int(counts[place]))
        if len(earlier) >= COHORT_RUNS_MIN:
            middle = (len(earlier) - 1) // 2
            above[place] = logs[place] - (earlier[middle] + earlier[len(earlier) // 2]) / 2
    return above


def _members(cohorts: "pd.Series[str]") -> Mapping[str, NDArray[np.int64]]:
    members: dict[str, list[int]] = defaultdict(list)
    for place, cohort in enumerate(cohorts):
        members[cohort].append(place)
    return {cohort: np.array(places) for cohort, places in members.items()}


def _by_node(history: NodeHistory) -> Mapping[tuple[str, str], list[int]]:
    """Places of runs by system and node, in the order of their ends."""
    on_node: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, (system, nodes) in enumerate(zip(history.systems, history.nodes, strict=True)):
        for node in nodes:
            on_node[system, node].append(place)
    return on_node


def _newest(on_node: Mapping[tuple[str, str], list[int]], moment: Moment, end: int) -> list[int]:
    """Places below `end` of the newest runs on the moment's nodes, newest first."""
    newest: set[int] = set()
    for node in set(moment.nodes):
        places = on_node.get((moment.system, node), [])
        until = bisect_left(places, end)
        newest.update(places[max(until - NODE_RUNS_MAX, 0) : until])
    return sorted(newest, reverse=True)[:NODE_RUNS_MAX]


def _before(history: NodeHistory, on_node: Mapping[tuple[str, str], list[int]], moment: Moment) -> tuple[float, ...]:
    end = int(np.searchsorted(history.ended_ns, moment.at_ns))
    newest = _newest(on_node, moment, end)
    rated = np.array([place for place in newest if not np.isnan(history.log_ratio[place])], dtype=np.int64)
    if not len(rated):
        return (np.nan,) * len(COLUMNS)
    ratios, paces = history.log_ratio[rated], history.pace[rated]
    age = float(moment.at_ns - history.ended_ns[rated[0]]) * 1e-9
    effect = max(_effect(history, rated, node) for node in moment.nodes)
    return float(ratios[0]), age, _recent(ratios), float(paces[0]), _recent(paces), effect


def _recent(newest_first: Floats) -> float:
    """The exponentially weighted mean of the newest values that are known."""
    values = newest_first[~np.isnan(newest_first)][:NEWEST_RUNS]
    weights = (1 - NEWEST_WEIGHT) ** np.arange(len(values))
    return float(weights @ values / weights.sum()) if len(values) else float(np.nan)


def _effect(history: NodeHistory, rated: NDArray[np.int64], node: str) -> float:
    """Return how far a node's runs lie above all that are rated, in log ratios, drawn to 0 where there are few."""
    of_node = np.array([node in history.nodes[place] for place in rated])
    if not of_node.any():
        return 0.0
    ratios = history.log_ratio[rated]
    return float((ratios[of_node] - ratios.mean()).sum() / (of_node.sum() + NODE_RUNS_PRIOR))

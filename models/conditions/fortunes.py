"""Fortunes of the newest runs on the same nodes, against what their cohorts usually take.

The ratio of a run is log(seconds / median of those runs of its cohort that had ended before it began). Its pace is the
same of its fast steps, the 5 % quantile of its steps' times: what slows a part of a run leaves it alone, a machine that
is slow throughout does not.
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

COHORT_RUNS_MIN = 3  # earlier ones of a cohort, for an expectation to be worth comparing with
NEWEST_WEIGHT = 0.3
NEWEST_RUNS = 10  # of the weighted mean; older ones would have 3 % of the weight
NODE_RUNS_PRIOR = 10.0  # a node counts as if it had so many runs with no effect more
NODE_RUNS_MAX = 200
COLUMNS = ("last_log_ratio", "last_age_seconds", "recent_log_ratio", "last_pace", "recent_pace", "node_effect")


@dataclass(frozen=True)
class Fortunes:
    """Ended runs in the order of their ends; every array has one entry a run, ratios are NaN where nothing compares."""

    systems: tuple[str, ...]
    nodes: tuple[frozenset[str], ...]
    ended_ns: NDArray[np.int64]
    log_ratio: Floats
    pace: Floats


def fortunes_of(ended: pd.DataFrame) -> Fortunes:
    """Of runs that ended well: columns system, cohort, nodes, started_ns, ended_ns, run_seconds, step_p05_seconds."""
    ordered = ended.sort_values("ended_ns", kind="stable").reset_index(drop=True)
    return Fortunes(
        tuple(ordered["system"]),
        tuple(map(frozenset, ordered["nodes"])),
        ordered["ended_ns"].to_numpy(np.int64),
        _log_ratios(ordered, "run_seconds"),
        _log_ratios(ordered, "step_p05_seconds"),
    )


def fortunes_before(fortunes: Fortunes, moments: Sequence[Moment]) -> pd.DataFrame:
    """One row a moment, columns COLUMNS: of the runs on its nodes that had ended before it."""
    on_node = _by_node(fortunes)
    rows = [_before(fortunes, on_node, moment) for moment in moments]
    return pd.DataFrame(rows, columns=list(COLUMNS), dtype="float64")


def _log_ratios(ordered: pd.DataFrame, column: str) -> Floats:
    """Of each run to the median of its cohort's runs that ended before it began."""
    seconds = ordered[column].to_numpy(np.float64, na_value=np.nan)
    logs = np.log(np.where(seconds > 0, seconds, np.nan))
    ended_ns, started_ns = ordered["ended_ns"].to_numpy(np.int64), ordered["started_ns"].to_numpy(np.int64)
    ratios = np.full(len(ordered), np.nan)
    for places in _members(ordered["cohort"]).values():
        ratios[places] = _above_earlier(logs[places], started_ns[places], ended_ns[places])
    return ratios


def _above_earlier(logs: Floats, started_ns: NDArray[np.int64], ended_ns: NDArray[np.int64]) -> Floats:
    """Of each run of a cohort, in the order of their ends, how far it lies above the median of those before it."""
    above = np.full(len(logs), np.nan)
    earlier: list[float] = []  # in the order of size
    heard = 0
    counts = np.searchsorted(ended_ns, started_ns)
    for place in np.argsort(started_ns, kind="stable"):
        for log in logs[heard : counts[place]].tolist():
            if not np.isnan(log):
                insort(earlier, log)
        heard = max(heard, int(counts[place]))
        if len(earlier) >= COHORT_RUNS_MIN:
            middle = (len(earlier) - 1) // 2
            above[place] = logs[place] - (earlier[middle] + earlier[len(earlier) // 2]) / 2
    return above


def _members(cohorts: "pd.Series[str]") -> Mapping[str, NDArray[np.int64]]:
    members: dict[str, list[int]] = defaultdict(list)
    for place, cohort in enumerate(cohorts):
        members[cohort].append(place)
    return {cohort: np.array(places) for cohort, places in members.items()}


def _by_node(fortunes: Fortunes) -> Mapping[tuple[str, str], list[int]]:
    """By system and node the places of its runs, in the order of their ends."""
    on_node: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, (system, nodes) in enumerate(zip(fortunes.systems, fortunes.nodes, strict=True)):
        for node in nodes:
            on_node[system, node].append(place)
    return on_node


def _newest(on_node: Mapping[tuple[str, str], list[int]], moment: Moment, end: int) -> list[int]:
    """The places below `end` of the newest runs on its nodes, newest first."""
    newest: set[int] = set()
    for node in set(moment.nodes):
        places = on_node.get((moment.system, node), [])
        until = bisect_left(places, end)
        newest.update(places[max(until - NODE_RUNS_MAX, 0) : until])
    return sorted(newest, reverse=True)[:NODE_RUNS_MAX]


def _before(fortunes: Fortunes, on_node: Mapping[tuple[str, str], list[int]], moment: Moment) -> tuple[float, ...]:
    end = int(np.searchsorted(fortunes.ended_ns, moment.at_ns))
    newest = _newest(on_node, moment, end)
    rated = np.array([place for place in newest if not np.isnan(fortunes.log_ratio[place])], dtype=np.int64)
    if not len(rated):
        return (np.nan,) * len(COLUMNS)
    ratios, paces = fortunes.log_ratio[rated], fortunes.pace[rated]
    age = float(moment.at_ns - fortunes.ended_ns[rated[0]]) * 1e-9
    effect = max(_effect(fortunes, rated, node) for node in moment.nodes)
    return float(ratios[0]), age, _recent(ratios), float(paces[0]), _recent(paces), effect


def _recent(newest_first: Floats) -> float:
    """The exponentially weighted mean of the newest values that are known."""
    values = newest_first[~np.isnan(newest_first)][:NEWEST_RUNS]
    weights = (1 - NEWEST_WEIGHT) ** np.arange(len(values))
    return float(weights @ values / weights.sum()) if len(values) else float(np.nan)


def _effect(fortunes: Fortunes, rated: NDArray[np.int64], node: str) -> float:
    """Return how far a node's runs lie above all that are rated, in log ratios, drawn to 0 where there are few."""
    of_node = np.array([node in fortunes.nodes[place] for place in rated])
    if not of_node.any():
        return 0.0
    ratios = fortunes.log_ratio[rated]
    return float((ratios[of_node] - ratios.mean()).sum() / (of_node.sum() + NODE_RUNS_PRIOR))

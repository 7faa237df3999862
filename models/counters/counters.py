"""Counters that go with slow runs of a workload, and how sure that is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.stats
from numpy.typing import NDArray

from crosswind.data.schema.answers.effects import CounterColumn, CounterEffect, CounterRanking
from crosswind.data.schema.prediction import Floats
from crosswind.data.store.store import Store
from crosswind.models.association.associate import Association, Outcome
from crosswind.models.association.bootstrap import stability
from crosswind.models.association.design import RUNS_MIN, Design, Ints, ranks_in_cohorts
from crosswind.models.association.outcomes import Outcomes, outcomes
from crosswind.models.counters.compare import Table, compared_counters
from crosswind.models.counters.importance import importances
from crosswind.models.counters.rates import counters_during

RUNS_MAX = 2000  # the newest; samples of more would not tell much more
IMPORTANT_MAX = 20  # counters whose importance to trees is asked
Q_MAX = 0.05


def counters(
    store: Store,
    workload: str | None = None,
    system: str | None = None,
    *,
    since_ns: int | None = None,
    seed: int = 0,
) -> CounterRanking:
    """Of the newest completed runs of a workload, or of all; without a system, of that of most of them.

    since_ns: of those that began then or later.

    Raises: InvalidInputError where no run is stored; MalformedError for a damaged file.
    """
    compared = outcomes(store, workload, system, since_ns=since_ns, limit=RUNS_MAX)
    if len(compared.runs) < RUNS_MIN:
        few = (
            f"{len(compared.runs)} of {compared.looked_at} completed runs can be compared, expected {RUNS_MIN} or "
            "more: a cohort needs 4 runs of the same workload, configuration and scale"
        )
        return _answer(compared, {}, [], [few])
    table = counters_during(store.lake, compared.runs)
    effects = ranked(compared, table, seed=seed)
    return _answer(compared, table, effects, _warnings(compared, table, effects))


def ranked(compared: Outcomes, table: Table, *, seed: int = 0) -> list[CounterEffect]:
    """The counters that varied, surest first; values by place of the run, NaN where missing."""
    parts = compared_counters(compared, table, seed=seed)
    if not parts:
        return []
    names = [name for part in parts for name in part.names]
    association = Association.joined([part.association for part in parts])
    testable = np.flatnonzero(~np.isnan(association.p))
    if not len(testable):
        return []
    q = np.full(len(names), np.nan)
    q[testable] = scipy.stats.false_discovery_control(association.p[testable])
    order = testable[np.lexsort((-np.abs(association.rho[testable]), association.p[testable]))]
    follows = np.concatenate([part.follows_duration for part in parts])
    columns = np.concatenate([part.whole for part in parts], axis=1)
    statistics = _Statistics(
        runs=np.concatenate([np.full(len(part.names), part.runs) for part in parts]),
        distance=np.concatenate([part.distance for part in parts]),
        stability=stability(association.replicates),
        q=q,
        follows=follows,
        importance=_importances(compared, columns, order[~follows[order]], seed),
    )
    return [_effect(names[place], association, statistics, place) for place in order.tolist()]


@dataclass(frozen=True)
class _Statistics:
    """Further statistics of m counters, (m,) each; importance by place."""

    runs: Ints
    distance: Floats
    stability: Floats
    q: Floats
    follows: NDArray[np.bool_]
    importance: Mapping[int, float]


def _importances(compared: Outcomes, columns: Floats, order: Ints, seed: int) -> dict[int, float]:
    """Importance to trees of the first counters that do not follow the duration, by place."""
    design = Design.of(compared.started_ns, compared.cohort)
    values = ranks_in_cohorts(columns[np.ix_(design.order, order)], design.member)
    asked = range(min(IMPORTANT_MAX, len(order)))
    losses = importances(values, Outcome.of(design, compared.log_excess).log, asked, seed=seed)
    return {} if losses is None else dict(zip(order[: len(losses)].tolist(), losses.tolist(), strict=True))


def _effect(shown: CounterColumn, association: Association, statistics: _Statistics, place: int) -> CounterEffect:
    return CounterEffect(
        shown,
        int(statistics.runs[place]),
        *association.rhos(place),
        *association.ratios(place),
        distance_correlation=float(statistics.distance[place]),
        importance=statistics.importance.get(place),
        p=float(association.p[place]),
        q=float(statistics.q[place]),
        stability=float(statistics.stability[place]),
        follows_duration=bool(statistics.follows[place]),
    )


def _warnings(compared: Outcomes, table: Table, effects: Sequence[CounterEffect]) -> list[str]:
    if not table:
        return ["nothing was sampled on the runs' nodes while they ran: `crosswind agent` or `crosswind run` does"]
    is_sampled = pd.concat([values.notna() for values in table.values()], axis=1).any(axis=1)
    warnings = []
    if lacking := int((~is_sampled).sum()):
        warnings.append(f"{lacking} of {len(compared.runs)} runs have no samples: nothing is said of them")
    if not effects:
        warnings.append(f"no counter varied in {RUNS_MIN} runs or more that can be compared")
    elif all(effect.importance is None for effect in effects):
        warnings.append("trees predict nothing from the counters, or have too few runs: importance is not known")
    return warnings


def _answer(
    compared: Outcomes, table: Table, effects: Sequence[CounterEffect], warnings: Sequence[str]
) -> CounterRanking:
    runs = compared.runs
    return CounterRanking(
        *(compared.system, compared.workload, compared.looked_at, len(runs), len(table), len(table) - len(effects)),
        counters=tuple(effects),
        warnings=tuple(warnings),
        from_ns=min((run.started_ns for run in runs if run.started_ns is not None), default=None),
        to_ns=max((run.ended_ns for run in runs if run.ended_ns is not None), default=None),
    )

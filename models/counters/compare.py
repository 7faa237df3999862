"""Counters against the excess, without the effect that the length of a run alone has on them.

A slow run spreads its own work over more time, so the rate of every counter of that work falls; and activity at a
steady rate beside it grows by unit of work. A counter must therefore show both: its growth a second and its growth over
the run's usual time must both rise, or both fall, and the weaker of the two counts (an intersection-union test: Berger
1982).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.answers.effects import CounterColumn
from crosswind.data.schema.prediction import Floats
from crosswind.models.association.associate import Association, Outcome, associate
from crosswind.models.association.design import Design, Ints, ranks_in_cohorts
from crosswind.models.association.gaps import by_gaps
from crosswind.models.association.outcomes import Outcomes
from crosswind.models.counters.distance import distance_correlations

Table = Mapping[CounterColumn, "pd.Series[float]"]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Compared:
    """m counters known of the same runs; `whole` (n_runs, m) has the compared values of all runs, NaN where unknown."""

    names: tuple[CounterColumn, ...]
    runs: int
    association: Association
    distance: Floats
    follows_duration: Bools
    whole: Floats


def compared_counters(compared: Outcomes, table: Table, *, seed: int = 0) -> list[Compared]:
    """Compare the counters that varied in enough runs, grouped by the runs that they are known of."""
    groups = by_gaps(table)
    tested = sum(len(names) for _, names in groups)
    return [_of_group(compared, table, group, tested, seed=seed) for group in groups]


def _of_group(
    compared: Outcomes, table: Table, group: tuple[Ints, list[CounterColumn]], tested: int, *, seed: int
) -> Compared:
    rows, names = group
    own = compared.rows(rows)
    design = Design.of(own.started_ns, own.cohort)
    outcome = Outcome.of(design, own.log_excess)
    rates: Floats = np.column_stack([table[name].to_numpy(np.float64)[rows] for name in names]).astype(np.float64)
    stretched = np.exp(own.log_excess)[:, None]  # a growth over the usual time is a rate times this
    is_rate = np.array([name.per == "second" for name in names])
    amounts: Floats = np.where(is_rate, rates * stretched, rates).astype(np.float64)
    both = [
        ranks_in_cohorts(np.asarray(columns[design.order], np.float64), design.member) for columns in (rates, amounts)
    ]
    associations = [associate(outcome, [(ranks, _in_deviations(design, ranks))], tested, seed=seed) for ranks in both]
    is_amount = np.nan_to_num(associations[1].p, nan=1.0) > np.nan_to_num(associations[0].p, nan=1.0)
    follows = np.sign(associations[0].rho) * np.sign(associations[1].rho) < 0
    weaker = Association(
        *(
            np.where(is_amount, getattr(associations[1], name), getattr(associations[0], name))
            for name in vars(associations[0])
        )
    )
    whole = np.full((len(compared.runs), len(names)), np.nan)
    whole[rows] = np.where(is_amount, amounts, rates)
    distance = distance_correlations(design.without(np.where(is_amount, both[1], both[0])), outcome.ranks)
    weaker = replace(weaker, p=np.where(follows, 1.0, weaker.p), replicates=np.where(follows, 0.0, weaker.replicates))
    return Compared(tuple(names), len(rows), weaker, distance, follows, whole)


def _in_deviations(design: Design, ranks: Floats) -> Floats:
    """Ranks in units of the standard deviation that trends and cohorts leave them."""
    deviation = design.without(ranks).std(axis=0)
    return ranks / np.where(deviation > 0, deviation, 1.0)

"""A cohort against the other runs of its workloads and systems, feature by feature.

Source: the ranking of the nodes' counters, with belonging to the cohort in place of the excess. Values are ranked
within a workload and system, so that a cohort of several does not differ by these alone.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
import scipy.stats
from numpy.typing import NDArray

from crosswind.data.schema.answers.cohorts import CohortComparison, FeatureDifference, FeatureKind
from crosswind.data.schema.part import Part
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.saved_cohort import SavedCohort
from crosswind.data.store.store import Store
from crosswind.models.association.associate import Association, Outcome, associate
from crosswind.models.association.bootstrap import stability
from crosswind.models.association.design import RUNS_MIN, Design, Ints, ranks_in_cohorts
from crosswind.models.association.gaps import by_gaps
from crosswind.models.cohorts.features import Key, feature_columns

MEMBERS, OTHERS = 2000, 5000  # the newest, which are compared
SIDE_MIN = 3  # runs of either side that have a feature
Bools = NDArray[np.bool_]
Columns = Mapping[Key, "pd.Series[float]"]


@dataclass(frozen=True)
class _Compared:
    """Runs in any order: which are members, when they began, and the number of their workload and system, (n,) each.

    `drift` says whether smooth drift in time is taken out.
    """

    drift: bool
    is_member: Bools
    started_ns: Ints
    place: Ints

    @classmethod
    def of(cls, runs: Sequence[Run], members: int, *, drift: bool) -> Self:
        """Return those of runs, the first of which are the members."""
        place = pd.factorize(pd.Series([(run.system, run.workload) for run in runs]))[0].astype(np.int64)
        started = np.array([run.started_ns or 0 for run in runs], np.int64)
        return cls(drift, np.arange(len(runs)) < members, started, place)


@dataclass(frozen=True)
class _Part:
    """Features that are known of the same runs."""

    keys: list[Key]
    rows: Ints
    association: Association


def compare_cohort(store: Store, cohort: SavedCohort, *, drift: bool = False) -> CohortComparison:
    """Return the features of a cohort's runs by how surely they differ from those of the others.

    drift: take smooth drift in time out of both, so that what merely happened at the same time counts for nothing.
    Raises: MalformedError.
    """
    with store.catalog.read() as session:
        members = session.cohorts.members(cohort, Part(MEMBERS, descending=True))
        others = session.cohorts.others(cohort, members, limit=OTHERS) if members else []
    return _comparison(store, cohort.cohort_id, (_ended(members), _ended(others)), frozenset(FeatureKind), drift=drift)


def compare_selection(
    store: Store, cohort: str, selected: tuple[str, ...], others: tuple[str, ...]
) -> CohortComparison:
    """Return the features of some runs of a cohort, of their ids, by how surely they differ from others of it.

    Outcomes are left out: by these they were selected. Raises: MalformedError.
    """
    with store.catalog.read() as session:
        members, rest = session.runs.some(selected), session.runs.some(others)
    kinds = frozenset(FeatureKind) - {FeatureKind.OUTCOME}
    return _comparison(store, cohort, (_ended(members), _ended(rest)), kinds, drift=False)


def _comparison(
    store: Store, cohort_id: str, sides: tuple[list[Run], list[Run]], kinds: Set[FeatureKind], *, drift: bool
) -> CohortComparison:
    members, others = sides
    if lacking := _lacking(members, others):
        return CohortComparison(cohort_id, len(members), len(others), drift, (), (lacking,))
    stored = feature_columns(store, [*members, *others])
    columns = {key: column for key, column in stored.items() if key[0] in kinds}
    compared = _Compared.of([*members, *others], len(members), drift=drift)
    groups = [(rows, keys) for rows, keys in by_gaps(columns) if _has_both(compared.is_member[rows])]
    tested = sum(len(keys) for _, keys in groups)
    parts = [_part(compared, columns, group, tested) for group in groups]
    features = _ranked(parts, columns, compared.is_member)
    warnings = () if any(one.kind is FeatureKind.EVIDENCE for one in features) else (NO_EVIDENCE,)
    return CohortComparison(cohort_id, len(members), len(others), drift, tuple(features), warnings)


NO_EVIDENCE = "no evidence of explanations is stored of enough runs: a server computes it in the background"


def _ended(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.state is not RunState.RUNNING]


def _lacking(members: Sequence[Run], others: Sequence[Run]) -> str | None:
    if len(members) < SIDE_MIN or len(others) < SIDE_MIN or len(members) + len(others) < RUNS_MIN:
        sides = f"{len(members)} runs of the cohort and {len(others)} others have ended"
        return f"{sides}: expected {SIDE_MIN} or more of each, and {RUNS_MIN} together"
    return None


def _has_both(is_member: Bools) -> bool:
    return SIDE_MIN <= int(is_member.sum()) <= len(is_member) - SIDE_MIN


def _part(compared: _Compared, columns: Columns, group: tuple[Ints, list[Key]], tested: int) -> _Part:
    rows, keys = group
    design = Design.of(compared.started_ns[rows], compared.place[rows], drift=compared.drift)
    outcome = Outcome.of(design, compared.is_member[rows].astype(np.float64))
    values: Floats = np.column_stack([columns[key].to_numpy(np.float64)[rows] for key in keys])
    ranks = ranks_in_cohorts(values[design.order], design.member)
    return _Part(keys, rows, associate(outcome, [(ranks, ranks)], tested))


def _ranked(parts: Sequence[_Part], columns: Columns, is_member: Bools) -> list[FeatureDifference]:
    if not parts:
        return []
    association = Association.joined([part.association for part in parts])
    keys = [(key, part.rows) for part in parts for key in part.keys]
    testable = np.flatnonzero(~np.isnan(association.p))
    q = np.full(len(keys), np.nan)
    q[testable] = scipy.stats.false_discovery_control(association.p[testable])
    steady = stability(association.replicates)
    order = testable[np.lexsort((-np.abs(association.rho[testable]), association.p[testable]))].tolist()

    def difference(place: int) -> FeatureDifference:
        (kind, name), rows = keys[place]
        values, is_own = columns[kind, name].to_numpy(np.float64)[rows], is_member[rows]
        is_share = kind in (FeatureKind.NODE, FeatureKind.SOFTWARE, FeatureKind.TIME) or "=" in name
        middle = np.mean if is_share else np.median
        return FeatureDifference(
            *(kind, name, is_share, int(is_own.sum()), int((~is_own).sum())),
            *(float(middle(values[is_own])), float(middle(values[~is_own]))),
            *association.rhos(place),
            p=float(association.p[place]),
            q=float(q[place]),
            stability=float(steady[place]),
        )

    return [difference(place) for place in order]

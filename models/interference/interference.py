"""Neighbours that slow runs down, on the same nodes or the same switch, by user, workload and job."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from crosswind.data.schema.answers.effects import Interference, NeighbourKind, NeighbourScope
from crosswind.data.schema.prediction import Floats
from crosswind.data.store.store import Store
from crosswind.models.association.associate import Outcome
from crosswind.models.association.design import RUNS_MIN, Design
from crosswind.models.association.outcomes import Outcomes, outcomes
from crosswind.models.interference.exposure import EXPOSED_MIN, Exposures, enough, exposures, joined
from crosswind.models.interference.overlap import meetings_in_groups, meetings_on_nodes
from crosswind.models.interference.presence import presences
from crosswind.models.interference.suspects import Ranked, suspects
from crosswind.models.interference.traffic import relative_traffic

NO_GROUPS: Mapping[str, str] = {}


def interference(
    store: Store,
    workload: str | None = None,
    system: str | None = None,
    *,
    groups: Mapping[str, str] | None = None,
    since_ns: int | None = None,
) -> Interference:
    """Of the completed runs of a workload, or of all; without a system, of that of most of them.

    since_ns: of those that began then or later.
    groups: the switch or rack of each node, None: the leaf switches that the store knows. Raises: InvalidInputError
    where no run is stored; MalformedError for a damaged file.
    """
    groups = store.switches if groups is None else groups
    compared = outcomes(store, workload, system, since_ns=since_ns)
    placed = compared.rows(np.flatnonzero([bool(run.nodes) for run in compared.runs]))
    warnings = _of_runs(compared, placed)
    if len(placed.runs) < RUNS_MIN:
        return _answer(placed, None, Ranked((), 0), warnings)
    ends = [run.ended_ns or 0 for run in placed.runs]
    present = presences(store, compared.system, int(placed.started_ns.min()), max(ends))
    met = exposures_of(placed, present, groups, traffic=relative_traffic(store.lake, placed, present, groups))
    warnings += _of_presence(present, met, groups)
    tested = enough(met)
    if not tested.candidates:
        return _answer(placed, met, Ranked((), 0), warnings)
    ranked = ranking(placed, tested)
    if not ranked.suspects:
        warnings.append("no candidate is separable from drift and cohorts, or no run differs from its cohort's others")
    return _answer(placed, met, ranked, warnings, candidates=len(tested.candidates))


def exposures_of(
    compared: Outcomes, present: pd.DataFrame, groups: Mapping[str, str] = NO_GROUPS, *, traffic: Floats | None = None
) -> Exposures:
    """Exposures of runs to those present, as `presences`, on their nodes and in their groups.

    traffic: of each presence, as a multiple of the usual, by which it counts in a group; None counts all alike.
    """
    runs = len(compared.runs)
    parts = [exposures(meetings_on_nodes(compared, present), present, runs, NeighbourScope.NODE)]
    if groups:
        met = meetings_in_groups(compared, present, groups)
        if traffic is not None:
            met = met.assign(share=met["share"] * traffic[met["presence"].to_numpy()])
        parts.append(exposures(met, present, runs, NeighbourScope.GROUP))
    return joined(parts)


def ranking(compared: Outcomes, tested: Exposures, *, seed: int = 0) -> Ranked:
    """The candidates, surest first; exposures in the order of the runs."""
    design = Design.of(compared.started_ns, compared.cohort)
    return suspects(Outcome.of(design, compared.log_excess), tested.rows(design.order), seed=seed)


def _answer(
    compared: Outcomes, met: Exposures | None, ranked: Ranked, warnings: Sequence[str], *, candidates: int = 0
) -> Interference:
    names = [] if met is None else [(candidate.kind, candidate.name) for candidate in met.candidates]
    runs = compared.runs
    return Interference(
        *(compared.system, compared.workload, compared.looked_at, len(runs)),
        accompanied_runs=0 if met is None else int((met.shares.getnnz(axis=1) > 0).sum()),
        seen={kind: len({name for seen_kind, name in names if seen_kind is kind}) for kind in NeighbourKind},
        candidates=candidates,
        inseparable=ranked.inseparable,
        suspects=ranked.suspects,
        warnings=tuple(warnings),
        from_ns=min((run.started_ns for run in runs if run.started_ns is not None), default=None),
        to_ns=max((run.ended_ns for run in runs if run.ended_ns is not None), default=None),
    )


def _of_runs(compared: Outcomes, placed: Outcomes) -> list[str]:
    warnings = []
    if lacking := len(compared.runs) - len(placed.runs):
        warnings.append(f"{lacking} of {len(compared.runs)} runs have no nodes, so nobody knows who was beside them")
    if len(placed.runs) < RUNS_MIN:
        warnings.append(
            f"{len(placed.runs)} of {compared.looked_at} completed runs can be compared, expected {RUNS_MIN} or more: "
            "a cohort needs 4 runs of the same workload, configuration and scale, with their nodes"
        )
    return warnings


def _of_presence(present: pd.DataFrame, met: Exposures, groups: Mapping[str, str]) -> list[str]:
    warnings = []
    if present[NeighbourKind.USER.value].isna().all():
        warnings.append("no user is known: `crosswind sync slurm` or `crosswind ingest` stores the scheduler's jobs")
    if not groups:
        warnings.append("no switches or racks are known: only neighbours on the same nodes are looked for")
    if not met.candidates:
        warnings.append("nobody was beside any run, as far as runs and jobs are stored")
    elif not enough(met).candidates:
        warnings.append(f"nobody was beside {EXPOSED_MIN} runs or more, while {EXPOSED_MIN} others had them not beside")
    return warnings

"""Effects of the lab's faults: step times compared with healthy runs of the same cohort."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import pandas as pd

from crosswind.cli.text.output import table
from crosswind.dashboards.wording import NONE, number, seconds
from crosswind.data.lake.steps_summary import time_of
from crosswind.data.schema.injection import Injected
from crosswind.data.schema.run import Run, RunState, cohort_key
from crosswind.data.store.features import WARM_UP_STEPS, all_runs
from crosswind.data.store.store import Store
from crosswind.ingest.lab.campaign import position_in
from crosswind.ingest.lab.plans.plan import Plan
from crosswind.ingest.lab.run_records import NO_INJECTION

ONE_BY_ONE = 20  # runs; more are summarised by fault
RUN_HEADINGS = ("run", "injected", "where", "healthy p50", "step p50", "ratio")
_STEPS = """
select run_id, step, min(ts_ns) as ts_ns, max(duration_seconds) as duration_seconds
from step where step >= ? and list_contains(?, run_id) group by run_id, step
"""


@dataclass(frozen=True)
class LabOutcome:
    """One run: its fault, and its median step during the fault and in healthy runs."""

    run_id: str
    state: str
    injected: str
    nodes: tuple[str, ...]
    healthy_seconds: float | None
    step_seconds: float | None

    @property
    def ratio(self) -> float | None:
        """The step time as a multiple of a healthy one."""
        return self.step_seconds / self.healthy_seconds if self.step_seconds and self.healthy_seconds else None


def outcomes(store: Store, plan: Plan) -> list[LabOutcome]:
    """The plan's runs that are in the store, as they were measured."""
    runs = [run for run in all_runs(store) if position_in(plan, run) is not None and run.state is not RunState.LOST]
    steps = store.lake.frame(_STEPS, [WARM_UP_STEPS, [run.run_id for run in runs]], within=time_of(runs))
    by_run = {str(run_id): rows for run_id, rows in steps.groupby("run_id")}
    with store.catalog.read() as session:
        truths = session.injections.of_runs([run.run_id for run in runs])
    done = {run.run_id: [fault for fault in truths if fault.run_id == run.run_id] for run in runs}
    p50 = {run.run_id: _p50(by_run.get(run.run_id), done[run.run_id]) for run in runs}
    healthy = _healthy(runs, done, p50)
    return [_outcome(run, done[run.run_id], healthy.get(cohort_key(run)), p50[run.run_id]) for run in runs]


def _outcome(run: Run, done: Sequence[Injected], healthy: float | None, p50: float | None) -> LabOutcome:
    nodes = tuple(sorted({fault.node for fault in done}))
    injected = " ".join(sorted({f"{fault.kind} {fault.strength:g} {fault.unit}" for fault in done})) or NO_INJECTION
    return LabOutcome(run.run_id, str(run.state), injected, nodes, healthy, p50)


def _p50(steps: pd.DataFrame | None, done: Sequence[Injected]) -> float | None:
    """Of the steps that began while something was done to the run, or else of all."""
    if steps is None:
        return None
    begins = steps["ts_ns"]
    disturbed = [begins.between(fault.started_ns, fault.ended_ns) for fault in done]
    chosen = steps[pd.concat(disturbed, axis=1).any(axis=1)] if disturbed else steps
    return float((chosen if len(chosen) else steps)["duration_seconds"].median())


def _healthy(
    runs: Sequence[Run], done: Mapping[str, Sequence[Injected]], p50: Mapping[str, float | None]
) -> dict[str, float]:
    """The median healthy run of each cohort."""
    by_cohort: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        value = p50[run.run_id]
        if not done[run.run_id] and value is not None and run.state is RunState.COMPLETED:
            by_cohort[cohort_key(run)].append(value)
    return {cohort: median(values) for cohort, values in by_cohort.items()}


def outcome_table(measured: Sequence[LabOutcome]) -> str:
    """Run by run, or fault by fault when there are many."""
    if len(measured) <= ONE_BY_ONE:
        return table(RUN_HEADINGS, [_line(outcome) for outcome in measured])
    ratios: dict[str, list[float]] = defaultdict(list)
    for run in measured:
        if run.ratio is not None:
            ratios[run.injected].append(run.ratio)
    lines = [
        (injected, str(len(values)), *(number(value) for value in (min(values), median(values), max(values))))
        for injected, values in sorted(ratios.items())
    ]
    return table(("injected", "runs", "ratio: lowest", "median", "highest"), lines)


def _line(outcome: LabOutcome) -> tuple[str, ...]:
    injected = outcome.injected if outcome.state == RunState.COMPLETED else f"{outcome.injected} ({outcome.state})"
    ratio = NONE if outcome.ratio is None else f"{outcome.ratio:.2f}"
    times = seconds(outcome.healthy_seconds), seconds(outcome.step_seconds)
    return (outcome.run_id, injected, " ".join(outcome.nodes) or NONE, *times, ratio)

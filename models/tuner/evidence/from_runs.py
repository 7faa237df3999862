"""Stored runs as evidence for a study that they were never part of.

Every run whose configuration has all parameters of the space counts, whoever started it. Runs of the study's own
workload, system and scale are finished trials; those of other systems, scales and related workloads are sources, one
for each. What does not count is counted, by the reason.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.trial import Configuration, Parameter, TrialRecord
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.models.tuner.evidence.earlier_studies import sources_of_studies
from crosswind.models.tuner.evidence.ends import is_cut_short
from crosswind.models.tuner.evidence.outcomes import OF_WHOLE_RUN, objective_of, outcomes_of, value_at
from crosswind.models.tuner.evidence.places import Row, gathered
from crosswind.models.tuner.evidence.sought import Evidence, Sought
from crosswind.models.tuner.evidence.systems import descriptors_of
from crosswind.models.tuner.evidence.values import covered
from crosswind.models.tuner.space.expression import Expression

STUDIES_MAX = 200  # newest, whose trials may tell what a run was
FEWEST_STEPS = 10  # of a run that was cut short, from which on its step times count


def evidence_of(store: Store, sought: Sought) -> Evidence:
    """Return what the stored runs and earlier studies tell of a space.

    Raises: InvalidInputError for an objective that runs cannot have, NotFoundError for a study that is none.
    """
    of_runs, left_out = evidence_of_runs(store, sought), Counter[str]()
    studies = tuple(sources_of_studies(store, sought, left_out))
    return Evidence((*of_runs.sources, *studies), of_runs.trials, dict(left_out + Counter(of_runs.left_out)))


def evidence_of_runs(store: Store, sought: Sought) -> Evidence:
    """Return what the stored runs alone tell. Raises: InvalidInputError for an objective that runs cannot have."""
    objective = objective_of(sought.objective, {*sought.space.domains, *sought.fixed})
    trial_of = _told_trials(store, sought.study_id)
    left_out: Counter[str] = Counter()
    fitting: list[tuple[Run, Configuration]] = []
    for run in _runs(store, sought):
        configuration, fault = _configuration(run, trial_of.get(run.run_id), sought)
        if fault:
            left_out[fault] += 1
        else:
            fitting.append((run, configuration))
    rows: list[Row] = []
    for (run, configuration), outcomes, is_cut in _with_outcomes(store, fitting, trial_of):
        values = {**sought.fixed, **run.configuration, **configuration}
        value, fault = _objective(run, objective, values, outcomes, is_cut=is_cut)
        if fault:
            left_out[fault] += 1
        else:
            rows.append(Row(run, configuration, value))
    sources, trials = gathered(rows, sought, descriptors_of(store))
    return Evidence(sources, trials, dict(left_out))


def _runs(store: Store, sought: Sought) -> Iterator[Run]:
    for workload in dict.fromkeys((sought.workload, *sought.related)):
        yield from all_runs(store, RunFilter(workload=workload), limit=sought.runs_max)


def _told_trials(store: Store, study_id: str | None) -> dict[str, TrialRecord]:
    """The trials of studies by the runs that they were measured by; of several, that of the study itself."""
    with store.catalog.read() as session:
        studies = session.studies.all()[:STUDIES_MAX]
        records = [record for study in studies for record in session.leases.records(study.study_id)]
    records.sort(key=lambda record: record.study_id == study_id)
    return {record.run_id: record for record in records if record.run_id}


def _configuration(run: Run, trial: TrialRecord | None, sought: Sought) -> tuple[Configuration, str]:
    """The run's values of the space's parameters, or why it does not count; a trial's values are surer than its run's.

    How many ranks and nodes there were may be parameters, too.
    """
    if run.state is RunState.RUNNING:
        return {}, "still running"
    if trial is not None and trial.study_id == sought.study_id:
        return {}, "of the study itself"
    places: dict[str, Parameter | None] = {"world_size": run.world_size, "node_count": len(run.nodes)}
    sizes = {name: value for name, value in places.items() if value}
    said = trial.trial.configuration if trial is not None else {}
    return covered(sought.space, {**sizes, **run.configuration, **said})


def _with_outcomes(
    store: Store, fitting: Sequence[tuple[Run, Configuration]], trial_of: Mapping[str, TrialRecord]
) -> Iterator[tuple[tuple[Run, Configuration], Mapping[str, float], bool]]:
    """Beside each run what came of it, as its trial or its steps tell, and whether it was cut short."""
    runs = [run for run, _ in fitting]
    states = _job_states(store, runs)
    for pair, outcomes in zip(fitting, outcomes_of(store, runs), strict=True):
        trial = trial_of.get(pair[0].run_id)
        merged = outcomes | ({} if trial is None else dict(trial.outcomes))
        yield pair, merged, is_cut_short(pair[0], states.get(pair[0].run_id, ""))


def _job_states(store: Store, runs: Sequence[Run]) -> dict[str, str]:
    """By run the scheduler's word of its job."""
    jobs = store.jobs.all_named({run.job_id for run in runs if run.job_id})
    words = {(job.system, job_id): job.state for job_id, named in jobs.items() for job in named}
    return {run.run_id: words.get((run.system, run.job_id or ""), "") for run in runs}


def _objective(
    run: Run, objective: Expression, values: Configuration, outcomes: Mapping[str, float], *, is_cut: bool
) -> tuple[float | None, str]:
    """The objective, None where the run failed; or why it does not count."""
    if is_cut and objective.names & set(OF_WHOLE_RUN):
        return None, "cut short"
    if is_cut and outcomes.get("steps", 0.0) < FEWEST_STEPS:
        return None, f"cut short before {FEWEST_STEPS} steps"
    if run.state is RunState.COMPLETED or is_cut:
        return value_at(objective, values, outcomes)
    return None, ""

"""Stored runs as evidence for a study that they were never part of.

Every run whose configuration has all parameters of the space counts, whoever started it. Runs of the study's own
workload, system and scale are finished trials; those of other systems, scales and related workloads are sources, one
for each place. Runs that are left out are counted by reason.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.trial import Configuration, Parameter, Study, TrialRecord
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.models.tuner.evidence.places import Row, sources_and_trials
from crosswind.models.tuner.evidence.prior_studies import source_of
from crosswind.models.tuner.evidence.query import Evidence, RunQuery
from crosswind.models.tuner.evidence.run_outcomes import OF_WHOLE_RUN, objective_of, outcomes_of, value_at
from crosswind.models.tuner.evidence.systems import descriptors_of
from crosswind.models.tuner.evidence.values import covered
from crosswind.models.tuner.search.source import Source
from crosswind.models.tuner.space.expression import Expression

STUDIES_MAX = 200  # newest, whose trials may give the configuration of a run
FEWEST_STEPS = 10  # of a run that was cut short, from which on its step times count
# SIGHUP, SIGINT, SIGUSR1, SIGUSR2, SIGTERM: a scheduler or a person ended it. Not SIGKILL: that is out of memory, too.
SIGNALS = (1, 2, 10, 12, 15)
STOPPED_CODES = frozenset({128 + signal for signal in SIGNALS} | {-signal for signal in SIGNALS})
STOPPED_STATES = frozenset({"CANCELLED", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "REVOKED", "DEADLINE", "TIMEOUT"})


def evidence_of(store: Store, query: RunQuery) -> Evidence:
    """Return the evidence of the stored runs and of other studies about a space.

    Raises: InvalidInputError for an objective that runs cannot have, NotFoundError for a study that is none.
    """
    of_runs, left_out = evidence_of_runs(store, query), Counter[str]()
    studies = tuple(_sources_of_studies(store, query, left_out))
    return Evidence((*of_runs.sources, *studies), of_runs.trials, dict(left_out + Counter(of_runs.left_out)))


def evidence_of_runs(store: Store, query: RunQuery) -> Evidence:
    """Return the evidence of the stored runs alone.

    Raises: InvalidInputError for an objective that runs cannot have.
    """
    objective = objective_of(query.objective, {*query.space.domains, *query.fixed})
    trial_of = _trials_by_run(store, query.study_id)
    left_out: Counter[str] = Counter()
    fitting: list[tuple[Run, Configuration]] = []
    for run in _runs(store, query):
        configuration, fault = _configuration(run, trial_of.get(run.run_id), query)
        if fault:
            left_out[fault] += 1
        else:
            fitting.append((run, configuration))
    rows: list[Row] = []
    for (run, configuration), outcomes, is_cut in _with_outcomes(store, fitting, trial_of):
        values = {**query.fixed, **run.configuration, **configuration}
        value, fault = _objective(run, objective, values, outcomes, is_cut=is_cut)
        if fault:
            left_out[fault] += 1
        else:
            rows.append(Row(run, configuration, value))
    sources, trials = sources_and_trials(rows, query, descriptors_of(store))
    return Evidence(sources, trials, dict(left_out))


def _sources_of_studies(store: Store, query: RunQuery, left_out: Counter[str]) -> Iterator[Source]:
    """Return a source for each study that is named, or whose workload the query has.

    Its objective must be the same expression, and its trials cover the space; others are counted in `left_out`. Trials
    with a run are left to the runs. Raises: NotFoundError for a named study that is not there.
    """
    with store.catalog.read() as session:
        named = {session.studies.get(name).study_id for name in query.studies}
        studies = [study for study in session.studies.all() if _is_wanted(study, named, query)]
        records = {study.study_id: session.leases.records(study.study_id) for study in studies}
    for study in studies:
        if study.objective != query.objective:
            left_out["of a study with another objective"] += len(records[study.study_id])
            continue
        without_run = [record for record in records[study.study_id] if not record.run_id]
        yield from source_of(study, without_run, query.space, left_out)


def _is_wanted(study: Study, named: set[str], query: RunQuery) -> bool:
    is_related = study.workload in (query.workload, *query.related)
    return study.study_id != query.study_id and (study.study_id in named or is_related)


def _runs(store: Store, query: RunQuery) -> Iterator[Run]:
    for workload in dict.fromkeys((query.workload, *query.related)):
        yield from all_runs(store, RunFilter(workload=workload), limit=query.runs_max)


def _trials_by_run(store: Store, study_id: str | None) -> dict[str, TrialRecord]:
    """Return the trials of studies by the runs that measured them; of several, that of the study itself."""
    with store.catalog.read() as session:
        studies = session.studies.all()[:STUDIES_MAX]
        records = [record for study in studies for record in session.leases.records(study.study_id)]
    records.sort(key=lambda record: record.study_id == study_id)
    return {record.run_id: record for record in records if record.run_id}


def _configuration(run: Run, trial: TrialRecord | None, query: RunQuery) -> tuple[Configuration, str]:
    """Return the run's values of the space's parameters, or why it does not count.

    A trial's values are surer than its run's. How many ranks and nodes there were may be parameters, too.
    """
    if run.state is RunState.RUNNING:
        return {}, "still running"
    if trial is not None and trial.study_id == query.study_id:
        return {}, "of the study itself"
    places: dict[str, Parameter | None] = {"world_size": run.world_size, "node_count": len(run.nodes)}
    sizes = {name: value for name, value in places.items() if value}
    surer = trial.trial.configuration if trial is not None else {}
    return covered(query.space, {**sizes, **run.configuration, **surer})


def _with_outcomes(
    store: Store, fitting: Sequence[tuple[Run, Configuration]], trial_of: Mapping[str, TrialRecord]
) -> Iterator[tuple[tuple[Run, Configuration], Mapping[str, float], bool]]:
    """Add to each run its outcomes, by its trial and its steps, and whether it was cut short."""
    runs = [run for run, _ in fitting]
    states = _job_states(store, runs)
    for pair, outcomes in zip(fitting, outcomes_of(store, runs), strict=True):
        trial = trial_of.get(pair[0].run_id)
        merged = outcomes | ({} if trial is None else dict(trial.outcomes))
        yield pair, merged, _is_cut_short(pair[0], states.get(pair[0].run_id, ""))


def _job_states(store: Store, runs: Sequence[Run]) -> dict[str, str]:
    """Return by run the scheduler's word of its job."""
    jobs = store.jobs.all_named({run.job_id for run in runs if run.job_id})
    words = {(job.system, job_id): job.state for job_id, named in jobs.items() for job in named}
    return {run.run_id: words.get((run.system, run.job_id or ""), "") for run in runs}


def _objective(
    run: Run, objective: Expression, values: Configuration, outcomes: Mapping[str, float], *, is_cut: bool
) -> tuple[float | None, str]:
    """Return the objective, None where the run failed; or why it does not count."""
    if is_cut and objective.names & set(OF_WHOLE_RUN):
        return None, "cut short"
    if is_cut and outcomes.get("steps", 0.0) < FEWEST_STEPS:
        return None, f"cut short before {FEWEST_STEPS} steps"
    if run.state is RunState.COMPLETED or is_cut:
        return value_at(objective, values, outcomes)
    return None, ""


def _is_cut_short(run: Run, job_state: str = "") -> bool:
    """Return whether a run ended early for reasons that its configuration has nothing to do with, or unknown ones.

    `job_state` is the scheduler's word, such as `PREEMPTED`; empty where it is unknown. A time limit belongs here: it
    was that of another job. Source: sbatch(1) and sacct(1), JOB STATE CODES; bash(1), EXIT STATUS.
    """
    if run.state in (RunState.LOST, RunState.STOPPED) or job_state in STOPPED_STATES:
        return run.state is not RunState.COMPLETED
    return run.state is RunState.FAILED and run.exit_code in STOPPED_CODES

"""The demo's loop: record, store, explain, predict and check, tune."""

import os
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from crosswind.cli.demo.plan import (
    CONFIGURATION,
    RANKS,
    STEPS,
    TRIAL_STEPS,
    TRIALS,
    PlannedRun,
    command,
    planned_runs,
    tunable,
)
from crosswind.cli.progress import Progress
from crosswind.dashboards.wording import configuration_words
from crosswind.data.errors import InvalidInputError, UnavailableError
from crosswind.data.features import summaries
from crosswind.data.run import new_ulid
from crosswind.data.store import Store
from crosswind.data.trial import Configuration, Study, Trial
from crosswind.ingest.lab.faults import Fault
from crosswind.ingest.load import load_spool
from crosswind.ingest.wrapper import Launch, launch
from crosswind.models.explain.explain import explain_runs
from crosswind.models.explain.explanation import Explanation
from crosswind.models.next_run.answer import Answer
from crosswind.models.next_run.question import Question
from crosswind.models.next_run.registered import next_run_desk
from crosswind.models.tuner import GaussianProcessTuner
from crosswind.models.tuner.desk import Lease, StudyDesk
from crosswind.settings import Settings

WORKLOAD = "byte-transformer"
AGENT_SECONDS = 0.1
OWNER = "crosswind demo"


@dataclass(frozen=True)
class Explained:
    """One recorded run, what was done to it, and what the explanation made of that."""

    run_id: str
    plan: PlannedRun
    explanation: Explanation


@dataclass(frozen=True)
class Checked:
    """A prediction, and the step time of the fresh run that it was made for; `abstained` says why there is none."""

    answer: Answer | None
    abstained: str
    measured_seconds: float
    run_id: str


@dataclass(frozen=True)
class Tuned:
    """What tuning found: seconds per 1000 samples, before and after."""

    study_id: str
    trials: int
    default: float
    best: Trial


@dataclass(frozen=True)
class DemoResult:
    """Everything that the demo did."""

    seed: int
    seconds: float
    explained: tuple[Explained, ...]
    checked: Checked
    tuned: Tuned | None


class DemoLoop:
    """Runs the demo in a store of its own."""

    def __init__(self, settings: Settings, store: Store, *, seed: int, trials: int = TRIALS) -> None:
        self._settings = settings
        self._store = store
        self._seed = seed
        self._trials = trials
        self._torchrun = _torchrun()

    def run(self) -> DemoResult:
        """Measures for about two minutes. Raises: UnavailableError when a training run fails."""
        begin = time.monotonic()
        plan = planned_runs(self._seed)
        with Progress(len(plan) + self._trials + 2) as progress:
            run_ids = [self._record(progress, f"training run, injected: {run.injected}", run) for run in plan]
            progress.start("explaining, predicting")
            explained = self._explain(run_ids, plan)
            answer, abstained = self._predict()
            progress.done()
            fresh = self._record(progress, "a fresh run to check the prediction", PlannedRun(None))
            checked = Checked(answer, abstained, self._step_seconds(fresh), fresh)
            tuned = self._tune(progress, checked.measured_seconds) if self._trials else None
        return DemoResult(self._seed, time.monotonic() - begin, explained, checked, tuned)

    def _explain(self, run_ids: list[str], plan: list[PlannedRun]) -> tuple[Explained, ...]:
        with self._store.catalog.read() as session:
            runs = [session.runs.get(run_id) for run_id in run_ids]
        explanations = explain_runs(self._store, runs)
        return tuple(Explained(run_id, run, explanations[run_id]) for run_id, run in zip(run_ids, plan, strict=True))

    def _predict(self) -> tuple[Answer | None, str]:
        try:
            question = Question(WORKLOAD, self._settings.system, CONFIGURATION, RANKS)
            return next_run_desk(self._store).answer(question), ""
        except InvalidInputError as error:  # no run was recorded to the end, and it says so
            return None, str(error)

    def _record(self, progress: Progress, what: str, run: PlannedRun) -> str:
        progress.start(what)
        run_id = self._launch(CONFIGURATION, {"injected": run.injected}, steps=STEPS, fault=run.fault)
        progress.done()
        return run_id

    def _launch(
        self, configuration: Configuration, tags: Mapping[str, str], *, steps: int, fault: Fault | None = None
    ) -> str:
        words = command(self._torchrun, steps=steps, configuration=configuration, fault=fault)
        spool = self._settings.spool
        outcome = launch(Launch(words, spool, WORKLOAD, tags, agent_seconds=AGENT_SECONDS, log=spool / "last-run.log"))
        if outcome.exit_code:
            raise UnavailableError(
                f"training run {outcome.run_id} ended with exit code {outcome.exit_code}: see {spool / 'last-run.log'}"
            )
        load_spool(self._store, spool)
        return outcome.run_id

    def _step_seconds(self, run_id: str) -> float:
        with self._store.catalog.read() as session:
            run = session.runs.get(run_id)
        return float(summaries(self._store, [run])["step_p50_seconds"].iloc[0])

    def _tune(self, progress: Progress, default_step_seconds: float) -> Tuned:
        """Suggest, run, complete; the objective is seconds per 1000 samples, compared with the run just checked."""
        study = Study(
            study_id=new_ulid(),
            name=f"demo-{new_ulid()[-6:].lower()}",
            space=tunable(len(os.sched_getaffinity(0))),
            objective="seconds_per_1000_samples",
            unit="s",
            seed=self._seed,
            created_ns=time.time_ns(),
        )
        desk = StudyDesk(self._store.catalog, make_tuner=GaussianProcessTuner)
        desk.create(study)
        for _ in range(self._trials):
            [record] = desk.suggest(study.study_id, 1, Lease(OWNER, 600))
            configuration = record.trial.configuration
            progress.start(f"tuning: {configuration_words(configuration)}")
            run_id = self._launch(configuration, {"study": study.name}, steps=TRIAL_STEPS)
            objective = per_thousand(self._step_seconds(run_id), configuration)
            desk.complete(study.study_id, record.trial.trial_id, objective, owner=OWNER, run_id=run_id)
            progress.done()
        best = desk.best(study.study_id)
        if best is None:
            raise UnavailableError(f"study {study.name}: no trial was completed")
        return Tuned(study.study_id, self._trials, per_thousand(default_step_seconds, CONFIGURATION), best)


def per_thousand(step_seconds: float, configuration: Configuration) -> float:
    """Seconds per 1000 samples, over all ranks."""
    return step_seconds / (int(configuration["batch"]) * RANKS) * 1000


def _torchrun() -> str:
    beside = Path(sys.executable).with_name("torchrun")
    found = str(beside) if beside.exists() else shutil.which("torchrun")
    if not found:
        raise UnavailableError("torchrun is not installed: pip install 'crosswind[torch]'")
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # what torchrun sets too, without its banner
    return found

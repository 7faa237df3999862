"""The demo's loop: record, store, explain, predict and check, tune."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec

from crosswind.cli.progress import Parts
from crosswind.cli.verbs.demo.disturbance import CpuTime, Disturbance, disturbance_between
from crosswind.cli.verbs.demo.plan import (
    CONFIGURATION,
    RANKS,
    STEPS,
    TRIAL_STEPS,
    PlannedRun,
    command,
    tunable,
)
from crosswind.cli.verbs.demo.site import environment_of
from crosswind.dashboards.wording import configuration_words, seconds
from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.answers.explanations import Explanation, Verdict
from crosswind.data.schema.answers.predictions import Outcome, RunPrediction
from crosswind.data.schema.errors import ConflictError, InvalidInputError, UnavailableError
from crosswind.data.schema.operation import OPEN
from crosswind.data.schema.question import Question
from crosswind.data.schema.run import new_ulid
from crosswind.data.schema.trial import Configuration, Study, Trial
from crosswind.data.store.features import summaries
from crosswind.data.store.store import Store
from crosswind.ingest.lab.faults import Fault
from crosswind.ingest.lab.warm import trainer
from crosswind.ingest.load.load import load_spool
from crosswind.ingest.wrapper.wrapper import Launch, launch
from crosswind.models.explain.explain import explain_runs
from crosswind.models.next_run.registered import run_predictor
from crosswind.models.training.operations import TRAIN, Runner
from crosswind.models.tuner.search.gaussian_process_tuner import GaussianProcessTuner
from crosswind.models.tuner.service.catalog import CatalogStudyService
from crosswind.models.tuner.service.service import Lease
from crosswind.settings import Settings

WORKLOAD = "byte-transformer"
AGENT_SECONDS = 0.1
CHECK_SECONDS = 2.0
LEARNED = (Outcome.STEP, Outcome.RUN)
PATIENCE_SECONDS = 60.0  # for a training that the server began
OWNER = "crosswind demo"


@dataclass(frozen=True)
class Explained:
    """One recorded run, what was done to it, what else used the machine, and what the explanation made of that."""

    run_id: str
    plan: PlannedRun
    explanation: Explanation
    disturbance: Disturbance | None = None

    @property
    def is_right(self) -> bool:
        """Return whether the injected cause was named; where there was none, whether the run was not called slow."""
        if self.plan.truth:
            return self.explanation.cause == self.plan.truth
        return self.explanation.verdict is not Verdict.SLOW


@dataclass(frozen=True)
class Recorded:
    """A run that was measured."""

    run_id: str
    step_seconds: float
    disturbance: Disturbance | None


@dataclass(frozen=True)
class Checked:
    """A prediction, and the step time of the fresh run that it was made for; `abstained` says why there is none."""

    answer: RunPrediction | None
    abstained: str
    measured_seconds: float
    run_id: str


@dataclass(frozen=True)
class Tuned:
    """Outcome of tuning: seconds per 1000 samples, before and after."""

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

    def __init__(self, settings: Settings, store: Store, plan: list[PlannedRun], *, seed: int, trials: int) -> None:
        self._settings = settings
        self._store = store
        self._plan = plan
        self._seed = seed
        self._trials = trials

    def run(self, began: float) -> DemoResult:
        """Measures for about a minute; `began` is time.monotonic() at the start of the demo.

        Raises: UnavailableError when a training run fails.
        """
        if not find_spec("torch"):
            raise UnavailableError("the demo trains with PyTorch: pip install 'crosswind[torch]'")
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # as torchrun sets it
        with trainer() as self._trainer, Parts(len(self._plan) + self._trials + 4) as progress:
            self._begin_with_samples(progress)
            recorded = [self._record(progress, run) for run in self._plan]
            self._check(progress)
            progress.start("explaining, predicting")
            explained = self._explain(recorded)
            answer, abstained = self._predict()
            progress.done()
            fresh = self._record(progress, PlannedRun(None), "a fresh run to check the prediction")
            checked = Checked(answer, abstained, fresh.step_seconds, fresh.run_id)
            tuned = self._tune(progress, fresh.step_seconds) if self._trials else None
        return DemoResult(self._seed, time.monotonic() - began, explained, checked, tuned)

    def _begin_with_samples(self, progress: Parts) -> None:
        """Store the runs of the fault lab, and train models on them: a server does that too, and would disturb runs."""
        progress.start("loading runs of the fault lab, training models on them")
        with suppress(ConflictError):  # an earlier demo in this store loaded those of an earlier version
            load_lab_samples(self._store)
        runner = Runner(self._store)
        for outcome in LEARNED:
            runner.ask(str(outcome))
        while runner.run_next():
            pass
        until = time.monotonic() + PATIENCE_SECONDS
        while self._is_training() and time.monotonic() < until:
            time.sleep(0.1)
        progress.done()

    def _is_training(self) -> bool:
        with self._store.catalog.read() as session:
            return bool(session.operations.find(TRAIN, states=OPEN))

    def _check(self, progress: Parts) -> None:
        """Measure this node as before a job; that it cannot be measured keeps nothing else from going on."""
        progress.start("checking this node")
        words = [sys.executable, "-m", "crosswind.cli.main", "check", f"--seconds={CHECK_SECONDS:g}", "--json"]
        subprocess.run(words, env=environment_of(self._settings), capture_output=True, check=False)
        load_spool(self._store, self._settings.spool)
        progress.done()

    def _explain(self, recorded: list[Recorded]) -> tuple[Explained, ...]:
        with self._store.catalog.read() as session:
            runs = [session.runs.get(run.run_id) for run in recorded]
        explanations = explain_runs(self._store, runs)
        return tuple(
            Explained(run.run_id, planned, explanations[run.run_id], run.disturbance)
            for run, planned in zip(recorded, self._plan, strict=True)
        )

    def _predict(self) -> tuple[RunPrediction | None, str]:
        try:
            question = Question(WORKLOAD, self._settings.system, CONFIGURATION, RANKS)
            return run_predictor(self._store).answer(question), ""
        except InvalidInputError as error:  # no run was recorded to the end, and it says so
            return None, str(error)

    def _record(self, progress: Parts, run: PlannedRun, what: str = "") -> Recorded:
        progress.start(what or f"training run, injected: {run.injected}")
        recorded = self._launch(CONFIGURATION, {"injected": run.injected}, steps=STEPS, fault=run.fault)
        disturbed = f", disturbed by: {recorded.disturbance}" if recorded.disturbance else ""
        progress.done(f"run {recorded.run_id[-6:]}, {run.injected}: {seconds(recorded.step_seconds)} a step{disturbed}")
        return recorded

    def _launch(
        self, configuration: Configuration, tags: Mapping[str, str], *, steps: int, fault: Fault | None = None
    ) -> Recorded:
        words, spool = command(steps=steps, configuration=configuration, fault=fault), self._settings.spool
        environment, log = self._trainer.environment, spool / "last-run.log"
        before = CpuTime.now(self._trainer)
        outcome = launch(Launch(words, spool, WORKLOAD, tags, AGENT_SECONDS, log, environment=environment))
        disturbance = disturbance_between(before, CpuTime.now(self._trainer))
        if outcome.exit_code:
            raise UnavailableError(
                f"training run {outcome.run_id} ended with exit code {outcome.exit_code}: see {spool / 'last-run.log'}"
            )
        load_spool(self._store, spool)
        return Recorded(outcome.run_id, self._step_seconds(outcome.run_id), disturbance)

    def _step_seconds(self, run_id: str) -> float:
        with self._store.catalog.read() as session:
            run = session.runs.get(run_id)
        return float(summaries(self._store, [run])["step_p50_seconds"].iloc[0])

    def _tune(self, progress: Parts, default_step_seconds: float) -> Tuned:
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
        service = CatalogStudyService(self._store.catalog, make_tuner=GaussianProcessTuner)
        service.create(study)
        for _ in range(self._trials):
            [record] = service.suggest(study.study_id, 1, Lease(OWNER, 600))
            configuration = record.trial.configuration
            progress.start(f"tuning: {configuration_words(configuration)}")
            run = self._launch(configuration, {"study": study.name}, steps=TRIAL_STEPS)
            objective = per_thousand(run.step_seconds, configuration)
            service.complete(study.study_id, record.trial.trial_id, objective, owner=OWNER, run_id=run.run_id)
            progress.done()
        best = service.best(study.study_id)
        if best is None:
            raise UnavailableError(f"study {study.name}: no trial was completed")
        return Tuned(study.study_id, self._trials, per_thousand(default_step_seconds, CONFIGURATION), best)


def per_thousand(step_seconds: float, configuration: Configuration) -> float:
    """Seconds per 1000 samples, over all ranks."""
    return step_seconds / (int(configuration["batch"]) * RANKS) * 1000

"""Answers to questions about runs to come, from what is stored."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.predictions import Outcome, RunPrediction
from crosswind.data.schema.carbon import CarbonIntensity
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.question import Question
from crosswind.data.schema.run import RunState
from crosswind.data.store.store import Store
from crosswind.models.conditions.conditions import conditions_now
from crosswind.models.energy.metered import Meters
from crosswind.models.next_run.cases import cases, finest_outcome, jobs_stand, together
from crosswind.models.next_run.cohort_store import key_of
from crosswind.models.next_run.energy import EnergyEstimator, Metered
from crosswind.models.next_run.fit import fitted
from crosswind.models.next_run.model import Batch, NextRunModel
from crosswind.models.next_run.quantiles import distribution
from crosswind.models.spread import TELLING
from crosswind.models.surrogate.exceedance import exceedance

MODELS_MAX = 64  # of workloads asked about; then all are forgotten
ANSWERS_MAX = 1000  # of one model; each takes some kilobytes
SYSTEMS_MAX = 64  # that a workload is asked about on
PLACES_MAX = 1000  # workloads and systems of which it is known what was recorded
FITTED_RUNS_MAX = 1000  # of the workload, and of all, where no model is registered: so many are learned in seconds


_Stand: TypeAlias = tuple[tuple[int, int], str | None]  # of the store, and which registered model answers


@dataclass
class _Kept:
    """A model, its name in the registry, what stood in the store when it was made, and when that was looked at."""

    model: NextRunModel
    name: str | None
    stand: _Stand
    looked_at: float
    answers: dict[tuple[str, int | None], RunPrediction] = field(default_factory=dict)
    metered: dict[str, Metered] = field(default_factory=dict)  # by system


class RunPredictor:
    """Answers over one store; of runs that have ended since it hears after `fresh_seconds` at most.

    `registered` gives the promoted model of an outcome and its name, or None; `intensity` turns energy into carbon.
    """

    def __init__(
        self,
        store: Store,
        *,
        fresh_seconds: float = 0.0,
        registered: Callable[[Outcome], tuple[NextRunModel, str] | None] = lambda _: None,
        intensity: CarbonIntensity | None = None,
    ) -> None:
        self.store = store
        self._fresh_seconds = fresh_seconds
        self._registered = registered
        self.intensity = intensity
        self._energy = EnergyEstimator(Meters(store), intensity)
        self._kept: dict[tuple[str, Outcome], _Kept] = {}
        self._finest: dict[tuple[str, str], tuple[float, Outcome]] = {}
        self._fitting = threading.Lock()

    def answer(
        self,
        question: Question,
        outcome: Outcome | None = None,
        *,
        limit_seconds: float | None = None,
        nodes: Sequence[str] = (),
    ) -> RunPrediction:
        """The distribution of a run's outcome; given the nodes that it would begin on now, under what they do now.

        Raises: InvalidInputError where nothing is known to tell it from.
        """
        kept = self._model(question.workload, outcome or self.finest(question))
        if nodes:
            now = conditions_now(self.store, nodes, system=question.system)[list(TELLING)]
            answer = self._whole(kept, question, kept.model.answer(question, now))
        else:
            answer = self._remembered(kept, question)
        return _limited(answer, limit_seconds)

    def cached(
        self, question: Question, outcome: Outcome | None = None, *, limit_seconds: float | None = None
    ) -> RunPrediction | None:
        """The same where it was answered lately, at once and without a look at the store; None where it was not."""
        now = time.monotonic()
        if outcome is None:
            looked_at, outcome = self._finest.get((question.workload, question.system), (-1e9, Outcome.JOB))
            if now - looked_at > self._fresh_seconds:
                return None
        kept = self._kept.get((question.workload, outcome))
        if kept is None or now - kept.looked_at > self._fresh_seconds:
            return None
        answer = kept.answers.get((key_of(question), question.node_count))
        return None if answer is None else _limited(answer, limit_seconds)

    def _remembered(self, kept: _Kept, question: Question) -> RunPrediction:
        key = (key_of(question), question.node_count)
        if (answer := kept.answers.get(key)) is None:
            if len(kept.answers) >= ANSWERS_MAX:
                kept.answers.clear()
            answer = kept.answers[key] = self._whole(kept, question, kept.model.answer(question))
        return answer

    def _whole(self, kept: _Kept, question: Question, answer: RunPrediction) -> RunPrediction:
        """The answer with its model's name and its energy."""
        if (metered := kept.metered.get(question.system)) is None:
            if len(kept.metered) >= SYSTEMS_MAX:
                kept.metered.clear()
            metered = kept.metered[question.system] = self._energy.metered(question.workload, question.system)
        return self._energy.beside(replace(answer, model=kept.name), question, metered)

    def answers(self, questions: Sequence[Question], outcome: Outcome | None = None) -> Batch:
        """Quantiles of many runs of one workload on one system, without their evidence. Raises: InvalidInputError."""
        if len({(question.workload, question.system) for question in questions}) != 1:
            raise InvalidInputError(f"{len(questions)} questions: expected some, of one workload on one system")
        first = questions[0]
        kept = self._model(first.workload, outcome or self.finest(first))
        return replace(kept.model.batch(questions), model=kept.name)

    def finest(self, question: Question) -> Outcome:
        """The finest outcome that was recorded of the workload."""
        place, now = (question.workload, question.system), time.monotonic()
        looked_at, outcome = self._finest.get(place, (-1e9, Outcome.JOB))
        if now - looked_at > self._fresh_seconds:
            outcome = finest_outcome(self.store, *place)
            if len(self._finest) >= PLACES_MAX:
                self._finest.clear()
            self._finest[place] = (now, outcome)
        return outcome

    def time_outcome(self, question: Question) -> Outcome:
        """Return which outcome a time limit is about: the run, or the job where no run is known."""
        return Outcome.JOB if self.finest(question) is Outcome.JOB else Outcome.RUN

    def _model(self, workload: str, outcome: Outcome) -> _Kept:
        kept = self._kept.get((workload, outcome))
        if kept is not None and time.monotonic() - kept.looked_at <= self._fresh_seconds:
            return kept
        with self._fitting:
            return self._renewed(workload, outcome)

    def _renewed(self, workload: str, outcome: Outcome) -> _Kept:
        now, registered = time.monotonic(), self._registered(outcome)
        stand = (self._stand(workload, outcome), None if registered is None else registered[1])
        kept = self._kept.get((workload, outcome))
        if kept is not None and kept.stand == stand:
            kept.looked_at = now
            return kept
        if len(self._kept) >= MODELS_MAX:
            self._kept.clear()
        if registered is not None and registered[0].knows(workload):
            rows = cases(self.store, outcome, workload=workload, limit=FITTED_RUNS_MAX)
            model, name = registered[0].with_runs(rows), registered[1]
        else:
            model, name = self._fitted(workload, outcome), None
        kept = self._kept[workload, outcome] = _Kept(model, name, stand, now)
        return kept

    def _fitted(self, workload: str, outcome: Outcome) -> NextRunModel:
        """A model of the newest runs; nothing is fitted for a workload that never ran, which formulas answer."""
        rows = cases(self.store, outcome, workload=workload, limit=FITTED_RUNS_MAX)
        others = cases(self.store, outcome, limit=FITTED_RUNS_MAX)
        if rows.empty:
            return NextRunModel(str(outcome)).hear_of(list(map(str, others["workload"].unique())))
        return fitted(self.store, outcome, together(rows, others))

    def _stand(self, workload: str, outcome: Outcome) -> tuple[int, int]:
        """Return what changes when there is more to learn from."""
        if outcome is Outcome.JOB:
            return jobs_stand(self.store)
        with self.store.catalog.read() as session:
            return session.runs.stand(RunFilter(workload=workload, state=RunState.COMPLETED))


def _limited(answer: RunPrediction, limit_seconds: float | None) -> RunPrediction:
    if limit_seconds is None:
        return answer
    chance = float(exceedance(distribution(answer), limit_seconds)[0])
    return replace(answer, limit_seconds=limit_seconds, exceedance=chance)

"""Answers to questions about the next run, from a store."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from crosswind.data.schema.answers.predictions import Outcome, RunPrediction
from crosswind.data.schema.carbon import CarbonIntensity
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.question import Question
from crosswind.data.store.store import Store
from crosswind.models.conditions.conditions import conditions_now
from crosswind.models.energy.metered import Meters
from crosswind.models.next_run.cases import finest_outcome
from crosswind.models.next_run.cohort_store import key_of
from crosswind.models.next_run.energy import EnergyEstimator, Metered
from crosswind.models.next_run.model import Batch, NextRunModel
from crosswind.models.next_run.model_source import ModelSource, Promoted, Stand
from crosswind.models.next_run.quantiles import distribution
from crosswind.models.shared_work import SharedWork
from crosswind.models.spread import PREDICTIVE
from crosswind.models.surrogate.exceedance import exceedance

MODELS_MAX = 64  # in the cache; beyond, it is cleared
ANSWERS_MAX = 1000  # of one model; each takes some kilobytes
SYSTEMS_MAX = 64  # whose metered runs a model caches
PLACES_MAX = 1000  # workloads and systems whose finest outcome is cached

NEVER = (-1e9, Outcome.JOB)  # when a finest outcome was looked for that never was
_Asked: TypeAlias = tuple[str, int | None, Facts, int | None]


@dataclass
class _CachedModel:
    """A model, its name in the registry, the stand of the store that it was made of, and the time of the last check."""

    model: NextRunModel
    name: str | None
    stand: Stand
    checked_at: float
    answers: dict[_Asked, RunPrediction] = field(default_factory=dict)
    metered: dict[str, Metered] = field(default_factory=dict)  # by system


class RunPredictor:
    """Answers questions over one store; runs that have ended since count after `fresh_seconds` at most.

    `registered` gives the promoted model of an outcome, or None; `intensity` turns energy into carbon; `notice` hears
    of a model that is fitted for a question, which takes seconds.
    """

    def __init__(
        self,
        store: Store,
        *,
        fresh_seconds: float = 0.0,
        registered: Callable[[Outcome], Promoted | None] = lambda _: None,
        intensity: CarbonIntensity | None = None,
        notice: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.store = store
        self._fresh_seconds = fresh_seconds
        self._source = ModelSource(store, registered, notice)
        self.intensity = intensity
        self._energy = EnergyEstimator(Meters(store), intensity)
        self._cached_models: dict[tuple[str, Outcome], _CachedModel] = {}
        self._finest: dict[tuple[str, str], tuple[float, Outcome]] = {}
        self._fitting = threading.Lock()
        self._shared = SharedWork()

    def answer(
        self,
        question: Question,
        outcome: Outcome | None = None,
        *,
        limit_seconds: float | None = None,
        nodes: Sequence[str] = (),
    ) -> RunPrediction:
        """The distribution of a run's outcome; given the nodes that it would begin on now, under their conditions now.

        Raises: InvalidInputError where nothing is known to predict it from.
        """
        cached = self._model(question.workload, outcome or self.finest(question))
        if nodes:
            now = conditions_now(self.store, nodes, system=question.system)[list(PREDICTIVE)]
            answer = self._with_energy(cached, question, cached.model.answer(question, now))
        else:
            answer = self._answer_from(cached, question)
        return _limited(answer, limit_seconds)

    def cached(
        self, question: Question, outcome: Outcome | None = None, *, limit_seconds: float | None = None
    ) -> RunPrediction | None:
        """The same answer from the cache, at once and without reading the store; None where it is not cached."""
        now = time.monotonic()
        if outcome is None:
            checked_at, outcome = self._finest.get((question.workload, question.system), NEVER)
            if now - checked_at > self._fresh_seconds:
                return None
        cached = self._cached_models.get((question.workload, outcome))
        if cached is None or now - cached.checked_at > self._fresh_seconds:
            return None
        answer = cached.answers.get(_asked(question))
        return None if answer is None else _limited(answer, limit_seconds)

    def _answer_from(self, cached: _CachedModel, question: Question) -> RunPrediction:
        key = _asked(question)
        if (answer := cached.answers.get(key)) is None:
            answer = self._shared((id(cached), key), lambda: self._answered(cached, question))
            if len(cached.answers) >= ANSWERS_MAX:
                cached.answers.clear()
            cached.answers[key] = answer
        return answer

    def _answered(self, cached: _CachedModel, question: Question) -> RunPrediction:
        return self._with_energy(cached, question, cached.model.answer(question))

    def _with_energy(self, cached: _CachedModel, question: Question, answer: RunPrediction) -> RunPrediction:
        """The answer with its model's name and its energy."""
        if (metered := cached.metered.get(question.system)) is None:
            if len(cached.metered) >= SYSTEMS_MAX:
                cached.metered.clear()
            metered = cached.metered[question.system] = self._energy.metered(question.workload, question.system)
        asked = cached.model.completed(question)
        return self._energy.with_energy(
            replace(answer, model=cached.name), asked, metered, cached.model.energy(question)
        )

    def answers(self, questions: Sequence[Question], outcome: Outcome | None = None) -> Batch:
        """Quantiles of many runs of one workload on one system, without their evidence. Raises: InvalidInputError."""
        if len({(question.workload, question.system) for question in questions}) != 1:
            raise InvalidInputError(f"{len(questions)} questions: expected some, of one workload on one system")
        first = questions[0]
        cached = self._model(first.workload, outcome or self.finest(first))
        return replace(cached.model.batch(questions), model=cached.name)

    def finest(self, question: Question) -> Outcome:
        """The finest outcome recorded of the workload; who asks meanwhile waits for the same query."""
        place = (question.workload, question.system)
        checked_at, outcome = self._finest.get(place, NEVER)
        if time.monotonic() - checked_at <= self._fresh_seconds:
            return outcome
        return self._shared(place, lambda: self._refreshed_finest(*place))

    def _refreshed_finest(self, workload: str, system: str) -> Outcome:
        outcome = finest_outcome(self.store, workload, system)
        if len(self._finest) >= PLACES_MAX:
            self._finest.clear()
        self._finest[workload, system] = (time.monotonic(), outcome)  # after the query: it may take as long as it holds
        return outcome

    def time_outcome(self, question: Question) -> Outcome:
        """Return the outcome that a time limit applies to: the run, or the job where no run is known."""
        return Outcome.JOB if self.finest(question) is Outcome.JOB else Outcome.RUN

    def _model(self, workload: str, outcome: Outcome) -> _CachedModel:
        cached = self._cached_models.get((workload, outcome))
        if cached is not None and time.monotonic() - cached.checked_at <= self._fresh_seconds:
            return cached
        return self._shared((workload, outcome), lambda: self._refreshed(workload, outcome))

    def _refreshed(self, workload: str, outcome: Outcome) -> _CachedModel:
        with self._fitting:
            stand = self._source.stand(workload, outcome)
            cached = self._cached_models.get((workload, outcome))
            if cached is not None and cached.stand == stand:
                cached.checked_at = time.monotonic()
                return cached
            if len(self._cached_models) >= MODELS_MAX:
                self._cached_models.clear()
            kept = self._source.model(workload, outcome, stand)
            cached = _CachedModel(kept.model, kept.name, stand, time.monotonic())
            self._cached_models[workload, outcome] = cached
            return cached


def _asked(question: Question) -> _Asked:
    return key_of(question), question.node_count, question.facts, question.started_ns


def _limited(answer: RunPrediction, limit_seconds: float | None) -> RunPrediction:
    if limit_seconds is None:
        return answer
    chance = float(exceedance(distribution(answer), limit_seconds)[0])
    return replace(answer, limit_seconds=limit_seconds, exceedance=chance)

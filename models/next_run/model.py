"""The model of runs to come: repeats from their cohort's own runs, new cohorts from all the others."""

import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.answers.predictions import Accuracy, EvidenceRun, Outcome, PredictionBasis, RunPrediction
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.data.schema.question import Question, check_degrees
from crosswind.models.analytic.corrected import CorrectedPrior
from crosswind.models.next_run.cohort_model import CohortModel
from crosswind.models.next_run.cohort_store import Cohort, CohortStore, Ended, ended_of, key_of, questions_of
from crosswind.models.next_run.describe import described
from crosswind.models.next_run.formulas import calibrated, memory_need, predicted_by_formulas
from crosswind.models.next_run.neighbours import Neighbours
from crosswind.models.next_run.new_cohort_model import NewCohortModel
from crosswind.models.next_run.quantiles import quantiles
from crosswind.models.next_run.system_transfer import SystemTransfer, system_transfer
from crosswind.models.next_run.unknown import novelties, suggestion
from crosswind.models.surrogate import LEVELS

EVIDENCE_RUNS = 5
MOVED_MAX = 64  # systems that were asked about


@dataclass(frozen=True)
class Batch:
    """Quantiles of many runs: `seconds` (n_runs, n_levels) at `levels`, and what each rests on."""

    outcome: str
    levels: tuple[float, ...]
    seconds: Floats
    basis: tuple[PredictionBasis, ...]
    is_outside: tuple[bool, ...]
    model: str | None = None
    unit: str = "s"


@dataclass
class NextRunModel:
    """Learns `cases` of one outcome, and answers about the workloads among them.

    `worth` tells by the name of a basis how such answers did on runs later than those learned from.
    """

    outcome: str
    seed: int = 0
    worth: dict[str, Accuracy] = field(default_factory=dict)
    _book: CohortStore = field(default_factory=CohortStore, init=False, repr=False)
    _neighbours: Neighbours = field(default_factory=Neighbours, init=False, repr=False)
    _near_keys: list[str] = field(default_factory=list, init=False, repr=False)  # of the cohorts that neighbours know
    _newcomers: NewCohortModel = field(default_factory=NewCohortModel, init=False, repr=False)
    _repeats: CohortModel = field(default_factory=CohortModel, init=False, repr=False)
    _moved: dict[str, SystemTransfer | None] = field(
        default_factory=dict, init=False, repr=False
    )  # by workload, system
    _formulas: CorrectedPrior | None = field(default=None, init=False, repr=False)  # calibrated by steps that ran

    def fit(self, cases: pd.DataFrame, conditions: pd.DataFrame | None = None) -> Self:
        """Learns from earlier runs, oldest first, and the conditions before each, one row a run."""
        self._book = CohortStore.of(cases)
        if not self._book.cohorts:
            return self
        table = self._settle()
        self._newcomers = NewCohortModel(self.seed).fit(table, self._book)
        if self.outcome == Outcome.STEP:
            newest = self._book.newest
            self._formulas = calibrated(
                [cohort.question for cohort in newest], [cohort.median for cohort in newest], self.seed
            )
        keys = [key_of(question) for question in questions_of(cases)]
        self._repeats = CohortModel().fit(keys, cases["seconds"].to_numpy(np.float64), conditions)
        return self

    @property
    def features(self) -> tuple[str, ...]:
        """The columns of descriptions and conditions that it learns from."""
        return (*self._newcomers.columns, *self._repeats.conditions)

    def hear_of(self, workloads: Sequence[str]) -> Self:
        """Notes names that others may be mistaken for, without a run of any."""
        for name in workloads:
            self._book.workloads.setdefault(name, [])
        return self

    def knows(self, workload: str) -> bool:
        """Return whether the workload ever ran, anywhere."""
        return bool(self._book.workloads.get(workload))

    def with_runs(self, cases: pd.DataFrame) -> Self:
        """The same model with the runs that it has not heard of; what was learned of all cohorts stays as it was."""
        every = zip(questions_of(cases), ended_of(cases), strict=True)
        news = [(question, run) for question, run in every if not self._has(question, run)]
        if not news:
            return self
        model = deepcopy(self)
        for question, run in news:
            model.observe(question, run)
        model._settle()
        return model

    def observe(self, question: Question, run: Ended, conditions: pd.DataFrame | None = None) -> None:
        """Counts one more run that has ended: its cohort's level moves at once, all else at the next fit."""
        self._book.add(question, run)
        self._moved.clear()
        self._repeats.observe(key_of(question), run.seconds, conditions)

    def _has(self, question: Question, run: Ended) -> bool:
        cohort = self._book.find(question)
        return cohort is not None and cohort.has(run)

    def _settle(self) -> pd.DataFrame:
        """Lets neighbours know the newest cohorts; their table."""
        newest = self._book.newest
        table = described([cohort.question for cohort in newest])
        self._near_keys = [key_of(cohort.question) for cohort in newest]
        self._neighbours = Neighbours().fit(table)
        return table

    def earlier(self, question: Question) -> tuple[float, ...]:
        """Seconds of its cohort's runs, oldest first; without any the usual ones of its workload's cohorts."""
        cohort = self._book.find(question)
        if cohort:
            return tuple(cohort.seconds)
        return tuple(other.median for other in self._book.of_workload(question.workload))

    @property
    def cohort_seconds(self) -> list[Floats]:
        """Of every cohort the seconds of its runs, oldest first."""
        return [np.array(cohort.seconds) for cohort in self._book.cohorts.values()]

    def answer(self, question: Question, conditions: pd.DataFrame | None = None) -> RunPrediction:
        """Quantiles and what they rest on; `conditions` before it begins are one row, where they are known.

        Raises: InvalidInputError where nothing is known to tell the outcome from.
        """
        key = key_of(question)
        basis, cohort = self._basis(question, key), self._book.cohorts.get(key)
        near: list[tuple[Cohort, float]] = []
        if cohort:
            near, prediction = [(cohort, 0.0)], self._of_cohorts([key], conditions)
        elif basis is PredictionBasis.ANALYTIC:
            prediction = self._by_formulas([question])
        else:
            prediction, places, distances = self._of_newcomers([question], EVIDENCE_RUNS)
            near = list(zip(map(self._near, places[0]), map(float, distances[0]), strict=True))
        distance = near[0][1] if near else None
        ran = self._book.of_workload(question.workload)
        return RunPrediction(
            *(question.workload, question.system, question.world_size, self.outcome, quantiles(prediction), basis),
            distance=distance,
            is_outside=distance is None or distance > 1,
            evidence=_evidence(near),
            cohort_runs=cohort.count if cohort else 0,
            runs=sum(other.count for other in ran),
            worth=self.worth.get(basis, Accuracy()),
            warnings=tuple(novelties(question, [other.question for other in ran])),
            memory=memory_need(question),
        )

    def batch(self, questions: Sequence[Question], conditions: pd.DataFrame | None = None) -> Batch:
        """Quantiles of many runs; `conditions` have one row each. Raises: InvalidInputError as `answer`."""
        keys = [key_of(question) for question in questions]
        if conditions is not None:
            return self._told(questions, keys, conditions)
        asked = [(key, question.node_count) for key, question in zip(keys, questions, strict=True)]
        places = {pair: place for place, pair in reversed(list(enumerate(asked)))}  # what is asked again is told once
        distinct = self._told([questions[place] for place in places.values()], [key for key, _ in places], None)
        row_of = {pair: row for row, pair in enumerate(places)}
        rows = [row_of[pair] for pair in asked]
        basis, outside = tuple(distinct.basis[row] for row in rows), tuple(distinct.is_outside[row] for row in rows)
        return replace(distinct, seconds=distinct.seconds[rows], basis=basis, is_outside=outside)

    def _told(self, questions: Sequence[Question], keys: Sequence[str], conditions: pd.DataFrame | None) -> Batch:
        ran_on = cache(self._book.ran_on)
        basis = [self._basis(question, key, ran_on) for question, key in zip(questions, keys, strict=True)]
        values, outside = np.empty((len(questions), len(LEVELS))), np.ones(len(questions), dtype=bool)
        places = {kind: [place for place, own in enumerate(basis) if own is kind] for kind in set(basis)}
        if repeats := places.get(PredictionBasis.COHORT):
            own_conditions = None if conditions is None else conditions.iloc[repeats]
            values[repeats] = self._of_cohorts([keys[place] for place in repeats], own_conditions).values
            outside[repeats] = False
        if new := places.get(PredictionBasis.WORKLOAD, []) + places.get(PredictionBasis.TRANSFER, []):
            prediction, _, distances = self._of_newcomers([questions[place] for place in new], 1)
            values[new], outside[new] = prediction.values, distances[:, 0] > 1
        if strange := places.get(PredictionBasis.ANALYTIC):
            values[strange] = self._by_formulas([questions[place] for place in strange]).values
        return Batch(self.outcome, LEVELS, values, tuple(basis), tuple(map(bool, outside)))

    def _basis(self, question: Question, key: str, ran_on: Callable[[str, str], bool] | None = None) -> PredictionBasis:
        """Raises: InvalidInputError for parallel degrees that cannot be."""
        if key in self._book.cohorts:
            return PredictionBasis.COHORT
        check_degrees(question)
        if not self.knows(question.workload):
            return PredictionBasis.ANALYTIC
        has_run = (ran_on or self._book.ran_on)(question.workload, question.system)
        return PredictionBasis.WORKLOAD if has_run else PredictionBasis.TRANSFER

    def _of_cohorts(self, keys: Sequence[str], conditions: pd.DataFrame | None) -> Prediction:
        medians = np.array([self._book.cohorts[key].median for key in keys])
        return self._repeats.predict(keys, medians, conditions)

    def _of_newcomers(self, questions: Sequence[Question], count: int) -> tuple[Prediction, NDArray[np.int64], Floats]:
        """And the `count` nearest cohorts with their distances, both (n_questions, count)."""
        table = described(questions, self._neighbours.kinds)
        places, distances = self._neighbours.nearest(table, count)
        medians = {place: self._near(place).median for place in set(places[:, 0].tolist())}
        nearest = np.array([medians[place] for place in places[:, 0].tolist()])
        prediction = self._newcomers.predict(table, nearest=nearest, distances=distances[:, 0])
        return self._anchored(prediction, questions, table, distances[:, 0]), places, distances

    def _anchored(
        self, prediction: Prediction, questions: Sequence[Question], table: pd.DataFrame, distances: Floats
    ) -> Prediction:
        """The same, but where one cohort of a workload ran on the system, what other systems say times its ratio."""
        values = prediction.values.copy()
        for workload, system in {(question.workload, question.system) for question in questions}:
            if (transfer := self._moved_to(workload, system)) is not None:
                rows = [
                    row
                    for row, question in enumerate(questions)
                    if (question.workload, question.system) == (workload, system)
                ]
                usual = transfer.predict(table.iloc[rows])
                values[rows] = self._newcomers.of_runs(usual, distances[rows]).values
        return Prediction(prediction.levels, values)

    def _moved_to(self, workload: str, system: str) -> SystemTransfer | None:
        key = json.dumps([workload, system])
        if key not in self._moved:
            if len(self._moved) >= MOVED_MAX:
                self._moved.clear()
            self._moved[key] = system_transfer(self._book.of_workload(workload), system, self.seed)
        return self._moved[key]

    def _near(self, place: int) -> Cohort:
        return self._book.cohorts[self._near_keys[place]]

    def _by_formulas(self, questions: Sequence[Question]) -> Prediction:
        prediction = None
        if self.outcome != Outcome.JOB:
            prediction = predicted_by_formulas(questions, self._formulas, is_step=self.outcome == Outcome.STEP)
        if prediction is None:
            workload = questions[0].workload
            hint = suggestion(workload, self._book.workloads)
            raise InvalidInputError(
                f"workload {workload!r}: no earlier run has {self.outcome}{hint}; for an estimate by "
                "formulas the configuration must tell its network (hidden, layers) or (flops_per_sample, parameters), "
                "the batch, and of a whole run its steps"
            )
        return prediction


def _evidence(near: Sequence[tuple[Cohort, float]]) -> tuple[EvidenceRun, ...]:
    """The newest runs of the nearest cohort, or the newest of each where it is not the question's own."""
    evidence = []
    for cohort, distance in near:
        asked = cohort.question
        count = EVIDENCE_RUNS if len(near) == 1 and distance == 0 else 1
        for run_id, seconds in list(zip(cohort.run_ids, cohort.seconds, strict=True))[-count:][::-1]:
            evidence.append(EvidenceRun(run_id, asked.workload, asked.system, asked.world_size, seconds, distance))
    return tuple(evidence)

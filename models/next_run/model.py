"""The next-run model: predicts repeats from their cohort's own runs, and new cohorts from all other cohorts."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.answers.predictions import (
    Accuracy,
    EvidenceRun,
    Outcome,
    PredictionBasis,
    QuestionKind,
    RunPrediction,
)
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.data.schema.question import Question, check_degrees
from crosswind.models.analytic.prior.corrected import CorrectedPrior
from crosswind.models.gp.one_thread import one_thread
from crosswind.models.next_run.cohort_model import CohortModel
from crosswind.models.next_run.cohort_store import Cohort, CohortStore, EndedRun, ended_runs, key_of, questions_of
from crosswind.models.next_run.completion import completed, device_of, names_other_device
from crosswind.models.next_run.describe import described
from crosswind.models.next_run.device_transfers import DeviceTransfers, TransferredEnergy
from crosswind.models.next_run.formulas import calibrated, memory_need, predicted_by_formulas
from crosswind.models.next_run.neighbours import Neighbours
from crosswind.models.next_run.new_cohort_model import NewCohortModel
from crosswind.models.next_run.pauses import Pauses, has_paused
from crosswind.models.next_run.quantiles import quantiles
from crosswind.models.next_run.run_trees import RunTrees
from crosswind.models.next_run.unknown import NothingKnownError, device_warnings, novelties
from crosswind.models.surrogate import LEVELS

EVIDENCE_RUNS = 5


@dataclass(frozen=True)
class Batch:
    """Quantiles of many runs: `seconds` (n_runs, n_levels) at `levels`, and the basis of each."""

    outcome: str
    levels: tuple[float, ...]
    seconds: Floats
    basis: tuple[PredictionBasis, ...]
    is_outside: tuple[bool, ...]
    model: str | None = None
    unit: str = "s"

    def __post_init__(self) -> None:
        if not np.isfinite(self.seconds).all():
            place = int(np.flatnonzero(~np.isfinite(self.seconds).all(axis=1))[0])
            raise InvalidInputError(
                f"run {place} of {len(self.seconds)}: no finite {self.outcome} follows from what is recorded, expected "
                "one that is closer to that"
            )


@dataclass
class NextRunModel:
    """Learns from `cases` of one outcome, and predicts runs of the workloads among them.

    `track_records` has, by the kind of question, the accuracy of answers on runs that they were not learned from.
    """

    outcome: str
    seed: int = 0
    track_records: dict[str, Accuracy] = field(default_factory=dict)
    _cohorts: CohortStore = field(default_factory=CohortStore, init=False, repr=False)
    _neighbours: Neighbours = field(default_factory=Neighbours, init=False, repr=False)
    _near_keys: list[str] = field(default_factory=list, init=False, repr=False)  # of the neighbours' rows
    _devices: list[str] = field(default_factory=list, init=False, repr=False)  # of the neighbours' rows
    _new_cohorts: NewCohortModel = field(default_factory=NewCohortModel, init=False, repr=False)
    _cohort_model: CohortModel = field(default_factory=CohortModel, init=False, repr=False)
    _pauses: Pauses = field(default_factory=Pauses, init=False, repr=False)
    _on_devices: DeviceTransfers = field(default_factory=DeviceTransfers, init=False, repr=False)
    _run_trees: RunTrees | None = field(default=None, init=False, repr=False)  # in place of the stack, where better
    _formulas: CorrectedPrior | None = field(default=None, init=False, repr=False)  # calibrated by measured steps

    def fit(self, cases: pd.DataFrame, conditions: pd.DataFrame | None = None) -> Self:
        """Learns from earlier runs, oldest first, and from the conditions before them, one row a run."""
        questions = questions_of(cases)
        self._cohorts = CohortStore.of(questions, ended_runs(cases))
        if self._cohorts.cohorts:
            with one_thread():
                self._learn(list(map(key_of, questions)), cases["seconds"].to_numpy(np.float64), conditions)
        return self

    def _learn(self, keys: Sequence[str], seconds: Floats, conditions: pd.DataFrame | None) -> None:
        table = self._fit_neighbours()
        self._new_cohorts = NewCohortModel(self.seed, self.outcome == Outcome.STEP).fit(table, self._cohorts)
        self.track_records = self._new_cohorts.track_records
        self._calibrate(self._cohorts)
        self._cohort_model = CohortModel().fit(keys, seconds, conditions)
        self._pauses = Pauses().fit(self._cohorts.cohorts.values())
        self._on_devices = DeviceTransfers(self.seed).learn(self._cohorts)

    def with_trees(self, trees: RunTrees | None) -> Self:
        """Answer for cohorts that never ran by trees of all runs; None: by what was learned from the cohorts."""
        self._run_trees = trees
        return self

    def fit_formulas(self, cases: pd.DataFrame) -> Self:
        """Calibrates the formulas alone, for workloads that never ran."""
        self._calibrate(CohortStore.of(questions_of(cases), ended_runs(cases)))
        return self

    def _calibrate(self, cohorts: CohortStore) -> None:
        if self.outcome == Outcome.STEP:
            newest = cohorts.newest
            self._formulas = calibrated(
                [cohort.question for cohort in newest], [cohort.median for cohort in newest], self.seed
            )

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the descriptions and conditions that it learns from."""
        return (*self._new_cohorts.columns, *self._cohort_model.conditions)

    def with_names(self, workloads: Sequence[str]) -> Self:
        """Registers names of workloads without a run, to be suggested in place of mistyped ones."""
        for name in workloads:
            self._cohorts.workloads.setdefault(name, [])
        return self

    def has_run(self, workload: str) -> bool:
        """Return whether the workload has run on any system."""
        return bool(self._cohorts.workloads.get(workload))

    def with_runs(self, cases: pd.DataFrame) -> Self:
        """The same model with further runs added to their cohorts; nothing else is learned again."""
        every = zip(questions_of(cases), ended_runs(cases), strict=True)
        news = [(question, run) for question, run in every if not self.has(question, run)]
        if not news:
            return self
        model = deepcopy(self)
        for question, run in news:
            model.observe(question, run)
        model._fit_neighbours()
        model._on_devices = DeviceTransfers(self.seed).learn(model._cohorts)
        return model

    def cohorts_of(self, workload: str) -> list[tuple[str, Cohort]]:
        """Return the keys and cohorts of a workload."""
        return [(key_of(cohort.question), cohort) for cohort in self._cohorts.of_workload(workload)]

    def observe(self, question: Question, run: EndedRun, conditions: pd.DataFrame | None = None) -> None:
        """Adds one more run that has ended: its cohort's level moves at once, all else at the next fit."""
        if self._cohorts.find(question) is None:
            self._on_devices.forget(question)
        self._cohorts.add(question, run)
        self._cohort_model.observe(key_of(question), run.seconds, conditions)

    def completed(self, question: Question, key: str | None = None) -> Question:
        """Return the question with the facts and the date that it leaves out, as far as earlier runs tell."""
        return completed(question, self._cohorts, self._cohorts.cohorts.get(key or key_of(question)))

    def _is_strange(self, question: Question) -> bool:
        """Return whether nothing ran on the question's system, or it names a device and earlier runs had others."""
        asked, systems = device_of(question), self._cohorts.newest_on
        is_new_device = bool(asked and self._devices) and asked not in self._devices
        return is_new_device or bool(systems and question.system not in systems)

    def has(self, question: Question, run: EndedRun) -> bool:
        """Return whether it has seen a run, or one that is newer than its cohort keeps."""
        cohort = self._cohorts.find(question)
        return cohort is not None and cohort.has(run)

    def _fit_neighbours(self) -> pd.DataFrame:
        """Fit the neighbours to the newest cohorts, and return the table of these, one row a cohort."""
        newest = self._cohorts.newest
        table = described([cohort.question for cohort in newest])
        self._near_keys = [key_of(cohort.question) for cohort in newest]
        self._neighbours = Neighbours().fit(table)
        self._devices = sorted({device_of(cohort.question) for cohort in newest} - {""})
        return table

    def earlier(self, question: Question) -> tuple[float, ...]:
        """Seconds of the question's cohort's runs, oldest first; without any, medians of its workload's cohorts."""
        cohort = self._cohorts.find(question)
        if cohort:
            return tuple(cohort.seconds)
        return tuple(other.median for other in self._cohorts.of_workload(question.workload))

    @property
    def cohort_seconds(self) -> list[Floats]:
        """Seconds of the runs of each cohort, oldest first."""
        return [np.array(cohort.seconds) for cohort in self._cohorts.cohorts.values()]

    def answer(self, question: Question, conditions: pd.DataFrame | None = None) -> RunPrediction:
        """Quantiles with their evidence; `conditions` before the run begins are one row, where known.

        Raises: InvalidInputError where nothing is known to predict the outcome from.
        """
        key = key_of(question)
        basis, whole = self._basis(question, key), self.completed(question, key)
        cohort = self._cohorts.cohorts[key] if basis is PredictionBasis.COHORT else None
        near: list[tuple[Cohort, float]] = []
        if cohort:
            near, prediction = [(cohort, 0.0)], self._of_cohorts([key], [question], conditions)
        elif basis is PredictionBasis.ANALYTIC:
            prediction = self._by_formulas([question])
        else:
            prediction, places, distances = self._of_new_cohorts([whole], EVIDENCE_RUNS)
            near = list(zip(map(self._near, places[0]), map(float, distances[0]), strict=True))
        distance, kind = near[0][1] if near else None, self.kind(question)
        ran = self._cohorts.of_workload(question.workload)
        others = [other.question for other in ran]
        return RunPrediction(
            *(question.workload, question.system, question.world_size, self.outcome, quantiles(prediction), basis),
            distance=distance,
            is_outside=distance is None or distance > 1 or self._is_strange(question),
            evidence=_evidence(near),
            cohort_runs=cohort.count if cohort else 0,
            runs=sum(other.count for other in ran),
            worth=replace(self.track_records.get(kind, Accuracy()), kind=kind),
            warnings=(*novelties(question, others), *device_warnings(whole, others)),
            memory=memory_need(whole),
        )

    def batch(self, questions: Sequence[Question], conditions: pd.DataFrame | None = None) -> Batch:
        """Quantiles of many runs; `conditions` have one row each. Raises: InvalidInputError as `answer`."""
        keys = [key_of(question) for question in questions]
        if conditions is not None:
            return self._predicted(questions, keys, conditions)
        asked = [
            (key, question.node_count, question.facts, question.started_ns)
            for key, question in zip(keys, questions, strict=True)
        ]
        places = {
            pair: place for place, pair in reversed(list(enumerate(asked)))
        }  # repeated questions are answered once
        distinct = self._predicted([questions[place] for place in places.values()], [key for key, *_ in places], None)
        row_of = {pair: row for row, pair in enumerate(places)}
        rows = [row_of[pair] for pair in asked]
        basis, outside = tuple(distinct.basis[row] for row in rows), tuple(distinct.is_outside[row] for row in rows)
        return replace(distinct, seconds=distinct.seconds[rows], basis=basis, is_outside=outside)

    def _predicted(self, questions: Sequence[Question], keys: Sequence[str], conditions: pd.DataFrame | None) -> Batch:
        has_run_on = cache(self._cohorts.has_run_on)
        basis = [self._basis(question, key, has_run_on) for question, key in zip(questions, keys, strict=True)]
        values, outside = np.empty((len(questions), len(LEVELS))), np.ones(len(questions), dtype=bool)
        places = {kind: [place for place, own in enumerate(basis) if own is kind] for kind in set(basis)}
        if repeats := places.get(PredictionBasis.COHORT):
            own_conditions = None if conditions is None else conditions.iloc[repeats]
            values[repeats] = self._of_cohorts(
                [keys[place] for place in repeats], [questions[place] for place in repeats], own_conditions
            ).values
            outside[repeats] = False
        if new := places.get(PredictionBasis.WORKLOAD, []) + places.get(PredictionBasis.TRANSFER, []):
            whole = [self.completed(questions[place], keys[place]) for place in new]
            prediction, _, distances = self._of_new_cohorts(whole, 1)
            is_strange = [self._is_strange(questions[place]) for place in new]
            values[new], outside[new] = prediction.values, (distances[:, 0] > 1) | np.array(is_strange)
        if strange := places.get(PredictionBasis.ANALYTIC):
            values[strange] = self._by_formulas([questions[place] for place in strange]).values
        return Batch(self.outcome, LEVELS, values, tuple(basis), tuple(map(bool, outside)))

    def _basis(
        self, question: Question, key: str, has_run_on: Callable[[str, str], bool] | None = None
    ) -> PredictionBasis:
        """The basis of an answer. Raises: InvalidInputError for impossible parallel degrees."""
        cohort = self._cohorts.cohorts.get(key)
        if cohort is not None and not names_other_device(question, cohort.question):
            return PredictionBasis.COHORT
        check_degrees(question)
        if not self.has_run(question.workload):
            return PredictionBasis.ANALYTIC
        is_here = (has_run_on or self._cohorts.has_run_on)(question.workload, question.system)
        return PredictionBasis.WORKLOAD if is_here else PredictionBasis.TRANSFER

    def kind(self, question: Question) -> QuestionKind:
        """Return the kind of a question, by what of it never ran. Raises: InvalidInputError as `answer`."""
        basis = self._basis(question, key_of(question))
        if basis is PredictionBasis.COHORT:
            return QuestionKind.REPEAT
        if basis is PredictionBasis.ANALYTIC:
            return QuestionKind.WORKLOAD
        ran = [cohort.question for cohort in self._cohorts.of_workload(question.workload)]
        device, devices = device_of(question), {device_of(earlier) for earlier in ran} - {""}
        if basis is PredictionBasis.TRANSFER or (device and devices and device not in devices):
            return QuestionKind.SYSTEM
        is_larger = question.world_size > max(earlier.world_size for earlier in ran)
        return QuestionKind.SCALE if is_larger else QuestionKind.CONFIGURATION

    def _of_cohorts(
        self, keys: Sequence[str], questions: Sequence[Question], conditions: pd.DataFrame | None
    ) -> Prediction:
        cohorts = [self._cohorts.cohorts[key] for key in keys]
        medians = np.array([cohort.median for cohort in cohorts])
        newest = self._cohorts.newest_ns
        dates = [newest if question.started_ns is None else question.started_ns for question in questions]
        paused = [has_paused(cohort, date) for cohort, date in zip(cohorts, dates, strict=True)]
        return self._pauses.widened(self._cohort_model.predict(keys, medians, conditions), paused)

    def _of_new_cohorts(
        self, questions: Sequence[Question], count: int
    ) -> tuple[Prediction, NDArray[np.int64], Floats]:
        """Predictions for completed questions; places and distances of the `count` nearest cohorts, (n_rows, count)."""
        table = described(questions, self._neighbours.kinds)
        places, distances = self._neighbours.nearest(table, count)
        medians = {place: self._near(place).median for place in set(places[:, 0].tolist())}
        nearest = np.array([medians[place] for place in places[:, 0].tolist()])
        if self._run_trees is None:
            prediction = self._new_cohorts.predict(table, nearest=nearest, distances=distances[:, 0])
        else:
            prediction = self._run_trees.predict(questions)
        return self._transferred(prediction, questions), places, distances

    def _transferred(self, prediction: Prediction, questions: Sequence[Question]) -> Prediction:
        """Replace rows about devices with few runs by what other devices say, scaled to these runs."""
        values = prediction.values.copy()
        for rows in _rows_by_place(questions):
            answer = self._on_devices.answer(self._cohorts, [questions[row] for row in rows])
            if answer is not None:
                usual = answer.quantiles.seconds
                near = np.zeros(len(usual.values))  # errors were of rows as far from the runs as these
                values[np.array(rows)[answer.asked]] = self._new_cohorts.of_runs(usual, near).values
        return Prediction(prediction.levels, values)

    def energy(self, question: Question) -> TransferredEnergy | None:
        """Return the energy on a node of a device with few runs, by what others drew; None where that is unknown."""
        key = key_of(question)
        if self.outcome == Outcome.JOB or self._basis(question, key) is not PredictionBasis.WORKLOAD:
            return None
        return self._on_devices.energy(self._cohorts, self.completed(question))

    def _near(self, place: int) -> Cohort:
        return self._cohorts.cohorts[self._near_keys[place]]

    def _by_formulas(self, questions: Sequence[Question]) -> Prediction:
        prediction = None
        if self.outcome != Outcome.JOB:
            whole = [self.completed(question) for question in questions]
            prediction = predicted_by_formulas(whole, self._formulas, is_step=self.outcome == Outcome.STEP)
        if prediction is None:
            workload = questions[0].workload
            raise NothingKnownError(workload, self.outcome, self._cohorts.workloads)
        return prediction


def _rows_by_place(questions: Sequence[Question]) -> list[list[int]]:
    """Return the places of questions about one workload on one device of a system."""
    rows: dict[tuple[str, str, str], list[int]] = {}
    for row, question in enumerate(questions):
        rows.setdefault((question.workload, question.system, device_of(question)), []).append(row)
    return list(rows.values())


def _evidence(near: Sequence[tuple[Cohort, float]]) -> tuple[EvidenceRun, ...]:
    """The newest runs of the question's own cohort, or the newest run of each near cohort."""
    evidence = []
    for cohort, distance in near:
        asked = cohort.question
        count = EVIDENCE_RUNS if len(near) == 1 and distance == 0 else 1
        for run_id, seconds in list(zip(cohort.run_ids, cohort.seconds, strict=True))[-count:][::-1]:
            evidence.append(EvidenceRun(run_id, asked.workload, asked.system, asked.world_size, seconds, distance))
    return tuple(evidence)

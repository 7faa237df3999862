"""Transfers to the devices of a store, each learned once."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

from crosswind.data.schema.answers.energy import MeterScope
from crosswind.data.schema.prediction import Prediction
from crosswind.data.schema.question import Question
from crosswind.models.next_run.cohort_store import CohortStore
from crosswind.models.next_run.completion import device_of
from crosswind.models.next_run.device_transfer import OWN_MAX, Answer, DeviceRuns, Law, device_runs

AHEAD_MAX = 4  # learned before a question, so that a kept model has them; each takes a second or so
DEVICES_MAX = 64


@dataclass(frozen=True)
class TransferredEnergy:
    """Quantiles of a node's joules and the median of its watts, a meter's scope, and the metered runs on the device."""

    joules: Prediction
    watts: float
    scope: MeterScope
    metered_runs: int


@dataclass
class DeviceTransfers:
    """Transfers by device, learned when it is first asked about, and again when its runs have doubled."""

    seed: int = 0
    _laws: dict[str, Law] = field(default_factory=dict, init=False, repr=False)  # by workload
    _devices: dict[str, DeviceRuns | None] = field(default_factory=dict, init=False, repr=False)
    _news: dict[str, int] = field(default_factory=dict, init=False, repr=False)  # new cohorts, by system

    def learn(self, cohorts: CohortStore) -> Self:
        """Learn the newest devices with few runs ahead of questions."""
        learned = 0
        for question in _hardly_run(cohorts):
            if learned < AHEAD_MAX and self._key(cohorts, question) not in self._devices:
                learned += self._runs_on(cohorts, question) is not None
        return self

    def forget(self, question: Question) -> None:
        """Count a new cohort on a system; what was transferred to it is learned again when its cohorts have doubled."""
        self._laws.pop(question.workload, None)
        self._news[question.system] = news = self._news.get(question.system, 0) + 1
        for key, runs in list(self._devices.items()):
            if json.loads(key)[0] == question.system and (runs is None or news >= sum(runs.own.values())):
                del self._devices[key]
                self._news[question.system] = 0

    def answer(self, cohorts: CohortStore, questions: Sequence[Question]) -> Answer | None:
        """Quantiles of questions about one workload, system and device, with their facts; None where none has any."""
        runs = self._runs_on(cohorts, questions[0])
        return None if runs is None else runs.answer(questions)

    def energy(self, cohorts: CohortStore, question: Question) -> TransferredEnergy | None:
        """Return the energy of one question; None where it is not transferred."""
        runs = self._runs_on(cohorts, question)
        if runs is None or not runs.scope or (answer := runs.answer([question])) is None:
            return None
        [watts], [own] = answer.quantiles.watts.at(0.5), answer.own_runs
        return TransferredEnergy(answer.quantiles.joules, float(watts), MeterScope(runs.scope), own)

    def _runs_on(self, cohorts: CohortStore, question: Question) -> DeviceRuns | None:
        law = self._law(cohorts, question.workload)
        if not law.is_usable:
            return None
        key = self._key(cohorts, question)
        if key not in self._devices:
            if len(self._devices) >= DEVICES_MAX:
                self._devices.clear()
            alike = [name for name in cohorts.workloads if self._law(cohorts, name) == law]
            every = [cohort for name in alike for cohort in cohorts.of_workload(name)]
            self._devices[key] = device_runs(every, question, law, self.seed)
        return self._devices[key]

    def _law(self, cohorts: CohortStore, workload: str) -> Law:
        if workload not in self._laws:
            self._laws[workload] = Law.of(cohorts.of_workload(workload))
        return self._laws[workload]

    def _key(self, cohorts: CohortStore, question: Question) -> str:
        law = self._law(cohorts, question.workload)
        return json.dumps([question.system, device_of(question), law.coordinates, law.limit])


def _hardly_run(cohorts: CohortStore) -> Iterator[Question]:
    """Yield a question about each workload on each system where it has run in few configurations, the newest first."""
    for workload in reversed(cohorts.workloads):
        by_system: dict[str, list[Question]] = {}
        for cohort in cohorts.of_workload(workload):
            by_system.setdefault(cohort.question.system, []).append(cohort.question)
        if len(by_system) > 1:
            yield from (own[-1] for own in by_system.values() if len(own) <= OWN_MAX)

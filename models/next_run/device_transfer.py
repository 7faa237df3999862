"""Transfer of workloads to a device where they have hardly run, from the devices where they ran more."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.question import Question
from crosswind.models.energy.metered import positive_numbers
from crosswind.models.energy.power_limit import limit_name
from crosswind.models.next_run.cohort_store import Cohort, plain
from crosswind.models.next_run.completion import device_of, names_other_device
from crosswind.models.transfer.calibrated_transfer import LIMIT, CalibratedTransfer, OnDevice

OWN_MAX = 8  # cohorts of one job on the device: more of them say more than other devices do
ELSEWHERE_MIN = 4  # cohorts of the job on other devices
SOURCES_MAX = 12  # devices, those with the most cohorts
COORDINATES_MAX = 3  # numbers that a workload's cohorts differ by, limits of power not counted
BEYOND_MAX = 4.0  # times the largest value that the sources ran, or a part of the smallest
RANKS = "ranks"
NO_LIMIT_WATTS = 1e6  # where none was set, nothing is slowed down by one
UNKNOWN_WATTS = 100.0  # in place of powers that no meter measured: alike for all, they change no time


@dataclass(frozen=True)
class Law:
    """Parameters that a workload's cohorts differ by: positive numbers, and one that limits power."""

    coordinates: tuple[str, ...]
    limit: str | None

    @classmethod
    def of(cls, cohorts: Sequence[Cohort]) -> "Law":
        """Return the law of the cohorts of one workload; a limit counts where the power of all is known."""
        numbers = [_numbers(cohort.question) for cohort in cohorts]
        shared = set.intersection(*map(set, numbers)) if numbers else set()
        varying = sorted(name for name in shared if len({of_one[name] for of_one in numbers}) > 1)
        limit = limit_name(varying)
        if limit is not None and not all(cohort.node_watts > 0 for cohort in cohorts):
            limit = None
        others = tuple(name for name in varying if name != limit)
        return cls(others or ((RANKS,) if limit else ()), limit)

    @property
    def is_usable(self) -> bool:
        """Return whether there are numbers, and so few that a handful of runs shows their effects."""
        return 1 <= len(self.coordinates) <= COORDINATES_MAX

    def row(self, question: Question) -> dict[str, object] | None:
        """Return the job, the limit and the coordinates of a question; None where one of these is no number."""
        numbers = _numbers(question)
        named = self.coordinates if self.limit is None else (*self.coordinates, self.limit)
        if not all(name in numbers for name in named):
            return None
        rest = {name: plain(value) for name, value in question.configuration.items() if name not in named}
        ranks = None if RANKS in named else question.world_size
        job = json.dumps([question.workload, rest, ranks], sort_keys=True)
        limit = NO_LIMIT_WATTS if self.limit is None else numbers[self.limit]
        return {"job": job, LIMIT: limit, **{name: numbers[name] for name in self.coordinates}}


@dataclass(frozen=True)
class Answer:
    """Quantiles of those questions, a mask (n_questions,), that the transfer can answer."""

    asked: NDArray[np.bool_]
    quantiles: OnDevice
    own_runs: tuple[int, ...]  # cohorts of each row's job on the device


@dataclass
class DeviceRuns:
    """A device's runs of workloads that obey one law, and what other devices say of the rest.

    `scope` is that of the meter of a node's watts, which are transferred too; empty where only times are.
    """

    law: Law
    transfer: CalibratedTransfer
    scope: str
    lowest: dict[str, tuple[float, ...]]  # by job, of each coordinate on other devices
    highest: dict[str, tuple[float, ...]]
    own: dict[str, int]  # by job, the cohorts on the device
    n_sources: int

    def answer(self, questions: Sequence[Question]) -> Answer | None:
        """Quantiles of the questions that are about known jobs, not far beyond what ran elsewhere; None for none."""
        rows = [self.law.row(question) for question in questions]
        asked = np.array([row is not None and self._covers(row) for row in rows], dtype=np.bool_)
        if not asked.any():
            return None
        table = pd.DataFrame([row for row, is_asked in zip(rows, asked, strict=True) if is_asked])
        return Answer(asked, self.transfer.predict(table), tuple(self.own[job] for job in table["job"]))

    def _covers(self, row: Mapping[str, object]) -> bool:
        job = str(row["job"])
        if not 1 <= self.own.get(job, 0) <= (OWN_MAX if self.n_sources > 1 else 1):
            return False
        values = np.array([row[name] for name in self.law.coordinates], dtype=np.float64)
        low, high = np.array(self.lowest[job]), np.array(self.highest[job])
        return bool(np.all((low / BEYOND_MAX <= values) & (values <= high * BEYOND_MAX)))


def device_runs(cohorts: Sequence[Cohort], question: Question, law: Law, seed: int) -> DeviceRuns | None:
    """Learn about the question's device from cohorts of workloads that obey this law.

    None unless a job ran there a few times, and ELSEWHERE_MIN times on other devices.
    """
    rows = _table(law, cohorts, question)
    own, elsewhere = rows[rows["is_here"]], rows[~rows["is_here"]]
    if law.limit is not None and len(own):
        own, elsewhere = (table[table["scope"] == own["scope"].iloc[-1]] for table in (own, elsewhere))
    elsewhere = elsewhere[elsewhere["job"].isin(set(own["job"]))]
    most = list(elsewhere["place"].value_counts().index[:SOURCES_MAX])
    elsewhere = elsewhere[elsewhere["place"].isin(most)]
    counts = elsewhere["job"].value_counts()
    own = own[own["job"].map(counts).fillna(0) >= ELSEWHERE_MIN]
    if own.empty or own["job"].value_counts().min() > OWN_MAX:
        return None
    return _fitted(law, own, {str(place): elsewhere[elsewhere["place"] == place] for place in reversed(most)}, seed)


def _fitted(law: Law, own: pd.DataFrame, sources: Mapping[str, pd.DataFrame], seed: int) -> DeviceRuns:
    few = own.groupby("job").head(OWN_MAX).reset_index(drop=True)
    shared = {place: rows[rows["job"].isin(set(own["job"]))] for place, rows in sources.items()}
    tables = {place: rows.reset_index(drop=True) for place, rows in shared.items() if len(rows)}
    transfer = CalibratedTransfer(seed, law.coordinates).fit(tables, few)
    by_job = pd.concat(tables.values()).groupby("job")[list(law.coordinates)]
    counts = {str(job): int(count) for job, count in own["job"].value_counts().items()}
    scope = "" if law.limit is None else str(own["scope"].iloc[-1])
    return DeviceRuns(law, transfer, scope, _by_job(by_job.min()), _by_job(by_job.max()), counts, len(tables))


def _by_job(table: pd.DataFrame) -> dict[str, tuple[float, ...]]:
    return {str(job): tuple(map(float, row)) for job, *row in table.itertuples()}


def _table(law: Law, cohorts: Sequence[Cohort], question: Question) -> pd.DataFrame:
    """One row a cohort: its law's row, its usual seconds, its power, and its device."""
    rows = []
    for cohort in cohorts:
        if (row := law.row(cohort.question)) is not None:
            ran = cohort.question
            is_here = ran.system == question.system and not names_other_device(question, ran)
            watts = UNKNOWN_WATTS if law.limit is None else cohort.node_watts
            place = json.dumps([ran.system, device_of(ran)])
            measured = {"seconds": cohort.median, "watts": watts, "scope": cohort.scope}
            rows.append(row | measured | {"place": place, "is_here": is_here})
    names = ("job", LIMIT, *law.coordinates, "seconds", "watts", "scope", "place", "is_here")
    return pd.DataFrame(rows, columns=list(names)).astype({"is_here": bool})


def _numbers(question: Question) -> dict[str, float]:
    """Return the parameters that are positive numbers, and the ranks."""
    return {**positive_numbers(question.configuration), RANKS: float(question.world_size)}

"""The times of every cohort's newest runs, kept in memory."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self

import numpy as np
import pandas as pd

from crosswind.data.schema.metric import Scalar
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.question import RANKS_MAX, Question, is_scalar

KEPT_RUNS = 200  # of a cohort, the newest
COHORTS_MAX = 3000  # of which other cohorts are told


@dataclass(frozen=True)
class Ended:
    """A run that has ended: when it began, in ns UTC, and what it took."""

    run_id: str
    started_ns: int
    seconds: float


@dataclass
class Cohort:
    """The runs of one workload, configuration and scale on one system, oldest first."""

    question: Question
    run_ids: list[str] = field(default_factory=list)
    started_ns: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    count: int = 0  # of all that ever ran, also those no longer kept

    def add(self, run: Ended) -> None:
        """Notes a run that is newer than the others."""
        self.count += 1
        self.run_ids = [*self.run_ids[1 - KEPT_RUNS :], run.run_id]
        self.started_ns = [*self.started_ns[1 - KEPT_RUNS :], run.started_ns]
        self.seconds = [*self.seconds[1 - KEPT_RUNS :], run.seconds]

    def has(self, run: Ended) -> bool:
        """Return whether it counts already, or is older than all that is kept and so says nothing of the next one."""
        return run.run_id in self.run_ids or run.started_ns < min(self.started_ns)

    @property
    def median(self) -> float:
        """Seconds, of the runs that are kept."""
        return float(np.median(self.seconds))


@dataclass
class CohortStore:
    """Cohorts by their key, and the keys of each workload."""

    cohorts: dict[str, Cohort] = field(default_factory=dict)
    workloads: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, cases: pd.DataFrame) -> Self:
        """The cohorts of `cases`, which are in the order of time."""
        cohorts = cls()
        for question, run in zip(questions_of(cases), ended_of(cases), strict=True):
            cohorts.add(question, run)
        return cohorts

    def add(self, question: Question, run: Ended) -> None:
        """Notes a run that is newer than all others."""
        key = key_of(question)
        if key not in self.cohorts:
            self.cohorts[key] = Cohort(question)
            self.workloads.setdefault(question.workload, []).append(key)
        self.cohorts[key].add(run)

    @property
    def newest(self) -> list[Cohort]:
        """Cohorts by their first runs, oldest first, the newest COHORTS_MAX: so many tell the others."""
        return list(self.cohorts.values())[-COHORTS_MAX:]

    def of_workload(self, workload: str) -> list[Cohort]:
        """Its cohorts; none of one that never ran."""
        return [self.cohorts[key] for key in self.workloads.get(workload, ())]

    def ran_on(self, workload: str, system: str) -> bool:
        """Return whether a workload ever ran on a system."""
        return any(self.cohorts[key].question.system == system for key in self.workloads.get(workload, ()))

    def find(self, question: Question) -> Cohort | None:
        """The question's cohort, if it ran."""
        return self.cohorts.get(key_of(question))

    @property
    def offsets(self) -> Floats:
        """Log ratios of runs to the median of their cohort, of cohorts with two runs at least."""
        ratios = [
            np.log(cohort.seconds) - np.log(cohort.median) for cohort in self.cohorts.values() if cohort.count > 1
        ]
        return np.concatenate([np.zeros(0), *ratios])


def key_of(question: Question) -> str:
    """Names the cohort of a question, in JSON; the number of nodes is where it runs, not what.

    As json writes it, whose own encoder takes three times as long.
    """
    settings = [f"{_quoted(name)}: {_value(value)}" for name, value in sorted(question.configuration.items())]
    inner = ", ".join(settings)
    return f"[{_quoted(question.workload)}, {_quoted(question.system)}, {{{inner}}}, {question.world_size}]"


_quoted = lru_cache(maxsize=1024)(json.encoder.encode_basestring_ascii)


def _value(value: Scalar) -> str:
    scalar = plain(value)
    if isinstance(scalar, str):
        return _quoted(scalar)
    if isinstance(scalar, bool):
        return "true" if scalar else "false"
    return float.__repr__(scalar) if isinstance(scalar, float) else int.__repr__(scalar)


def plain(value: Scalar) -> Scalar:
    """8.0 is 8: JSON of other tools tells no whole number from a fraction."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def ended_of(cases: pd.DataFrame) -> list[Ended]:
    """Return when each of `cases` began, and what it took."""
    rows = zip(cases["run_id"], cases["started_ns"], cases["seconds"], strict=True)
    return [Ended(str(run_id), int(started), float(seconds)) for run_id, started, seconds in rows]


def questions_of(cases: pd.DataFrame) -> list[Question]:
    """Return what each of `cases` ran; of a recorded configuration what nobody could ask about is left out."""
    names = ("workload", "system", "configuration", "world_size", "node_count")
    rows = zip(*(cases[name] for name in names), strict=True)
    return [
        Question(str(workload), str(system), _told(configuration), *_scale(ranks, nodes))
        for workload, system, configuration, ranks, nodes in rows
    ]


def _told(configuration: Mapping[str, Any]) -> Mapping[str, Any]:
    return {str(name): flat for name, value in configuration.items() if is_scalar(flat := _flat(value))}


def _scale(ranks: float, nodes: float | None) -> tuple[int, int | None]:
    n_ranks = min(max(int(ranks), 1), RANKS_MAX)
    return n_ranks, None if nodes is None or not nodes >= 1 else min(int(nodes), n_ranks)


def _flat(value: Any) -> Any:
    """Lists and the like as JSON."""
    return json.dumps(value, sort_keys=True, default=str) if isinstance(value, list | tuple | dict) else value

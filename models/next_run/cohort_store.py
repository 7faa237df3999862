"""The times of every cohort's newest runs, kept in memory."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, Self

import numpy as np
import pandas as pd

from crosswind.data.schema.metric import Scalar
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.question import NS_MAX, RANKS_MAX, Question, is_scalar

COHORT_RUNS_MAX = 200  # of a cohort, the newest
PAUSE_NS = 90 * 24 * 3600 * 10**9  # software and machines change in months
COHORTS_MAX = 3000  # from which new cohorts are predicted
POWER_COLUMNS = ("node_watts", "scope")  # of cases, where any run's power is known


@dataclass(frozen=True)
class EndedRun:
    """A run that has ended: its start in ns UTC and its seconds.

    `node_watts` is the mean power of a node, and `scope` that of its meter; NaN and empty where they are not read.
    """

    run_id: str
    started_ns: int
    seconds: float
    node_watts: float = math.nan
    scope: str = ""


@dataclass
class Cohort:
    """The runs of one workload, configuration and scale on one system, oldest first."""

    question: Question
    run_ids: list[str] = field(default_factory=list)
    started_ns: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    count: int = 0  # of all runs ever, those dropped included
    node_watts: float = math.nan  # of the newest run whose power is known, by a meter of this scope
    scope: str = ""

    def add(self, question: Question, run: EndedRun) -> None:
        """Adds a run that is newer than the others; `question` is its own, whose facts replace older ones."""
        before = self.question
        if question.facts != before.facts or (question.node_count is None and before.node_count is not None):
            nodes = question.node_count or before.node_count
            question = replace(question, facts=question.facts.over(before.facts), node_count=nodes)
        self.question = question
        self.count += 1
        self.run_ids = [*self.run_ids[1 - COHORT_RUNS_MAX :], run.run_id]
        self.started_ns = [*self.started_ns[1 - COHORT_RUNS_MAX :], run.started_ns]
        self.seconds = [*self.seconds[1 - COHORT_RUNS_MAX :], run.seconds]
        if run.node_watts > 0:
            self.node_watts, self.scope = run.node_watts, run.scope

    def has(self, run: EndedRun) -> bool:
        """Return whether a run is counted already, or is older than all runs kept and so irrelevant by now."""
        return run.run_id in self.run_ids or run.started_ns < min(self.started_ns)

    @property
    def seasons(self) -> list[tuple[Question, float]]:
        """The question and the median seconds of the runs between two pauses, oldest first; mostly there is one."""
        return [
            (
                replace(self.question, started_ns=_moment(self.started_ns[start])),
                float(np.median(self.seconds[start:end])),
            )
            for start, end in pairwise([0, *pauses_in(self.started_ns), len(self.seconds)])
        ]

    @property
    def median(self) -> float:
        """Median seconds of the runs kept."""
        return float(np.median(self.seconds))


@dataclass
class CohortStore:
    """Cohorts by their key, and the keys of each workload."""

    cohorts: dict[str, Cohort] = field(default_factory=dict)
    workloads: dict[str, list[str]] = field(default_factory=dict)
    newest_on: dict[str, Question] = field(default_factory=dict)  # by system, with the facts of its newest run
    newest_ns: int | None = None  # the latest start of a run

    @classmethod
    def of(cls, questions: Iterable[Question], runs: Iterable[EndedRun]) -> Self:
        """Make the cohorts of runs, which are in the order of time, and the question that each answers."""
        cohorts = cls()
        for question, run in zip(questions, runs, strict=True):
            cohorts.add(question, run)
        return cohorts

    def add(self, question: Question, run: EndedRun) -> None:
        """Adds a run that is newer than all others."""
        key = key_of(question)
        if key not in self.cohorts:
            self.cohorts[key] = Cohort(question)
            self.workloads.setdefault(question.workload, []).append(key)
        self.cohorts[key].add(question, run)
        if question.facts.given or question.system not in self.newest_on:
            self.newest_on[question.system] = question
        self.newest_ns = max(self.newest_ns or 0, min(run.started_ns, NS_MAX))

    @property
    def newest(self) -> list[Cohort]:
        """The newest COHORTS_MAX cohorts, in the order of their first runs."""
        return list(self.cohorts.values())[-COHORTS_MAX:]

    def of_workload(self, workload: str) -> list[Cohort]:
        """The cohorts of a workload, none if it never ran."""
        return [self.cohorts[key] for key in self.workloads.get(workload, ())]

    def has_run_on(self, workload: str, system: str) -> bool:
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


def pauses_in(started_ns: Sequence[int]) -> list[int]:
    """Return the places, after the first, of runs that began after a pause of months."""
    return [place for place in range(1, len(started_ns)) if started_ns[place] - started_ns[place - 1] >= PAUSE_NS]


def key_of(question: Question) -> str:
    """Return the key of a question's cohort, in JSON; the number of nodes is no part of it.

    Written by hand in the format of `json.dumps`, which takes three times as long.
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
    """Return 8 for 8.0: the JSON of other tools does not distinguish them."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def ended_runs(cases: pd.DataFrame) -> list[EndedRun]:
    """Return the start, the seconds and the power of each of `cases`."""
    rows = zip(cases["run_id"], cases["started_ns"], cases["seconds"], strict=True)
    runs = [EndedRun(str(run_id), int(started), float(seconds)) for run_id, started, seconds in rows]
    if POWER_COLUMNS[0] not in cases:
        return runs
    powers = zip(*(cases[name] for name in POWER_COLUMNS), strict=True)
    return [
        replace(run, node_watts=float(watts), scope=str(scope)) if watts > 0 else run
        for run, (watts, scope) in zip(runs, powers, strict=True)
    ]


def questions_of(cases: pd.DataFrame) -> list[Question]:
    """Return each of `cases` as a question; values of its configuration that no question can hold are left out."""
    names = ("workload", "system", "configuration", "world_size", "node_count", "facts", "started_ns")
    rows = zip(*(cases[name] for name in names), strict=True)
    return [
        Question(str(workload), str(system), _askable(configuration), *_scale(ranks, nodes), facts, _moment(started))
        for workload, system, configuration, ranks, nodes, facts, started in rows
    ]


def _askable(configuration: Mapping[str, Any]) -> Mapping[str, Any]:
    return {str(name): flat for name, value in configuration.items() if is_scalar(flat := _flat(value))}


def _scale(ranks: float, nodes: float | None) -> tuple[int, int | None]:
    n_ranks = min(max(int(ranks), 1), RANKS_MAX)
    return n_ranks, None if nodes is None or not nodes >= 1 else min(int(nodes), n_ranks)


def _moment(started_ns: float) -> int:
    return min(max(int(started_ns), 0), NS_MAX)


def _flat(value: Any) -> Any:
    """Lists and the like as JSON."""
    return json.dumps(value, sort_keys=True, default=str) if isinstance(value, list | tuple | dict) else value

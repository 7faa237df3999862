"""Questions that are put to a client, and figures of its answers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from crosswind.client.local import Local
from crosswind.client.protocol import Client
from crosswind.data.schema.answers.predictions import Outcome, RunPrediction
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.question import Question
from crosswind.models.next_run.cases import cases
from crosswind.models.next_run.cohort_store import questions_of

LOW, MIDDLE, HIGH = 0.05, 0.5, 0.95


@dataclass(frozen=True)
class Asked:
    """A question about one configuration, and the seconds that each of its runs then took."""

    question: Question
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class Scored:
    """The answer to one question: error of its median, share of runs in its 90 % interval, and what it rests on."""

    ape: float
    inside: float
    basis: str
    is_outside: bool


@dataclass(frozen=True)
class Scores:
    """Scores of the questions that were answered, and the reasons why others were not."""

    answered: tuple[Scored, ...]
    refused: tuple[str, ...] = ()

    @classmethod
    def together(cls, parts: Iterable["Scores"]) -> "Scores":
        """Return the scores of all parts."""
        every = list(parts)
        return cls(
            tuple(scored for part in every for scored in part.answered),
            tuple(reason for part in every for reason in part.refused),
        )

    def figures(self) -> dict[str, float]:
        """Return MAPE, median APE, coverage with its binomial interval, and counts of kinds of answers."""
        if not self.answered:
            return {"refused": len(self.refused)}
        ape = np.array([scored.ape for scored in self.answered])
        outside = sum(scored.is_outside for scored in self.answered)
        counts = {"outside": outside} | ({"refused": len(self.refused)} if self.refused else {})
        return {
            "mape": float(ape.mean()),
            "median_ape": float(np.median(ape)),
            **coverage([scored.inside for scored in self.answered]),
            **counts,
        }

    @property
    def covers(self) -> bool:
        """Return whether a coverage of 90 % lies within the binomial noise."""
        held = coverage([scored.inside for scored in self.answered])
        return held["coverage_90_low"] <= 0.9 <= held["coverage_90_high"]


def ran(client: Client, outcome: Outcome) -> pd.DataFrame:
    """Return the runs of a store, a row each, with the columns of `cases` and `question`: what asks for such a run."""
    assert isinstance(client, Local)
    rows = cases(client.store, outcome)
    return rows.assign(question=questions_of(rows))


def coverage(inside: Sequence[float]) -> dict[str, float]:
    """The mean share inside, and its 95 % interval as if it were a count of independent questions.

    Source: Clopper and Pearson 1934.
    """
    share = float(np.mean(inside))
    interval = binomtest(round(share * len(inside)), len(inside)).proportion_ci()
    return {"coverage_90": share, "coverage_90_low": float(interval.low), "coverage_90_high": float(interval.high)}


def ask(client: Client, asked: Iterable[Asked], outcome: Outcome | None = None) -> Scores:
    """Ask every question, those of one workload after one another."""
    answered, refused = [], []
    for one in sorted(asked, key=lambda one: (one.question.workload, one.question.system)):
        try:
            answer = client.predict(one.question, outcome)
        except InvalidInputError as error:
            refused.append(str(error))
        else:
            answered.append(_scored(answer, np.array(one.seconds)))
    return Scores(tuple(answered), tuple(refused))


def _scored(answer: RunPrediction, seconds: Floats) -> Scored:
    at: Mapping[float, float] = {quantile.level: quantile.seconds for quantile in answer.quantiles}
    inside = float(np.mean((at[LOW] <= seconds) & (seconds <= at[HIGH])))
    return Scored(abs(at[MIDDLE] / float(np.median(seconds)) - 1), inside, str(answer.basis), answer.is_outside)

"""Predictions of cohorts that never ran, from those that did."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd

from crosswind.data.schema.answers.predictions import Accuracy, QuestionKind
from crosswind.data.schema.prediction import Floats, Prediction, monotone
from crosswind.data.schema.question import Question
from crosswind.models.next_run.cohort_store import Cohort, CohortStore
from crosswind.models.next_run.describe import FORMULA, SCALE, SYSTEM, as_learned, described, numbers_in
from crosswind.models.next_run.fact_columns import MODEL
from crosswind.models.next_run.formula_surrogate import FormulaSurrogate
from crosswind.models.next_run.parameters import learned_columns, with_common
from crosswind.models.surrogate import LEVELS
from crosswind.models.surrogate.log_errors import quantiles_of
from crosswind.models.surrogate.log_normal import SCORES
from crosswind.models.surrogate.stack import HeldOut, Stack
from crosswind.models.surrogate.typical_time import typical_time
from crosswind.models.surrogate.validation import CAUTIOUS_DEVIATION, LeaveGroupOut, SmallToLarge, Split

COHORTS_MIN = 4  # with fewer, the nearest one's time is the prediction
SYSTEMS_MAX = 10  # of more, each has few runs; where their devices are known, their names are mostly noise
COHORT = "cohort"  # the column that no member of the stack sees
STRETCH_MAX = 1.5  # times as wide as errors were; the answer says that a question farther off is outside
CAUTIOUS: Floats = CAUTIOUS_DEVIATION * SCORES


@dataclass
class NewCohortModel:
    """A stack of surrogates of cohorts' usual seconds, wider where a question is farther from all past cohorts.

    With fewer than COHORTS_MIN cohorts it is the nearest one's time, with a cautious band.
    """

    seed: int = 0
    is_step: bool = False  # of what is predicted: a step's seconds, or a run's
    columns: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()  # those of them that were numbers
    _stack: Stack | None = field(default=None, init=False, repr=False)
    _run_offsets: Floats = field(default_factory=lambda: np.zeros(len(LEVELS)), init=False, repr=False)

    def fit(self, table: pd.DataFrame, cohorts: CohortStore) -> Self:
        """Learns from the newest cohorts and the table of their descriptions, one row each.

        One that ran on after a pause has a row for each season: its dates say how software got faster.
        """
        if len(table) < COHORTS_MIN:
            self.columns, self.numbers = tuple(map(str, table.columns)), numbers_in(table)
            return self
        own, questions, usual = _seasons(cohorts.newest)
        whole = with_common(table if len(own) == len(table) else described(questions))
        learned = whole[learned_columns(whole, usual)]
        self.columns, self.numbers = tuple(map(str, learned.columns)), numbers_in(learned)
        numbered = learned.assign(**{COHORT: own})
        accelerator = MODEL if MODEL in numbered else None
        made = typical_time(self.seed, scale=SCALE, device=SYSTEM, site=COHORT, accelerator=accelerator)
        if accelerator and _is_noise(numbered):
            made.hidden = (*made.hidden, SYSTEM)
        if FORMULA in table:
            made.members = (FormulaSurrogate(self.is_step, self.seed), *made.members)
        self._stack = made.fit(numbered, usual)
        offsets = cohorts.offsets
        if len(offsets) >= COHORTS_MIN:
            self._run_offsets = quantiles_of(offsets)
        return self

    @property
    def track_records(self) -> dict[str, Accuracy]:
        """The accuracy for each kind of question on cohorts that were held out, where there were enough."""
        if self._stack is None:
            return {}
        pairs = zip(self._stack.splits, self._stack.blends, strict=True)
        kinds = [(_kind_of(split), blend.held_out) for split, blend in pairs]
        return {str(kind): _accuracy(held) for kind, held in reversed(kinds) if kind is not None and held is not None}

    def predict(self, table: pd.DataFrame, *, nearest: Floats, distances: Floats) -> Prediction:
        """Quantiles of a run's seconds; the nearest cohorts' usual seconds and distances have shape (n_rows,)."""
        if self._stack is None:
            return around(nearest, CAUTIOUS, distances)
        seen = as_learned(with_common(table), self.columns, self.numbers).assign(**{COHORT: ""})
        return self.of_runs(self._stack.predict(seen), distances)

    def of_runs(self, usual: Prediction, distances: Floats) -> Prediction:
        """Quantiles of single runs from those of cohorts' usual seconds; wider by distances (n_rows,) above 1."""
        medians = usual.at(0.5)
        offsets = np.log(usual.values) - np.log(medians)[:, None]
        return around(medians, np.sign(offsets) * np.hypot(offsets, self._run_offsets), distances)


def _seasons(cohorts: Sequence[Cohort]) -> tuple[list[str], list[Question], Floats]:
    """The cohort, the question and the usual seconds of every season, in the order of time."""
    seasons = [(str(place), *season) for place, cohort in enumerate(cohorts) for season in cohort.seasons]
    if len(seasons) > len(cohorts):
        seasons.sort(key=lambda season: season[1].started_ns or 0)
    own, questions, usual = zip(*seasons, strict=True)
    return list(own), list(questions), np.array(usual)


def _is_noise(table: pd.DataFrame) -> bool:
    """Return whether the systems' names are many, or say nothing that their devices do not."""
    systems, pairs = table[SYSTEM].nunique(), len(table[[SYSTEM, MODEL]].drop_duplicates())
    is_same = bool(table[MODEL].notna().all()) and systems == table[MODEL].nunique() == pairs
    return systems > SYSTEMS_MAX or is_same


def _kind_of(split: Split) -> QuestionKind | None:
    """Return the kind of question that a split is like; None for later ones, which all are."""
    if isinstance(split, SmallToLarge):
        return QuestionKind.SCALE
    if isinstance(split, LeaveGroupOut):
        return QuestionKind.CONFIGURATION if split.column == COHORT else QuestionKind.SYSTEM
    return None


def _accuracy(held: HeldOut) -> Accuracy:
    return Accuracy(held.rows, None, held.coverage_90, median_error=held.median_error, is_held_out=True)


def around(medians: Floats, offsets: Floats, distances: Floats) -> Prediction:
    """Offsets of log seconds, (n_levels,) or (n_rows, n_levels), around medians, wider by distances above 1."""
    return monotone(LEVELS, medians[:, None] * np.exp(offsets * np.clip(distances, 1.0, STRETCH_MAX)[:, None]))

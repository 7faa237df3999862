"""Columns that describe the runs of all partitions, as one process would choose them from all runs at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from crosswind.data.schema.question import Question
from crosswind.models.next_run.cohort_store import plain
from crosswind.models.next_run.describe import (
    FORMULA,
    MANY,
    NODES,
    SCALE,
    SETTING,
    SYSTEM,
    TEXTS_MAX,
    WORKLOAD,
    Kinds,
    described,
)
from crosswind.models.next_run.fact_columns import DATE, MODEL, YEARS_MIN, all_fact_columns

FIXED: Kinds = {WORKLOAD: (), SYSTEM: (), SCALE: None, NODES: None}


@dataclass
class Setting:
    """The values of one parameter: as texts, of which no more than say that there are too many are kept."""

    labels: set[str | None] = field(default_factory=set)
    is_text: bool = False
    count: int = 0


@dataclass
class ColumnsSeen:
    """The columns of a partition, or of several together."""

    rows: int = 0
    settings: dict[str, Setting] = field(default_factory=dict)
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)  # of facts that are numbers
    texts: dict[str, set[str]] = field(default_factory=dict)  # of facts that are texts
    has_formula: bool = False

    @classmethod
    def of(cls, questions: Sequence[Question]) -> Self:
        """Return the columns of these questions."""
        seen = cls(len(questions))
        for question in questions:
            for name, value in question.configuration.items():
                setting = seen.settings.setdefault(name, Setting())
                setting.is_text |= isinstance(value, str)
                setting.count += value is not None
                if len(setting.labels) <= TEXTS_MAX:
                    setting.labels.add(None if value is None else str(plain(value)))
        facts = pd.DataFrame(all_fact_columns(questions))
        for name in map(str, facts.columns):
            present = facts[name].dropna()
            if not is_numeric_dtype(facts[name]):
                seen.texts[name] = set(map(str, present))
            elif len(present):
                seen.ranges[name] = (float(present.min()), float(present.max()))
        bare = described(questions, {FORMULA: None})
        seen.has_formula = FORMULA in bare
        return seen

    @property
    def kinds(self) -> Kinds:
        """The columns to describe every run by, in the order of one process."""
        kinds = dict(FIXED)
        kinds |= {SETTING + name: self._setting(setting) for name, setting in sorted(self.settings.items())}
        for name in all_fact_columns([]):
            if name in self.texts and (len(self.texts[name]) > 1 or (name == MODEL and self.texts[name])):
                kinds[name] = tuple(sorted(self.texts[name]))
            elif name in self.ranges and np.ptp(self.ranges[name]) > (0 if name != DATE else YEARS_MIN - 1e-12):
                kinds[name] = None
        return kinds | ({FORMULA: None} if self.has_formula else {})

    def _setting(self, setting: Setting) -> tuple[str, ...] | None:
        if not setting.is_text:
            return None
        is_missing = setting.count < self.rows
        if len(setting.labels | ({None} if is_missing else set())) > TEXTS_MAX:
            return (MANY,)
        return tuple(sorted(label for label in setting.labels if label is not None))


def together(every: Iterable[ColumnsSeen]) -> ColumnsSeen:
    """Return the columns of all partitions."""
    whole = ColumnsSeen()
    for seen in every:
        whole.rows += seen.rows
        whole.has_formula |= seen.has_formula
        for name, setting in seen.settings.items():
            own = whole.settings.setdefault(name, Setting())
            own.labels |= setting.labels
            own.is_text |= setting.is_text
            own.count += setting.count
        for name, texts in seen.texts.items():
            whole.texts.setdefault(name, set()).update(texts)
        for name, (low, high) in seen.ranges.items():
            before = whole.ranges.get(name, (low, high))
            whole.ranges[name] = (min(low, before[0]), max(high, before[1]))
    return whole

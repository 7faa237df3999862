"""Descriptions of questions and of past cohorts, as the table that surrogates learn from."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from crosswind.data.schema.metric import Scalar
from crosswind.data.schema.question import Question
from crosswind.models.next_run.cohort_store import plain
from crosswind.models.next_run.fact_columns import fact_columns
from crosswind.models.next_run.formulas import step_seconds

WORKLOAD, SYSTEM, SCALE, NODES = "workload", "system", "world_size", "node_count"
SETTING = "config."  # prefix of the configuration's parameters; texts are categories
FORMULA = "analytic.step_seconds"  # by formulas, where the configuration describes a network
MANY = "any"  # in place of texts that nearly all differ, such as paths, and so predict nothing
TEXTS_MAX = 200  # of a parameter; beyond, all its texts become MANY
Kinds: TypeAlias = Mapping[str, tuple[str, ...] | None]  # column -> the texts it had, None for numbers


def described(questions: Sequence[Question], kinds: Kinds | None = None) -> pd.DataFrame:
    """One row each; a column for every parameter that any configuration has, sorted by name; missing is NaN or None.

    Columns of `kinds` keep their kind: in one of numbers a text is missing unless it is a number.
    """
    configurations = [question.configuration for question in questions]
    table: dict[str, Any] = {
        WORKLOAD: np.array([question.workload for question in questions], dtype=object),
        SYSTEM: np.array([question.system for question in questions], dtype=object),
        SCALE: np.array([question.world_size for question in questions], dtype=np.float64),
        NODES: np.array([question.node_count or np.nan for question in questions], dtype=np.float64),
    }
    for name in sorted({name for configuration in configurations for name in configuration}):
        values = [configuration.get(name) for configuration in configurations]
        table[SETTING + name] = _column(values, {} if kinds is None else kinds, SETTING + name)
    table |= fact_columns(questions, kinds)
    if kinds is None or FORMULA in kinds:
        by_formulas = np.array([step_seconds(question) for question in questions])
        if np.isfinite(by_formulas).any():
            table[FORMULA] = by_formulas
    return pd.DataFrame(table)


def numbers_in(table: pd.DataFrame) -> tuple[str, ...]:
    """The columns that hold numbers."""
    return tuple(str(name) for name in table.columns if is_numeric_dtype(table[name]))


def as_learned(table: pd.DataFrame, columns: Sequence[str], numbers: Sequence[str]) -> pd.DataFrame:
    """The columns that were learned from; one that held numbers then and holds texts now is parsed as numbers."""
    turned = [name for name in numbers if name in table and not is_numeric_dtype(table[name])]
    return with_columns(table.assign(**{name: pd.to_numeric(table[name], errors="coerce") for name in turned}), columns)


def with_columns(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The table with these columns and no others; a column that it lacks is NaN throughout."""
    return table.reindex(columns=list(columns))


def _column(values: Sequence[Scalar], kinds: Kinds, name: str) -> Any:
    texts = kinds.get(name)
    if name in kinds and texts is None:
        return np.array([_number(value) for value in values], dtype=np.float64)
    if texts is None and not any(isinstance(value, str) for value in values):
        return np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)
    labels = [None if value is None else str(plain(value)) for value in values]
    if texts == (MANY,) or (texts is None and len({*labels}) > TEXTS_MAX):
        labels = [None if value is None else MANY for value in labels]
    return np.array(labels, dtype=object)


def _number(value: Scalar) -> float:
    try:
        number = np.nan if value is None else float(value)
    except ValueError:
        return np.nan
    return number if np.isfinite(number) else np.nan

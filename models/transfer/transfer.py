"""The protocol of a way of transfer, and the tables it learns from."""

from collections.abc import Mapping
from typing import Protocol, Self

import numpy as np
import pandas as pd

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.surrogate.surrogate import check_rows

ONE_SOURCE = "source"


class Transfer(Protocol):
    """Predicts a positive objective on a target (system, workload, scale) from sources and k runs of the target.

    Both tables have the same columns. Where `source_column` is set, that column names the source of a row; it is not
    learned from, and the target's values in it are ignored.
    """

    def fit(self, source: pd.DataFrame, source_seconds: Floats, target: pd.DataFrame, target_seconds: Floats) -> Self:
        """Learns from (n_source,) and (k,) positive seconds; k may be 0. Raises: InvalidInputError."""
        ...

    def predict(self, X: pd.DataFrame) -> Prediction:
        """Quantiles at LEVELS of each row's seconds on the target. Raises: NotFittedError, InvalidInputError."""
        ...

    def held_out(self) -> Floats:
        """Median seconds of each of the target's runs by a model that did not see that run, shape (k,).

        Raises: NotFittedError.
        """
        ...


def described(table: pd.DataFrame, source_column: str | None) -> pd.DataFrame:
    """The table without the column that names the source."""
    if source_column is None or source_column not in table.columns:
        return table.reset_index(drop=True)
    return table.drop(columns=source_column).reset_index(drop=True)


def by_source(
    source: pd.DataFrame, seconds: Floats, source_column: str | None
) -> Mapping[str, tuple[pd.DataFrame, Floats]]:
    """The rows of each source, sources in the order of their names. Raises: InvalidInputError without the column."""
    if source_column is None:
        return {ONE_SOURCE: (described(source, None), seconds)} if len(source) else {}
    if source_column not in source.columns:
        raise InvalidInputError(f"the sources' table has no column {source_column}, expected it to name the source")
    names = source[source_column].astype("string").fillna("unnamed").to_numpy(dtype=str)
    return {
        str(name): (described(source[names == name], source_column), seconds[names == name])
        for name in np.unique(names)
    }


def check_tables(
    source: pd.DataFrame, source_seconds: Floats, target: pd.DataFrame, target_seconds: Floats, *, least_source: int = 2
) -> None:
    """Refuses rows that cannot be learned from. Raises: InvalidInputError."""
    check_rows(source, source_seconds, least=least_source)
    if len(target) or len(target_seconds):
        check_rows(target, target_seconds, least=1)


def check_alike(source: pd.DataFrame, target: pd.DataFrame) -> None:
    """Refuses described tables of different columns, where both have rows. Raises: InvalidInputError."""
    ours, theirs = list(map(str, source.columns)), list(map(str, target.columns))
    if len(target) and len(source) and ours != theirs:
        raise InvalidInputError(
            f"the target's columns are {', '.join(theirs)}, expected the sources' {', '.join(ours)}"
        )

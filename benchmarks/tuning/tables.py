"""Tables of measured configurations, and which of them help to tune which.

Tables under ../shared/data/tuning, or the folder that TABLES names; only rows of a table may be picked, and a failed
row costs a trial. A source is 200 random rows of another table of the family, drawn again for every seed.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from crosswind.data.samples import tuning_grid
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration
from crosswind.models.tuner.search.source import Source
from crosswind.models.tuner.space.space import Space

FOLDER = "TABLES"  # of anybody's tables
TABLES = Path(os.environ.get(FOLDER) or Path(__file__).resolve().parents[3] / "shared" / "data" / "tuning")
NOT_PARAMETERS = ("objective", "valid", "std", "n")
MISSING = "missing"
SOURCE_ROWS = 200
NEEDLES = {"syr2k/XL": 1.53}  # how much the next row takes longer than a handful that no model leads to


@dataclass(frozen=True)
class Table:
    """Objective of every configuration; None where it failed."""

    name: str
    space: Space
    objectives: Mapping[str, float | None]

    @property
    def n_valid(self) -> int:
        return sum(objective is not None for objective in self.objectives.values())

    @property
    def optimum(self) -> float:
        """The best objective; beside a needle, that of the next row."""
        best = min(objective for objective in self.objectives.values() if objective is not None)
        return best * NEEDLES.get(self.name, 1.0)

    def source(self, seed: int, features: Mapping[str, float | str], rows: int = SOURCE_ROWS) -> Source:
        """Random rows as another study would have left them."""
        drawn = self.space.random(rows, seed)
        return Source(
            self.name, drawn, [self.objectives[self.space.key(configuration)] for configuration in drawn], features
        )


@dataclass(frozen=True)
class Task:
    """A table to tune, and tables that were measured before."""

    target: str
    sources: tuple[str, ...]
    features: Mapping[str, Mapping[str, float | str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The target, and what it is tuned from."""
        return f"{self.target} <- {', '.join(self.sources)}"

    def drawn(self, seed: int) -> list[Source]:
        return [table(name).source(seed, self.described(name)) for name in self.sources]

    def described(self, name: str) -> Mapping[str, float | str]:
        return self.features.get(name, {})


@cache
def table(name: str) -> Table:
    """The stored table, or the sample grid by its name."""
    return sample_grid() if name == "sample grid" else stored_table(name)


def sample_grid() -> Table:
    """Our own grid of DDP settings; its truth is the geometric mean of the repeats."""
    grid = tuning_grid()
    measured = ["repeat", "at_seconds", "seconds_per_1000_samples", "step_seconds", "step_seconds_p95", "steps"]
    parameters = grid.drop(columns=[*measured, "load_at_start"])
    logs = np.log(grid["seconds_per_1000_samples"])
    means = np.exp(logs.groupby([parameters[name] for name in parameters]).mean())
    rows = pd.DataFrame(means.index.tolist(), columns=list(parameters))
    return _table("sample grid", rows, means.tolist())


def stored_table(name: str) -> Table:
    """A table of the folder. Raises: InvalidInputError for one without objectives above 0."""
    path = TABLES / f"{name}.parquet"
    rows = pd.read_parquet(path) if path.exists() else pd.read_csv(TABLES / f"{name}.csv")
    objectives = _objectives(name, rows)
    parameters = rows.drop(columns=[column for column in NOT_PARAMETERS if column in rows])
    return _table(name, parameters, [None if np.isnan(objective) else objective for objective in objectives.tolist()])


def _objectives(name: str, rows: pd.DataFrame) -> "pd.Series[float]":
    if "objective" not in rows:
        raise InvalidInputError(f"table {name} has the columns {', '.join(rows)}, expected objective among them")
    if not pd.api.types.is_numeric_dtype(rows["objective"]):
        raise InvalidInputError(f"table {name} has objectives of type {rows['objective'].dtype}, expected numbers")
    valid = rows["valid"].astype(bool) if "valid" in rows else rows["objective"].notna()
    objectives = rows["objective"].where(valid)
    if not objectives.notna().any() or not np.isfinite(objectives.dropna()).all() or objectives.min() <= 0:
        raise InvalidInputError(
            f"table {name} has objectives from {objectives.min()} to {objectives.max()} in its valid rows, "
            "expected finite ones above 0"
        )
    return objectives


def _table(name: str, parameters: pd.DataFrame, objectives: Sequence[float | None]) -> Table:
    rows: list[Configuration] = [
        {str(column): MISSING if pd.isna(value) else value for column, value in row.items()}
        for row in parameters.to_dict("records")
    ]
    whole = Space.from_json({column: _parameter([row[column] for row in rows]) for column in rows[0]})
    space = whole.only(rows)
    return Table(name, space, {space.key(row): value for row, value in zip(rows, objectives, strict=True)})


def _parameter(values: Sequence[object]) -> dict[str, object]:
    texts = any(isinstance(value, str) and value != MISSING for value in values)
    distinct = sorted(set(values), key=lambda value: (value != MISSING, value if not texts else str(value)))
    if all(isinstance(value, bool) for value in distinct):
        return {"kind": "boolean"}
    return {"kind": "categorical" if texts else "ordinal", "values": distinct}

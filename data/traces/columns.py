"""Builds a trace's columns block by block, so that a file never lies in memory as objects."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Generic, TypeVar

import numpy as np

from crosswind.data.traces.trace import NONE, Events

Value = TypeVar("Value")
TYPES = {
    "begin_ns": np.int64,
    "duration_ns": np.int64,
    "kind": np.uint8,
    "name": np.int32,
    "place": np.int32,
    "correlation": np.int64,
    "operator": np.int64,
    "group": np.int32,
    "sequence": np.int64,
    "bytes": np.int64,
    "flops": np.float64,
}
EMPTY = {name: np.nan if name == "flops" else NONE for name in TYPES}


class EventColumns:
    """Collects blocks of columns; a column that a block leaves out has no values there."""

    def __init__(self) -> None:
        self._blocks: list[dict[str, np.ndarray]] = []

    def add(self, count: int, columns: Mapping[str, Sequence[float] | np.ndarray]) -> None:
        """Add so many events. Raises: OverflowError when a whole number does not fit its column."""
        self._blocks.append(
            {
                name: np.asarray(columns[name], kind) if name in columns else np.full(count, EMPTY[name], kind)
                for name, kind in TYPES.items()
            }
        )

    def events(self) -> Events:
        """Return all events by begin, and at one begin the longer first, as an operator is before its parts."""
        joined = {
            name: np.concatenate([block[name] for block in self._blocks]) if self._blocks else np.empty(0, kind)
            for name, kind in TYPES.items()
        }
        self._blocks.clear()
        order = np.lexsort((-joined["duration_ns"], joined["begin_ns"]))
        return Events(**{column.name: joined.pop(column.name)[order] for column in fields(Events)})


class Codes(Generic[Value]):
    """Numbers values from 0 in the order in which they first appear."""

    def __init__(self) -> None:
        self.number_of: dict[Value, int] = {}

    def of(self, values: Sequence[Value]) -> list[int]:
        """Return the numbers of hashable values."""
        number_of = self.number_of
        return [number_of.setdefault(value, len(number_of)) for value in values]

"""Cells of a row as the facts that a map says they are; errors name fact, column, cell and expectation."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from crosswind.data.schema.errors import InvalidInputError, MalformedError
from crosswind.data.schema.facts import COUNTS, NUMBERS, Facts, text_fact
from crosswind.data.schema.trial import Parameter
from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.scalars import REAL, TRUTHS, scalar_of, storable
from crosswind.ingest.readers.tables.table_map import Source, TableMap
from crosswind.ingest.readers.tables.units import ENERGIES, POWERS, TIMES, nanoseconds, seconds

MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9})[0-9]*)?"
    r"\s?(Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
WHOLE_MAX = 1 << 53  # beyond it a number with a fraction part of 0 may have been another one
SECONDS_MAX = 10**9  # thirty years
JOULES_MAX = 1e18

Row = Mapping[str, object]  # cells by column, without empty ones


@dataclass(frozen=True)
class Cells:
    """Facts of rows, by a map. If not `is_typed`, cells are texts that may stand for numbers."""

    table_map: TableMap
    is_typed: bool
    clock: Clock

    def text(self, name: str, row: Row) -> str:
        """Return a fact as text, several columns joined by /; empty where it is not in the row."""
        source = self.table_map.facts.get(name)
        return "" if source is None else _text(source, row)

    def number(self, name: str, row: Row) -> float | None:
        """Return a fact as a number, as written; None where it is not in the row. Raises: MalformedError."""
        source = self.table_map.facts.get(name)
        if source is None:
            return None
        cell = source.value if source.value is not None else row.get(source.columns[0])
        return None if cell is None else _number(_label(name, source), cell)

    def count(self, name: str, row: Row, limit: int) -> int | None:
        """Return a fact as a whole number from 1 to `limit`. Raises: MalformedError."""
        number = self.number(name, row)
        if number is None:
            return None
        if not float(number).is_integer() or not 1 <= number <= limit:
            raise MalformedError(f"{self._label(name)} is {number:g}; expected a whole number from 1 to {limit}")
        return int(number)

    def seconds(self, name: str, row: Row) -> float | None:
        """Return a duration in seconds, above 0. Raises: MalformedError."""
        number = self.number(name, row)
        if number is None:
            return None
        duration = seconds(number, self._unit(name) or "s")
        if not 0 < duration < SECONDS_MAX:
            raise MalformedError(f"{self._label(name)} is {duration:g} s; expected more than 0 and less than 30 years")
        return duration

    def joules(self, row: Row, duration: float | None) -> float | None:
        """Return the row's energy, or its mean power over the duration. Raises: MalformedError."""
        energy, power = self.number("energy", row), self.number("power", row)
        joules = None
        if energy is not None:
            joules = energy * ENERGIES[self._unit("energy") or "J"]
        elif power is not None and duration is not None:
            joules = power * POWERS[self._unit("power") or "W"] * duration
        if joules is not None and not 0 < joules < JOULES_MAX:
            name = "power" if energy is None else "energy"
            raise MalformedError(f"{self._label(name)} makes {joules:g} J; expected more than 0")
        return joules

    def moment(self, name: str, row: Row) -> int | None:
        """Return a time in ns UTC, of a number since 1970 or an ISO 8601 text. Raises: MalformedError."""
        source = self.table_map.facts.get(name)
        if source is None:
            return None
        cell = source.value if source.value is not None else row.get(source.columns[0])
        if cell is None:
            return None
        label = _label(name, source)
        if isinstance(cell, str) and (match := MOMENT.fullmatch(cell.strip())):
            return _iso(label, match, self.clock)
        whole = int(cell) if isinstance(cell, str) and re.fullmatch("[0-9]{1,19}", cell) else None
        unit = source.unit or "s"
        ns = whole * TIMES[unit] if whole is not None else nanoseconds(_number(label, cell), unit)
        return self.clock.nanoseconds(label, str(ns // 10**9)) and ns  # which checks it

    def parameters(self, name: str, row: Row) -> dict[str, Parameter]:
        """Return a group of facts as values of parameters; those that the row has not are left out."""
        return {key: _parameter(cell, is_typed=self.is_typed) for key, cell in self._group(name, row)}

    def texts(self, name: str, row: Row) -> dict[str, str]:
        """Return a group of facts as texts."""
        return {key: storable(_plain_text(cell)) for key, cell in self._group(name, row)}

    def facts(self, row: Row) -> Facts:
        """Return the facts about system and software; words that say nothing are none. Raises: MalformedError."""
        stated: dict[str, object] = {}
        for name, cell in self._group("facts", row):
            if name in NUMBERS:
                number = _number(name, cell)
                stated[name] = int(number) if name in COUNTS and float(number).is_integer() else number
            else:
                stated[name] = text_fact(_plain_text(cell))
        try:
            return Facts.of(stated)
        except InvalidInputError as error:
            raise MalformedError(str(error)) from error

    def _group(self, name: str, row: Row) -> Iterator[tuple[str, object]]:
        for key, source in self.table_map.groups.get(name, {}).items():
            if source.value is not None:
                yield key, source.value
            elif len(source.columns) > 1:
                yield key, _text(source, row)
            elif (cell := row.get(source.columns[0])) is not None:
                yield key, cell

    def _unit(self, name: str) -> str:
        return self.table_map.facts[name].unit

    def _label(self, name: str) -> str:
        return _label(name, self.table_map.facts[name])


def _label(name: str, source: Source) -> str:
    column = source.columns[0] if source.columns else name
    return name if column == name else f"{name} (column {column!r})"


def _text(source: Source, row: Row) -> str:
    if source.value is not None:
        return _plain_text(source.value)
    return storable("/".join(_plain_text(row[column]) for column in source.columns if column in row))


def _plain_text(cell: object) -> str:
    is_whole = isinstance(cell, float) and cell.is_integer() and abs(cell) < WHOLE_MAX
    return str(int(cell)) if is_whole and isinstance(cell, float) else str(cell)


def _parameter(cell: object, *, is_typed: bool) -> Parameter:
    value = scalar_of(cell) if isinstance(cell, str) and not is_typed else cell
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < WHOLE_MAX else value
    return value if isinstance(value, bool | int) else storable(str(value))


def _number(label: str, cell: object) -> float:
    if isinstance(cell, str) and REAL.fullmatch(cell.strip().lstrip("+-")):
        cell = float(cell)
    if isinstance(cell, bool) or not isinstance(cell, int | float) or not math.isfinite(cell):
        raise MalformedError(f"{label} is {cell!r:.80}; expected a number with a decimal point")
    return cell


def _iso(label: str, match: re.Match[str], clock: Clock) -> int | None:
    date, time, fraction, zone = match.groups()
    whole = clock.nanoseconds(label, f"{date}T{time or '00:00:00'}{zone or ''}")
    return None if whole is None else whole + int((fraction or "").ljust(9, "0"))


def is_true(cell: object) -> bool:
    """Return whether a cell says yes: true, 1, yes or valid."""
    if isinstance(cell, str):
        return TRUTHS.get(cell, cell.strip().lower() in ("1", "yes", "valid", "ok", "y", "t"))
    return bool(cell)

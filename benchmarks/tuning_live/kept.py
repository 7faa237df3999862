"""Measurements, kept as they come in a file of JSON lines: a benchmark that was cut off goes on where it stood."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from crosswind.data.files import published
from crosswind.data.schema.errors import ConflictError, MalformedError


@dataclass(frozen=True)
class Measured:
    """One run of one configuration in one round; it took `wall_seconds` with its preparations."""

    key: str
    round: int
    seconds_per_sample: float
    wall_seconds: float


@dataclass(frozen=True)
class Studied:
    """One study that is over: its answers (configurations' keys) by how they are chosen, and what it measured."""

    tuner: str
    seed: int
    answers: Mapping[str, str]
    measured: tuple[tuple[str, float], ...]
    wall_seconds: float


Row = Measured | Studied
KINDS: Mapping[str, type[Row]] = {"measured": Measured, "studied": Studied}


class Kept:
    """Rows in their order; without a path they are remembered alone."""

    def __init__(self, path: Path | None, setup: Mapping[str, object]) -> None:
        """Reads what lies there. Raises: ConflictError when it is of another setup, MalformedError for a bad line."""
        self._path, self._rows = path, list[Row]()
        if path is None:
            return
        self._rows = _read(path, setup) if path.exists() else []
        whole = [json.dumps({"setup": setup}), *(_line(row) for row in self._rows)]
        with published(path, is_durable=False) as file:
            file.writelines(f"{line}\n".encode() for line in whole)

    @property
    def measured(self) -> list[Measured]:
        """Runs of configurations outside studies."""
        return [row for row in self._rows if isinstance(row, Measured)]

    @property
    def studied(self) -> list[Studied]:
        """Studies that are over."""
        return [row for row in self._rows if isinstance(row, Studied)]

    def add(self, row: Row) -> None:
        """Keeps one more."""
        self._rows.append(row)
        if self._path:
            with self._path.open("a") as file:
                file.write(_line(row) + "\n")


def _line(row: Row) -> str:
    return json.dumps({type(row).__name__.lower(): asdict(row)})


def _read(path: Path, setup: Mapping[str, object]) -> list[Row]:
    """Its rows; what follows the last line's end was cut off in the middle and is left out."""
    *lines, _cut_off = path.read_text().split("\n")
    if not lines:
        return []
    recorded = _object(path, 1, lines[0]).get("setup")
    if recorded != json.loads(json.dumps(setup)):
        raise ConflictError(f"{path}: measured with {recorded}, expected {dict(setup)}: name another file")
    return [_row(path, number, line) for number, line in enumerate(lines[1:], 2)]


def _row(path: Path, number: int, line: str) -> Row:
    try:
        [(kind, values)] = _object(path, number, line).items()
        if kind == "studied":
            values["measured"] = tuple((key, seconds) for key, seconds in values["measured"])
        return KINDS[kind](**values)
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedError(f"{path}:{number}: {line:.80}, expected a row of {' or '.join(KINDS)}") from error


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    with suppress(ValueError):
        parsed = json.loads(line)
        if isinstance(parsed, dict):
            return parsed
    raise MalformedError(f"{path}:{number}: {line:.80}, expected a JSON object")

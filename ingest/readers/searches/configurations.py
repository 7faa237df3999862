"""Tuning histories from tables: a column for each parameter, and one named as the objective."""

import csv
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.imported import imported_id
from crosswind.data.schema.trial import History, Parameter, Study, Trial, TrialState
from crosswind.ingest.reader.lines import numbered_lines, plain_head
from crosswind.ingest.reader.reader import Context, Report, converted
from crosswind.ingest.readers.scalars import REAL, TRUTHS, WHOLE
from crosswind.ingest.readers.searches.imported_history import imported_history
from crosswind.ingest.readers.searches.value_domain import domain_of_values

OBJECTIVE = re.compile(r"(objective|maximi[sz]e)(?::([^\[\]]{1,150}?))?\s*(?:\[([^\[\]]{1,60})\])?")
SAYS_SO = ("objective:", "maximise:", "maximize:")  # a column called just `objective` may be anything
FOREIGN = re.compile(r"[+-]?[0-9]+,[0-9]+|[+-]?[0-9]{1,3}(?:[ '.][0-9]{3})+,[0-9]+")  # numbers with a decimal comma
ENDINGS = {"failed": TrialState.FAILED, "infeasible": TrialState.INFEASIBLE, "pruned": TrialState.PRUNED}


@dataclass(frozen=True)
class Objective:
    """The column of the objective, with the facts in its name."""

    place: int
    name: str
    unit: str
    sign: int


@dataclass(frozen=True)
class ConfigurationsReader:
    """One history: one trial for every line."""

    name: ClassVar[str] = "configurations"
    description: ClassVar[str] = "CSV of configurations with a column objective:NAME [UNIT] (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether the first line names one objective with its name, and at least one parameter."""
        try:
            names = cells_of(plain_head(head).split("\n", 1)[0])
            return objective_of(names) is not None and any(name.strip().startswith(SAYS_SO) for name in names)
        except MalformedError:
            return False

    def read(self, path: Path, report: Report, context: Context) -> Iterator[History]:
        """Yield the history, named after the file. Raises: MalformedError, UnavailableError."""
        lines = numbered_lines(path, report)
        number, text = next(lines, (0, ""))
        names = [name.strip() for name in cells_of(text)]
        objective = objective_of(names)
        if objective is None:
            raise MalformedError(
                f"{path}: line {number}: {text[:200]!r}; expected parameters that are all named differently "
                "and one column `objective`, `objective:NAME [UNIT]` or `maximise:NAME [UNIT]`"
            )
        records = ((number, text, text) for number, text in lines)
        rows = list(converted(records, lambda text: _row(text, names, objective), report))
        if not rows:
            report.notes.append("no configurations after the header: no study")
            return
        del names[objective.place]
        columns = {name: typed([row[0][place] for row in rows]) for place, name in enumerate(names)}
        for name, values in columns.items():
            odd = [value for value in values if isinstance(value, str) and not REAL.fullmatch(value)]
            if 0 < len(odd) < len(values):
                report.notes.append(f"{name}: {odd[0][:80]!r} is no number, so that all of its values are texts")
        space = {name: domain_of_values(values) for name, values in columns.items()}
        stem = path.name.removesuffix(".gz").rsplit(".", 1)[0] or "configurations"
        study_id = imported_id(self.name, context.system, stem, *names, vars(objective), rows[0])
        trials = tuple(
            Trial({name: values[place] for name, values in columns.items()}, state, value, f"{study_id}-{place:08d}")
            for place, (_, state, value) in enumerate(rows)
        )
        if objective.sign < 0:
            report.notes.append(f"{objective.name} is to be maximised: stored with the sign turned")
        named = ("-" if objective.sign < 0 else "") + objective.name
        yield imported_history(Study(study_id, stem, space, named, objective.unit, 0, 0), trials, report)


def cells_of(line: str) -> list[str]:
    """Return the cells of a line of comma-separated values. Raises: MalformedError."""
    try:
        return next(csv.reader([line.rstrip("\r")], strict=True), [])
    except csv.Error as error:
        raise MalformedError(f"no comma-separated values: {error}") from error


def objective_of(names: Sequence[str]) -> Objective | None:
    """Return the column of the objective, if there is exactly one and no name is repeated or empty."""
    stripped = [name.strip() for name in names]
    candidates = [(place, match) for place, name in enumerate(stripped) if (match := OBJECTIVE.fullmatch(name))]
    if len(candidates) != 1 or len(names) < 2 or len(set(stripped)) < len(names) or "" in stripped:
        return None
    ((place, match),) = candidates
    return Objective(place, (match[2] or "objective").strip(), match[3] or "", 1 if match[1] == "objective" else -1)


Row = tuple[list[str], TrialState, float | None]


def _row(text: str, names: Sequence[str], objective: Objective) -> Row:
    cells = [cell.strip() for cell in cells_of(text)]
    if len(cells) != len(names):
        raise MalformedError(f"{len(cells)} cells; expected {len(names)}")
    for name, cell in zip(names, cells, strict=True):
        if not cell or FOREIGN.fullmatch(cell):
            raise MalformedError(f"{name} is {cell!r:.80}; expected a value, numbers with a decimal point")
    measured = cells.pop(objective.place)
    if measured in ENDINGS:
        return cells, ENDINGS[measured], None
    if not REAL.fullmatch(measured) or not math.isfinite(float(measured)):
        raise MalformedError(f"objective is {measured!r:.80}; expected a number or one of: {', '.join(ENDINGS)}")
    return cells, TrialState.DONE, objective.sign * float(measured)


def typed(texts: Sequence[str]) -> list[Parameter]:
    """Return a column's values: whole numbers, numbers or truth values if all of them are, else texts."""
    if all(map(WHOLE.fullmatch, texts)):
        return [int(text) for text in texts]
    if all(REAL.fullmatch(text) and math.isfinite(float(text)) for text in texts):
        return [float(text) for text in texts]
    if all(text in TRUTHS for text in texts):
        return [TRUTHS[text] for text in texts]
    return list(texts)

"""Rows of a table as trials of a search, one each: a study, or one for each name that the map's `study` gives."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.imported import imported_id
from crosswind.data.schema.trial import MAXIMISE, History, Parameter, Study, Trial, TrialState
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.searches.imported_history import imported_history
from crosswind.ingest.readers.searches.value_domain import domain_of_values
from crosswind.ingest.readers.tables.cells import Cells, Row, is_true
from crosswind.ingest.readers.tables.run_rows import shown
from crosswind.ingest.readers.tables.table_file import Chunk
from crosswind.ingest.readers.tables.table_map import Source
from crosswind.ingest.readers.tables.units import ENERGIES, POWERS, SECOND_NS, TIMES

TRIALS_MAX = 500_000  # of a table: a search keeps them all in memory
BASES = {"seconds": {unit: ns / SECOND_NS for unit, ns in TIMES.items()}, "joules": ENERGIES, "watts": POWERS}
SYMBOLS = {"seconds": "s", "joules": "J", "watts": "W"}

Facts = tuple[str, str, str]  # study, workload and system of a trial


@dataclass
class TrialRows:
    """Turns rows into trials. What is to be maximised is stored with its sign turned."""

    cells: Cells
    context: Context
    report: Report
    stem: str
    _trials: dict[Facts, list[tuple[dict[str, Parameter], TrialState, float | None]]] = field(default_factory=dict)
    _count: int = 0

    def records(self, chunk: Chunk) -> Iterator[History]:
        """Take the trials of some rows; yields nothing yet. Raises: MalformedError for too many."""
        for line, row in chunk.rows():
            try:
                trial = self._trial(row)
            except MalformedError as error:
                self.report.skip(line, shown(row), str(error))
                continue
            facts = tuple(self.cells.text(name, row) for name in ("study", "workload", "system"))
            self._trials.setdefault((facts[0], facts[1], facts[2]), []).append(trial)
            self._count += 1
        if self._count > TRIALS_MAX:
            raise MalformedError(f"{self.stem}: more than {TRIALS_MAX} trials; expected a table of fewer: split it")
        yield from ()

    def end(self) -> Iterator[History]:
        """Yield the studies, once all rows are read. Raises: MalformedError."""
        for facts, trials in self._trials.items():
            yield self._history(facts, trials)

    def _trial(self, row: Row) -> tuple[dict[str, Parameter], TrialState, float | None]:
        parameters = self.cells.parameters("parameters", row)
        missing = [name for name in self.cells.table_map.groups["parameters"] if name not in parameters]
        if missing:
            raise MalformedError(f"parameter {missing[0]} is not in it; expected a value of every parameter")
        valid = self.cells.table_map.facts.get("valid")
        if valid and valid.columns and not is_true(row.get(valid.columns[0], "")):
            return parameters, TrialState.FAILED, None
        value = self.cells.number("objective", row)
        if value is None:
            raise MalformedError("objective is not in it; expected a number (or `valid` in the map)")
        return parameters, TrialState.DONE, value * self._factor() * (-1 if self.cells.table_map.is_maximised else 1)

    def _history(self, facts: Facts, trials: list[tuple[dict[str, Parameter], TrialState, float | None]]) -> History:
        named, workload, system = facts
        name = named or self.stem
        space = {
            parameter: domain_of_values(configuration[parameter] for configuration, _, _ in trials)
            for parameter in self.cells.table_map.groups["parameters"]
        }
        study_id = imported_id("table", self.context.system, name, workload, system, self.cells.table_map.text)
        study = Study(
            study_id,
            name,
            space,
            self._objective(),
            self._unit(),
            0,
            0,
            direction=MAXIMISE if self.cells.table_map.is_maximised else None,
            workload=workload or self.context.workload or None,
            system=system or self.context.system,
        )
        numbered = tuple(
            Trial(configuration, state, value, f"{study_id}-{place:08d}")
            for place, (configuration, state, value) in enumerate(trials)
        )
        return imported_history(study, numbered, self.report)

    @property
    def _source(self) -> Source:
        return self.cells.table_map.facts["objective"]

    def _objective(self) -> str:
        return self._source.name or self._source.columns[0]

    def _base(self) -> str:
        """Return the base unit in which the objective's name ends, if its unit is one of that kind; else empty."""
        ending = self._objective().rpartition("_")[2]
        return ending if self._source.unit in BASES.get(ending, {}) else ""

    def _factor(self) -> float:
        base = self._base()
        return BASES[base][self._source.unit] if base else 1.0

    def _unit(self) -> str:
        base = self._base()
        return SYMBOLS[base] if base else self._source.unit

"""Rows of a table as runs, one each; a mean step time becomes a row of the set `step`."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.hostlist import expand
from crosswind.data.schema.imported import imported_id
from crosswind.data.schema.metric import Scalar
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.features import WARM_UP_STEPS
from crosswind.data.store.run_tags import ENERGY_TAG
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.scalars import storable
from crosswind.ingest.readers.tables.cells import Cells, Row
from crosswind.ingest.readers.tables.table_file import Chunk

RANKS_MAX, NODES_MAX, STEPS_MAX = 1 << 24, 100_000, 1 << 50
RUNS_MAX = 2_000_000  # far more than are compared; a table of more is one of something else
SECOND_NS = 1_000_000_000
ROW_NS = 1_000  # between the starts of rows without times, so that they keep their order
STATES = {str(state): state for state in RunState}


@dataclass
class RunRows:
    """Turns rows into runs. Rows without a start began in their order, some time before the table's last change."""

    cells: Cells
    context: Context
    report: Report
    base_ns: int
    _rows_of: dict[str, int] = field(default_factory=dict)  # how often a run's id came
    _untimed: int = 0
    _repeated: int = 0

    def records(self, chunk: Chunk) -> Iterator[Run | pa.Table]:
        """Yield the runs of some rows; rows that cannot be understood go to the report. Raises: MalformedError."""
        steps: list[tuple[Scalar, ...]] = []
        for line, row in chunk.rows():
            try:
                run = self._run(line, row)
                step = self._step(run, row)
            except MalformedError as error:
                self.report.skip(line, shown(row), str(error))
                continue
            steps += step
            self.report.read += 1
            yield run
        if len(self._rows_of) > RUNS_MAX:
            raise MalformedError(f"{self.report.path}: more than {RUNS_MAX} runs; expected a table of fewer: split it")
        if steps:
            self.report.read += len(steps)
            names = ("ts_ns", "run_id", "rank", "step", "duration_seconds")
            yield to_table(STEP, dict(zip(names, map(list, zip(*steps, strict=True)), strict=True)))

    def end(self) -> Iterator[Run]:
        """Note what is remarkable of all rows; yields nothing more."""
        counts = {
            "rows have no start: they keep their order, some time before the table's last change": self._untimed,
            "rows name the run of another row: the last one counts (`run` of the map)": self._repeated,
        }
        self.report.remark(counts)
        yield from ()

    def _run(self, line: int, row: Row) -> Run:
        started_ns, ended_ns, time_from = self._times(line, row)
        state = self._state(row)
        if state is RunState.COMPLETED and ended_ns is None:
            raise MalformedError("neither seconds nor end are in it; expected the time of a completed run")
        workload = self.cells.text("workload", row) or self.context.workload
        if not workload:
            raise MalformedError("workload is not in it; expected one, or --workload NAME for all rows")
        system = self.cells.text("system", row) or self.context.system
        (nodes, facts), tags = self._nodes(row), dict[str, str]()
        seconds = None if ended_ns is None else (ended_ns - started_ns) / SECOND_NS
        if (joules := self.cells.joules(row, seconds)) is not None:
            tags[ENERGY_TAG] = f"{joules:.12g}"
        run_id = self._identity(system, row)
        self._untimed += bool(time_from)
        return Run(
            run_id,
            workload,
            system,
            state,
            world_size=self._ranks(row, len(nodes) or facts.node_count or 0),
            configuration=self.cells.parameters("configuration", row),
            job_id=self.cells.text("job", row) or None,
            nodes=nodes,
            started_ns=started_ns,
            ended_ns=ended_ns,
            software=self.cells.texts("software", row),
            tags={"imported_from": "table"} | time_from | tags | self.cells.texts("tags", row),
            facts=facts,
        )

    def _times(self, line: int, row: Row) -> tuple[int, int | None, dict[str, str]]:
        """Return start, end, and a tag that says where they are from, if not from the row."""
        started_ns, ended_ns = self.cells.moment("start", row), self.cells.moment("end", row)
        seconds, time_from = self.cells.seconds("seconds", row), {}
        if started_ns is None:
            started_ns = self.base_ns + line * ROW_NS
            time_from = {"time_from": "order of the table's rows: it has no start"}
            ended_ns = None
        if seconds is None and ended_ns is None:
            seconds = self._seconds_of_steps(row)
        if seconds is not None:
            ended_ns = started_ns + round(seconds * SECOND_NS)
        if ended_ns is not None and ended_ns < started_ns:
            raise MalformedError("end is before start")
        return started_ns, ended_ns, time_from

    def _seconds_of_steps(self, row: Row) -> float | None:
        """Return the time of all steps of a row that has their mean; of one, where it does not say how many."""
        step = self.cells.seconds("step_seconds", row)
        return None if step is None else step * (self.cells.count("steps", row, STEPS_MAX) or 1)

    def _state(self, row: Row) -> RunState:
        word = self.cells.text("state", row)
        source = self.cells.table_map.facts.get("state")
        if source is None:
            return RunState.COMPLETED
        if not word:
            return RunState.LOST
        words = {own: STATES[state] for state, owns in source.words.items() for own in owns} or STATES
        if word not in words:
            listed = ", ".join(words)
            raise MalformedError(
                f"state is {word!r:.60}; expected one of: {listed} (completed, failed, lost in the map)"
            )
        return words[word]

    def _nodes(self, row: Row) -> tuple[tuple[str, ...], Facts]:
        """Return the names of nodes, and the facts of the system with their number."""
        text, facts = self.cells.text("nodes", row), self.cells.facts(row)
        nodes = () if text.isdigit() else expand(text)
        count = self.cells.count("nodes", row, NODES_MAX) if text.isdigit() else len(nodes)
        return nodes, Facts(node_count=count or None).over(facts)

    def _ranks(self, row: Row, node_count: int) -> int | None:
        ranks, per_node = (self.cells.count(name, row, RANKS_MAX) for name in ("ranks", "ranks_per_node"))
        return ranks if ranks is not None or per_node is None else (node_count * per_node or None)

    def _step(self, run: Run, row: Row) -> list[tuple[Scalar, ...]]:
        seconds = self.cells.seconds("step_seconds", row)
        if seconds is None:
            return []
        last = (self.cells.count("steps", row, STEPS_MAX) or 0) - 1
        # The mean stands for steps after the warm-up, which comparisons leave out.
        return [(run.started_ns, run.run_id, 0, max(last, WARM_UP_STEPS), round(seconds * SECOND_NS))]

    def _identity(self, system: str, row: Row) -> str:
        """Return the run's id: of what the map calls the run, else of the row; of equal rows it is counted which."""
        named = self.cells.text("run", row)
        facts = "\x1f".join(f"{name}={cell}" for name, cell in sorted(row.items()))
        key = imported_id("table", system, named or hashlib.sha256(facts.encode(errors="replace")).hexdigest())
        before = self._rows_of.get(key, 0)
        self._rows_of[key] = before + 1
        if named:
            self._repeated += bool(before)
            return key
        return key if not before else imported_id("table", key, before)


def shown(row: Row) -> str:
    """Return the beginning of a row, for a report."""
    return storable(", ".join(f"{name}={cell}" for name, cell in list(row.items())[:12]), 200)

"""Jobs of Slurm's accounting line by line: the definition of a line's meaning, and of the reasons to skip one."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from crosswind.data.schema import hostlist
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.job import Job
from crosswind.data.store.jobs import FACTS, job_table
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.slurm import slurm_values as slurm
from crosswind.ingest.readers.slurm.slurm_jobs import Steps

FREE_TEXT = (
    *("JobName", "Comment", "AdminComment", "SystemComment", "Constraints", "SubmitLine", "WorkDir", "WCKey"),
    *("Extra", "Reason", "Container", "Reservation", "StdIn", "StdOut", "StdErr"),
)
IDENTIFIERS = ("JobIDRaw", "JobID")  # the raw one is SLURM_JOB_ID in the job
STILL_GOING = ("PENDING", "RUNNING", "SUSPENDED")  # Slurm writes exit code 0:0 for these
COLUMN_NAME = re.compile("[A-Za-z]*")  # a job may be named `JobID|State`, but its id is a number


def missing_columns(columns: list[str]) -> str:
    """Return the missing columns of a header; empty when it has all that are needed."""
    lacking = [] if "State" in columns else ["State"]
    if not set(IDENTIFIERS) & set(columns):
        lacking.append("JobIDRaw (or JobID)")
    return " and ".join(lacking)


def is_header(values: list[str]) -> bool:
    """Return whether a line names columns, as at the beginning of another export in the same file."""
    return "State" in values and all(map(COLUMN_NAME.fullmatch, values)) and not missing_columns(values)


@dataclass
class Allocation:
    """A job whose steps are still to come."""

    line: int
    job: Job
    node_list: str  # as Slurm writes it; empty when there were no nodes
    steps: Steps = field(default_factory=Steps)

    def fold(self, step: str, row: Mapping[str, str]) -> None:
        """Take one job step. Raises: MalformedError."""
        try:
            rss = slurm.size_bytes("MaxRSS", row.get("MaxRSS", ""))
            joules = slurm.energy_joules(row.get("ConsumedEnergyRaw", ""))
        except MalformedError:
            self.steps.count += 1
            self.steps.all_understood = False
            raise
        self.steps.add(step, rss, joules)


def allocations_table(allocations: Sequence[Allocation]) -> pa.Table:
    """Return the rows of jobs, with remarks on them and the numbers of their lines."""
    jobs = [allocation.steps.folded_into(allocation.job) for allocation in allocations]
    table = job_table([replace(job, nodes=()) for job in jobs], reported_ns=0)
    columns = {name: table[name] for name in FACTS}
    columns["nodes"] = pa.array([allocation.node_list for allocation in allocations], pa.string())
    columns["nodes_named"] = pa.array([len(allocation.job.nodes) for allocation in allocations], pa.int64())
    columns["line"] = pa.array([allocation.line for allocation in allocations], pa.int64())
    energy_from = [allocation.steps.energy(allocation.job)[1] for allocation in allocations]
    columns["energy_from"] = pa.array(energy_from, pa.string())
    return pa.table(columns)


@dataclass
class LineReading:
    """One pass over lines after the header, of which some may have been taken elsewhere."""

    report: Report
    system: str
    clock: Clock
    columns: list[str]
    current: Allocation | None = None
    further_headers: int = 0
    steps: int = 0

    def finished(self, lines: Iterable[tuple[int, str]]) -> Iterator[Allocation]:
        """Yield the jobs that are complete because another one begins in these lines."""
        for number, text in lines:
            try:
                before = self.take(number, text)
            except MalformedError as error:
                self.report.skip(number, text, str(error))
                continue
            if before:
                yield before

    def ended(self) -> list[Allocation]:
        """Return the last job, when no more steps come."""
        last, self.current = self.current, None
        return [last] if last else []

    def take(self, number: int, text: str) -> Allocation | None:
        """Take one line. Return the job before when this line begins another. Raises: MalformedError."""
        values = text.split("|")
        if is_header(values):
            self.columns = values
            self.further_headers += 1
            return None
        row = self.row(values)
        job_id, step = slurm.identifier(next(row[column] for column in IDENTIFIERS if column in row))
        if step:
            self.fold(job_id, step, row)
            return None
        begun = Allocation(number, self.job(job_id, row), hostlist.short_form(row.get("NodeList", "")))
        before, self.current = self.current, begun
        return before

    def begins_job(self, text: str) -> bool:
        """Return whether a line would begin a job with the present columns, without taking it."""
        aside = LineReading(Report("", ""), self.system, Clock(self.clock.zone), self.columns)
        try:
            aside.take(0, text)
        except MalformedError:
            return False
        return aside.current is not None

    def row(self, values: list[str]) -> dict[str, str]:
        """Return the values by column. Raises: MalformedError when that is ambiguous."""
        if len(values) != len(self.columns):
            values = self.rejoined(values)
        return dict(zip(self.columns, values, strict=True))

    def rejoined(self, values: list[str]) -> list[str]:
        """Return the values, joining those that a | in them has split. Raises: MalformedError."""
        surplus = len(values) - len(self.columns)
        free = [place for place, column in enumerate(self.columns) if column in FREE_TEXT]
        if surplus > 0 and len(free) == 1:  # it can be nowhere else
            first, last = free[0], free[0] + surplus
            return [*values[:first], "|".join(values[first : last + 1]), *values[last + 1 :]]
        columns = " or ".join(self.columns[place] for place in free)
        doubt = f"; a | may stand in {columns}" if surplus > 0 and free else ""
        raise MalformedError(f"{len(values)} fields; expected {len(self.columns)}{doubt}")

    def fold(self, job_id: str, step: str, row: Mapping[str, str]) -> None:
        """Take a job step. Raises: MalformedError when its job is not the one before."""
        if self.current is None or self.current.job.job_id != job_id:
            raise MalformedError(f"job step {job_id}.{step} does not follow the line of job {job_id}")
        self.current.fold(step, row)
        self.steps += 1

    def job(self, job_id: str, row: dict[str, str]) -> Job:
        """Return the job of an allocation's own line. Raises: MalformedError."""
        rest = dict(row)
        rest.pop(next(column for column in IDENTIFIERS if column in row))
        state = slurm.state_word(rest.pop("State"))
        code, signal = slurm.exit_code(rest.pop("ExitCode", ""))
        going = state in STILL_GOING
        said = {} if row["State"] == state else {"State": row["State"]}
        return Job(  # its last argument is the rest of the values
            system=self.system,
            job_id=job_id,
            name=rest.pop("JobName", ""),
            user=rest.pop("User", "") or None,
            account=rest.pop("Account", "") or None,
            partition=rest.pop("Partition", "") or None,
            state=state,
            exit_code=None if going else code,
            signal=None if going else signal,
            nodes=hostlist.expand(rest.pop("NodeList", "")),
            node_count=_first_count(rest, "NNodes", "AllocNodes"),
            cpu_count=_first_count(rest, "NCPUS", "AllocCPUS"),
            submitted_ns=self.clock.nanoseconds("Submit", rest.pop("Submit", "")),
            started_ns=self.clock.nanoseconds("Start", rest.pop("Start", "")),
            ended_ns=self.clock.nanoseconds("End", rest.pop("End", "")),
            elapsed_seconds=_elapsed_seconds(rest),
            energy_joules=slurm.energy_joules(rest.pop("ConsumedEnergyRaw", "")),
            fields={column: text for column, text in rest.items() if text and column} | said,
        )


def _first_count(rest: dict[str, str], *columns: str) -> int | None:
    """Return the first of the columns that is there, taken out of `rest`."""
    column = next((column for column in columns if column in rest), None)
    return slurm.count(column, rest.pop(column)) if column else None


def _elapsed_seconds(rest: dict[str, str]) -> float | None:
    """Return the run time, from any column that is there, taken out of `rest`."""
    if "ElapsedRaw" in rest:
        seconds = slurm.count("ElapsedRaw", rest.pop("ElapsedRaw"))
    else:
        seconds = slurm.duration_seconds(rest.pop("Elapsed", ""))
    return None if seconds is None else float(seconds)

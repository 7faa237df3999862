"""Jobs from Slurm's accounting, as `sacct --parsable2` writes it."""

import re
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from crosswind.data import hostlist
from crosswind.data.errors import InvalidInputError, MalformedError
from crosswind.data.job import Job
from crosswind.ingest.readers import slurm_values as slurm
from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.lines import numbered_lines, plain_head
from crosswind.ingest.readers.reader import Context, Report

COLUMNS = (
    *("JobIDRaw", "JobID", "User", "Account", "Partition", "QOS", "Submit", "Eligible", "Start", "End", "ElapsedRaw"),
    *("State", "ExitCode", "NNodes", "NCPUS", "NodeList", "AllocTRES", "ReqTRES", "TotalCPU", "MaxRSS", "AveRSS"),
    *("TRESUsageInTot", "TRESUsageOutTot", "MaxDiskRead", "MaxDiskWrite", "ConsumedEnergyRaw"),
    "JobName",  # last, and the only one that users write freely, so that a | in it is no riddle
)
FREE_TEXT = (
    *("JobName", "Comment", "AdminComment", "SystemComment", "Constraints", "SubmitLine", "WorkDir", "WCKey"),
    *("Extra", "Reason", "Container", "Reservation", "StdIn", "StdOut", "StdErr"),
)
IDENTIFIERS = ("JobIDRaw", "JobID")  # the raw one is what a job sees as SLURM_JOB_ID
STILL_GOING = ("PENDING", "RUNNING", "SUSPENDED")  # Slurm writes exit code 0:0 for these
COLUMN_NAME = re.compile("[A-Za-z]*")  # a job may be named `JobID|State`, but its id is a number
REMEMBERED = 100_000  # job ids, to notice duplicates; some 20 MB


def sacct_command(since: str) -> list[str]:
    """The command whose output this reader likes best. Raises: InvalidInputError.

    `since` is a time as sacct takes it: 2026-11-01, 2026-11-01T08:00 or now-7days.
    """
    if not re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z:./+-]{0,40}", since):
        raise InvalidInputError(f"since {since!r}; expected a time such as 2026-11-01, 2026-11-01T08:00 or now-7days")
    options = ("--allusers", "--duplicates", "--noconvert", "--parsable2")
    return ["env", "SLURM_TIME_FORMAT=%s", "sacct", *options, f"--starttime={since}", f"--format={','.join(COLUMNS)}"]


@dataclass(frozen=True)
class SacctReader:
    """One job per allocation; the lines of its job steps are folded into it."""

    name: ClassVar[str] = "sacct"
    description: ClassVar[str] = "Slurm accounting, written by sacct --parsable2 (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name tells nothing
        """Whether the first line names a job id and a state among columns set apart by `|`."""
        return not missing_columns(plain_head(head).split("\n", 1)[0].rstrip("\r").split("|"))

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Job]:
        """The jobs in the file's order. Raises: MalformedError (no header), UnavailableError."""
        lines = numbered_lines(path, report)
        number, text = next(lines, (0, ""))
        if not number:
            raise MalformedError(f"{path}: empty; expected the header line of sacct --parsable2")
        columns = text.split("|")
        if missing := missing_columns(columns):
            raise MalformedError(f"{path}: line {number}: column {missing} is missing; found {text[:200]!r}")
        yield from Reading(report, context.system, Clock(context.zone), columns).jobs(lines)


def missing_columns(columns: list[str]) -> str:
    """What a header lacks; empty when it has all that is needed."""
    lacking = [] if "State" in columns else ["State"]
    if not set(IDENTIFIERS) & set(columns):
        lacking.append("JobIDRaw (or JobID)")
    return " and ".join(lacking)


@dataclass
class Allocation:
    """A job whose steps are still coming."""

    job: Job
    steps: int = 0
    max_rss_bytes: int | None = None
    step_joules: dict[str, float] = field(default_factory=dict)
    all_understood: bool = True

    def fold(self, step: str, row: Mapping[str, str]) -> None:
        """Takes in one job step. Raises: MalformedError."""
        self.steps += 1
        try:
            rss = slurm.size_bytes("MaxRSS", row.get("MaxRSS", ""))
            joules = slurm.energy_joules(row.get("ConsumedEnergyRaw", ""))
        except MalformedError:
            self.all_understood = False
            raise
        if rss is not None:
            self.max_rss_bytes = max(rss, self.max_rss_bytes or 0)
        if joules is not None:
            self.step_joules[step] = joules

    def energy(self) -> tuple[float | None, str]:
        """Joules, and whose they are; none when the figures of a step are lost, rather than too few.

        Nodes are metered, not processes: `batch` and `extern` run beside the numbered steps, and adding them would
        count the same joules twice.
        """
        if self.job.energy_joules is not None or not self.step_joules or not self.all_understood:
            return self.job.energy_joules, ""
        if "extern" in self.step_joules:
            return self.step_joules["extern"], "extern"
        numbered = [joules for step, joules in self.step_joules.items() if step[0].isdigit()]
        return (sum(numbered), "steps") if numbered else (max(self.step_joules.values()), "batch")

    def complete(self) -> Job:
        """The job with what its steps told."""
        joules, source = self.energy()
        told = {"steps": str(self.steps) if self.steps else "", "energy_from": source}
        if self.max_rss_bytes is not None and self.all_understood:
            told["max_rss_bytes"] = str(self.max_rss_bytes)
        fields = dict(self.job.fields) | {name: text for name, text in told.items() if text}
        return replace(self.job, energy_joules=joules, fields=fields)


@dataclass
class Reading:
    """One pass over the lines after the header."""

    report: Report
    system: str
    clock: Clock
    columns: list[str]
    current: Allocation | None = None
    remarks: Counter[str] = field(default_factory=Counter)
    seen: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def jobs(self, lines: Iterator[tuple[int, str]]) -> Iterator[Job]:
        """The jobs, each as soon as its last step was read."""
        for number, text in lines:
            try:
                finished = self.take(text)
            except MalformedError as error:
                self.report.skip(number, text, str(error))
                continue
            if finished:
                yield self.finish(finished)
        if self.current:
            yield self.finish(self.current)
        self.note()

    def take(self, text: str) -> Allocation | None:
        """Takes in one line; comes back with the job before when this line begins another. Raises: MalformedError."""
        values = text.split("|")
        if "State" in values and all(map(COLUMN_NAME.fullmatch, values)) and not missing_columns(values):
            self.columns = values
            self.remarks["further header lines: several exports in one file"] += 1
            return None
        row = self.row(values)
        job_id, step = slurm.identifier(next(row[column] for column in IDENTIFIERS if column in row))
        if step:
            self.fold(job_id, step, row)
            return None
        begun = Allocation(self.job(job_id, row))
        finished, self.current = self.current, begun
        return finished

    def row(self, values: list[str]) -> dict[str, str]:
        """The values by column. Raises: MalformedError when it is not certain which is which."""
        if len(values) != len(self.columns):
            values = self.rejoined(values)
        return dict(zip(self.columns, values, strict=True))

    def rejoined(self, values: list[str]) -> list[str]:
        """The values with those put together again that a | in them set apart. Raises: MalformedError."""
        surplus = len(values) - len(self.columns)
        free = [place for place, column in enumerate(self.columns) if column in FREE_TEXT]
        if surplus > 0 and len(free) == 1:  # it can be nowhere else
            first, last = free[0], free[0] + surplus
            return [*values[:first], "|".join(values[first : last + 1]), *values[last + 1 :]]
        columns = " or ".join(self.columns[place] for place in free)
        doubt = f"; a | may stand in {columns}" if surplus > 0 and free else ""
        raise MalformedError(f"{len(values)} fields; expected {len(self.columns)}{doubt}")

    def fold(self, job_id: str, step: str, row: Mapping[str, str]) -> None:
        """Takes in a job step. Raises: MalformedError when its job is not the one before."""
        if self.current is None or self.current.job.job_id != job_id:
            raise MalformedError(f"job step {job_id}.{step} does not follow the line of job {job_id}")
        self.current.fold(step, row)
        self.remarks["job steps folded into their jobs"] += 1

    def job(self, job_id: str, row: dict[str, str]) -> Job:
        """The job of an allocation's own line. Raises: MalformedError."""
        rest = dict(row)
        rest.pop(next(column for column in IDENTIFIERS if column in row))
        state = slurm.state_word(rest.pop("State"))
        code, signal = slurm.exit_code(rest.pop("ExitCode", ""))
        going = state in STILL_GOING
        said = {} if row["State"] == state else {"State": row["State"]}
        return Job(  # its last argument is what the others left over
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

    def finish(self, allocation: Allocation) -> Job:
        """The job as handed out, with what is odd about it remarked."""
        job = allocation.complete()
        self.report.read += 1
        self.remarks["jobs appear again (requeued or resized): the later line holds"] += job.job_id in self.seen
        self.seen[job.job_id] = None
        if len(self.seen) > REMEMBERED:
            self.seen.popitem(last=False)
        self.remarks["jobs end before they start"] += (job.ended_ns or 1 << 63) < (job.started_ns or 0)
        self.remarks["jobs whose NodeList and NNodes differ"] += _differ(job.nodes, job.node_count)
        self.remarks["jobs with the energy of their job steps"] += "energy_from" in job.fields
        return job

    def note(self) -> None:
        """Writes what was remarked into the report."""
        notes = [f"{count} {text}" for text, count in self.remarks.items() if count]
        if self.clock.local:
            notes.append(f"time_zone: {self.clock.local} times have no zone and were read as {self.clock.zone}")
        if twice := self.clock.ambiguous:
            change = "come twice or never when clocks change in that zone; of two, the earlier was taken"
            notes.append(f"{twice} times, {self.clock.first_ambiguous} first, {change}")
        if not self.report.read:
            notes.append("no jobs after the header")
        self.report.notes += notes


def _differ(nodes: tuple[str, ...], count: int | None) -> bool:
    """Whether both are known and do not agree."""
    return bool(nodes) and count is not None and count != len(nodes)


def _first_count(rest: dict[str, str], *columns: str) -> int | None:
    """The first of the columns that is there, taken out of `rest`."""
    column = next((column for column in columns if column in rest), None)
    return slurm.count(column, rest.pop(column)) if column else None


def _elapsed_seconds(rest: dict[str, str]) -> float | None:
    """The run time, from whichever column is there, taken out of `rest`."""
    if "ElapsedRaw" in rest:
        seconds = slurm.count("ElapsedRaw", rest.pop("ElapsedRaw"))
    else:
        seconds = slurm.duration_seconds(rest.pop("Elapsed", ""))
    return None if seconds is None else float(seconds)

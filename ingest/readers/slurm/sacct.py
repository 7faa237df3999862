"""Jobs from Slurm's accounting, as `sacct --parsable2` writes it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from crosswind.data.schema.errors import InvalidInputError, MalformedError
from crosswind.ingest.reader.lines import Block, blocks, lines_of, plain_head
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.slurm.sacct_blocks import BlockReading
from crosswind.ingest.readers.slurm.sacct_lines import IDENTIFIERS, LineReading, missing_columns
from crosswind.ingest.readers.slurm.sacct_remarks import Remarks

COLUMNS = (
    *("JobIDRaw", "JobID", "User", "Account", "Partition", "QOS", "Submit", "Eligible", "Start", "End", "ElapsedRaw"),
    *(
        "TimelimitRaw",
        "State",
        "ExitCode",
        "NNodes",
        "NCPUS",
        "NodeList",
        "AllocTRES",
        "ReqTRES",
        "TotalCPU",
        "MaxRSS",
        "AveRSS",
    ),
    *("TRESUsageInTot", "TRESUsageOutTot", "MaxDiskRead", "MaxDiskWrite", "ConsumedEnergyRaw"),
    "JobName",  # last, and the only free text of users, so that a | in it is unambiguous
)
FURTHER = {*COLUMNS, "Elapsed", "CPUTimeRAW", "ConsumedEnergy", "AllocCPUS", "Priority"} - {*IDENTIFIERS, "State"}


def sacct_command(since: str) -> list[str]:
    """Return the command with the best output for this reader. Raises: InvalidInputError.

    `since` is a time for sacct: 2026-11-01, 2026-11-01T08:00 or now-7days.
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

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether the first line names a job id, a state and another column of sacct, set apart by `|`."""
        names = plain_head(head).split("\n", 1)[0].rstrip("\r").split("|")
        return not missing_columns(names) and bool(FURTHER & set(names))

    def read(self, path: Path, report: Report, context: Context) -> Iterator[pa.Table]:
        """The jobs in the file's order, as rows. Raises: MalformedError (no header), UnavailableError."""
        clock = Clock(context.zone)
        lines, remarks = LineReading(report, context.system, clock, []), Remarks(clock)
        reading = BlockReading(lines, remarks)
        for block in blocks(path, report):
            yield from reading.tables(block if lines.columns else _after_header(path, block, lines.columns))
        if not lines.columns:
            raise MalformedError(f"{path}: empty; expected the header line of sacct --parsable2")
        yield from reading.rest()
        report.notes += remarks.notes(further_headers=lines.further_headers, steps=lines.steps)
        if not report.read:
            report.notes.append("no jobs after the header")


def _after_header(path: Path, block: Block, columns: list[str]) -> Block:
    """Return the lines after the first one that is not blank, whose columns are noted. Raises: MalformedError."""
    number, text = next(lines_of(block), (0, ""))
    if not number:
        return Block(block.number, b"")
    columns += text.split("|")
    if missing := missing_columns(columns):
        raise MalformedError(f"{path}: line {number}: column {missing} is missing; found {text[:200]!r}")
    lines_before = number + 1 - block.number
    return Block(number + 1, block.data.split(b"\n", lines_before)[lines_before])

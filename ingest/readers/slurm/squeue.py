"""Jobs in Slurm's controller, as `squeue` writes them: its own table, or columns separated by |."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeAlias

from crosswind.data.schema import hostlist
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.job import Job
from crosswind.ingest.reader.lines import numbered_lines, plain_head
from crosswind.ingest.reader.reader import Context, Report, converted
from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.slurm import slurm_values as slurm
from crosswind.ingest.readers.slurm.slurm_jobs import COMPACT, Remarks, as_happened

FORMAT = "%A|%i|%T|%u|%a|%P|%q|%V|%S|%e|%M|%D|%C|%N|%r|%j"
TABLE = re.compile(r" *JOBID +PARTITION +NAME +USER +STA?T?E? +TIME +(?:TIME_LIMI +)?NODES NODELIST\(REASON\)")
DATE = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} [0-9]{4}")  # the first line of `squeue --long`
TIME_USED = re.compile(r"(?:(?:(?:([0-9]{1,6})-)?([0-9]{1,2}):)?([0-9]{1,2}):)([0-9]{2})")
CUT_SHORT = "names, users or partitions fill their column and may be cut short: left out; use squeue --format='{}'"
PLACES = {"NODELIST", "NODELIST(REASON)"}
FURTHER = {  # further columns, by one of which a --format with | is recognised as squeue's
    *("USER", "ACCOUNT", "PARTITION", "QOS", "NAME", "TIME", "TIME_LIMIT", "NODES", "NODELIST", "NODELIST(REASON)"),
    *("REASON", "CPUS", "PRIORITY", "SUBMIT_TIME", "START_TIME", "END_TIME"),
}
MAY_BE_CUT = ("NAME", "USER", "PARTITION")
STATE_WIDTH = 8
POOR = "squeue has no exit codes, and its table no times: sacct has them"
Row: TypeAlias = dict[str, str]


@dataclass(frozen=True)
class SqueueReader:
    """One job per line, without expected times."""

    name: ClassVar[str] = "squeue"
    description: ClassVar[str] = "Slurm's queue, written by squeue (its table, or a --format with |)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether the first line is squeue's heading, or the second one after the date of `--long`."""
        lines = plain_head(head).split("\n", 2)
        first = lines[1] if len(lines) > 1 and DATE.fullmatch(lines[0].strip()) else lines[0]
        heading = first.rstrip("\r")
        is_known = TABLE.fullmatch(heading) or FURTHER & set(heading.split("|"))
        return bool(is_known) and _cutter(heading, Remarks(Report("", ""), Clock(Context("").zone))) is not None

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Job]:
        """Yield the jobs in the file's order. Raises: MalformedError (no heading), UnavailableError."""
        remarks = Remarks(report, Clock(context.zone))
        lines = numbered_lines(path, report)
        number, text = next(lines, (0, ""))
        if DATE.fullmatch(text.strip()):
            number, text = next(lines, (0, ""))
        cut = _cutter(text, remarks)
        if cut is None:
            raise MalformedError(f"{path}: line {number}: expected squeue's heading, found {text[:200]!r}")
        records = (  # squeue --iterate writes heading and date again and again
            (number, line, line)
            for number, line in lines
            if not _cutter(line, remarks) and not DATE.fullmatch(line.strip())
        )
        jobs = converted(records, lambda line: _job(cut(line), context.system, remarks.clock), report)
        yield from map(remarks.seen, jobs)
        if report.read:
            report.notes.append(POOR)
        remarks.note()


def _cutter(heading: str, remarks: Remarks) -> Callable[[str], Row] | None:
    """Return the function that splits a line under this heading; None when it is none of squeue's."""
    if TABLE.fullmatch(heading):
        return partial(_columns, _edges(heading), remarks)
    names = heading.split("|")
    if len(names) > 1 and "JOBID" in names and {"STATE", "ST"} & set(names):
        return partial(_fields, names)
    return None


def _edges(heading: str) -> Sequence[tuple[str, int]]:
    """Return each column and the place after its last character: all but the last are right-aligned."""
    return [(word[0], word.end()) for word in re.finditer(r"\S+", heading)]


def _columns(edges: Sequence[tuple[str, int]], remarks: Remarks, line: str) -> Row:
    """Return the texts of a line of the table. Raises: MalformedError."""
    row, start, octets = {}, 0, line.encode()
    for name, end in edges[:-1]:
        value = octets[start:end].decode(errors="replace")
        if octets[end : end + 1] != b" ":
            raise MalformedError(f"column {name} does not end below its heading")
        is_full = value.strip() == value and name in MAY_BE_CUT
        remarks.counts[CUT_SHORT.format(FORMAT)] += is_full
        row[name] = "" if is_full else value.strip()
        start = end + 1
    row[edges[-1][0]] = octets[start:].decode(errors="replace").strip()
    return row


def _fields(names: Sequence[str], line: str) -> Row:
    """Return the texts of a line of columns; NAME may contain a |, if it is the last. Raises: MalformedError."""
    values = line.split("|")
    if names[-1] == "NAME" and len(values) > len(names):
        last = len(names) - 1
        values = [*values[:last], "|".join(values[last:])]
    if len(values) != len(names):
        raise MalformedError(f"{len(values)} fields; expected {len(names)}")
    row: Row = {}
    for name, value in zip(names, values, strict=True):
        row.setdefault(name, value.strip())  # of two ids, %A and %i, the first is the one in the job's environment
    return {**row, "SHOWN": [value for name, value in zip(names, values, strict=True) if name == "JOBID"][-1].strip()}


def _job(row: Mapping[str, str], system: str, clock: Clock) -> Job:
    """Return the job of a line. Raises: MalformedError."""
    job_id, step = slurm.identifier(row["JOBID"])
    if step:
        raise MalformedError(f"{row['JOBID'][:40]!r} is a job step")
    word = row.get("STATE") or row.get("ST", "")
    place = row.get("NODELIST") or row.get("NODELIST(REASON)", "")
    job = Job(
        system=system,
        job_id=job_id,
        name=row.get("NAME", ""),
        user=row.get("USER") or None,
        account=_unless_null(row.get("ACCOUNT", "")),
        partition=_unless_null(row.get("PARTITION", "")),
        state=_state(word),
        nodes=() if place.startswith("(") else hostlist.expand(place),
        node_count=slurm.count("NODES", row.get("NODES", "").partition("-")[0]),
        cpu_count=slurm.count("CPUS", row.get("CPUS", "")),
        submitted_ns=clock.nanoseconds("SUBMIT_TIME", row.get("SUBMIT_TIME", "")),
        started_ns=clock.nanoseconds("START_TIME", row.get("START_TIME", "")),
        ended_ns=clock.nanoseconds("END_TIME", row.get("END_TIME", "")),
        elapsed_seconds=_time_used(row.get("TIME", "")),
        fields={name: row[source] for name, source in _KEPT.items() if row.get(source) not in (None, "", "None")},
    )
    return as_happened(job, are_nodes_given=bool(PLACES & row.keys()))


def _state(word: str) -> str:
    """Return the state of its short form, or of its first 8 letters, which is all that `--long` shows.

    Raises: MalformedError.
    """
    whole = [state for state in COMPACT.values() if len(word) == STATE_WIDTH and state.startswith(word)]
    if len(whole) > 1:
        raise MalformedError(f"STATE {word!r} may be {' or '.join(whole)}; use squeue --format='{FORMAT}'")
    return whole[0] if whole else slurm.state_word(COMPACT.get(word, word))


_KEPT = {"JobID": "SHOWN", "QOS": "QOS", "Reason": "REASON"}


def _unless_null(text: str) -> str | None:
    return None if text in ("", "(null)", "N/A") else text


def _time_used(text: str) -> float | None:
    """Return seconds of [days-][hours:]minutes:seconds. Raises: MalformedError."""
    if text in ("", "INVALID", "N/A"):
        return None
    match = TIME_USED.fullmatch(text)
    if not match:
        raise MalformedError(f"TIME {text[:40]!r}; expected [days-][hours:]minutes:seconds")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)

"""Time and processors that a job requested and used, by the fields of its scheduler's accounts."""

import re
from collections.abc import Callable

from crosswind.data.schema.answers.jobs import ListedJob
from crosswind.data.schema.job import Job

CLOCK = re.compile(r"(?:(?:([0-9]{1,6})-)?([0-9]{1,6}):)?([0-9]{1,6}):([0-9]{1,2}(?:\.[0-9]{1,9})?)")
NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
MINUTE = 60.0


def listed_job(job: Job) -> ListedJob:
    """Return the job as it is listed."""
    facts = {name: value for name, value in vars(job).items() if name != "fields"}
    return ListedJob(**facts, limit_seconds=limit_seconds(job))


def limit_seconds(job: Job) -> float | None:
    """Return the time limit of the job; None where its accounts do not say, or it has none."""
    return _first(job, LIMITS)


def cpu_seconds(job: Job) -> float | None:
    """Return the processor time that the job used, of all its processes."""
    per_processor = _first(job, {"cpu_seconds_per_processor": _number})
    if per_processor is not None and job.cpu_count:
        return per_processor * job.cpu_count
    return _first(job, CPU)


def peak_memory_bytes(job: Job) -> int | None:
    """Return the largest memory of a task of the job's steps."""
    peak = _first(job, {"max_rss_bytes": _number})
    return None if peak is None else int(peak)


def _first(job: Job, readings: dict[str, Callable[[str], float | None]]) -> float | None:
    values = (read(job.fields[name]) for name, read in readings.items() if name in job.fields)
    return next((value for value in values if value is not None), None)


def _number(text: str) -> float | None:
    return float(text) if NUMBER.fullmatch(text) else None


def _minutes(text: str) -> float | None:
    value = _number(text)
    return None if value is None else value * MINUTE


def _clock(text: str) -> float | None:
    """Return seconds of `[days-][hours:]minutes:seconds`, or of a bare number of seconds; None of words."""
    match = CLOCK.fullmatch(text)
    if not match:
        return _number(text)
    days, hours, minutes = (int(part or 0) for part in match.groups()[:3])
    return ((days * 24 + hours) * 60 + minutes) * MINUTE + float(match[4])


def _unless_zero(text: str) -> float | None:
    return _number(text) or None


# In the words of sacct, scontrol, PBS, Flux (0 is no limit) and the Standard Workload Format.
LIMITS: dict[str, Callable[[str], float | None]] = {
    "TimelimitRaw": _minutes,
    "Timelimit": _clock,
    "TimeLimit": _clock,
    "Resource_List.walltime": _clock,
    "duration": _unless_zero,
    "requested_seconds": _number,
}
CPU: dict[str, Callable[[str], float | None]] = {"TotalCPU": _clock, "resources_used.cput": _clock}

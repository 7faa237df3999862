"""Jobs from Flux's archive: jobspec, eventlog and resources of each."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema import hostlist
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.job import Job
from crosswind.ingest.reader.lines import plain_head, whole_text
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.schedulers.accounts import Accounts, wait_status
from crosswind.ingest.readers.schedulers.flux import BASE58, SLURM_WORDS, f58, json_lines, text_of
from crosswind.ingest.readers.schedulers.flux_replay import Replay, parsed, replayed

LONGEST = 1 << 26  # characters of a file of a job's folder
ID_LIMIT = 1 << 64
DOTHEX = re.compile(r"[0-9a-f]{4}(?:\.[0-9a-f]{4}){3}")
IDSET = re.compile(r"(\[)?([0-9]{1,9}(?:-[0-9]{1,9})?(?:,[0-9]{1,9}(?:-[0-9]{1,9})?)*)(?(1)\])")
ATTRIBUTES = ("duration", "cwd", "project")  # of the jobspec, that become fields; its environment never does


@dataclass(frozen=True)
class FluxArchiveReader:
    """One job for each line, or for a folder.

    Source: Flux RFC 16 (what is kept of a job), 14 and 25 (jobspec), 18 and 21 (events), 20 (R); flux-core,
    src/modules/job-archive/job-archive.c, whose database has rows of the same names.
    """

    name: ClassVar[str] = "flux_archive"
    description: ClassVar[str] = "Flux jobs as jobspec, eventlog and R: lines of JSON, or folders"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether the first line is an object that has an id and a log of events."""
        first = plain_head(head).lstrip().split("\n", 1)[0]
        return first.startswith("{") and '"id"' in first and '"eventlog"' in first

    def recognises_folder(self, path: Path) -> bool:
        """Return whether the folder is named as a job's id, and holds its jobspec and events."""
        is_full = (path / "jobspec").is_file() and (path / "eventlog").is_file()
        return is_full and _number(path.name) is not None

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Job]:
        """Yield the jobs in the file's order. Raises: UnavailableError, MalformedError."""
        reading = Reading(context.system, Accounts(report))
        records = _folder(path, report) if path.is_dir() else _lines(path, report)
        yield from reading.accounts.jobs(records, reading.job)
        reading.accounts.note()


@dataclass(frozen=True)
class Kept:
    """The record of a job as written, with its line number, 0 if the eventlog is a file of its own."""

    job: Mapping[str, object]
    line: int


def _lines(path: Path, report: Report) -> Iterator[tuple[int, str, Kept]]:
    for number, text, value in json_lines(path, report):
        if isinstance(value, dict):
            yield number, text, Kept(value, number)
        else:
            report.skip(number, text, "no object with id, jobspec, eventlog and R")


def _folder(path: Path, report: Report) -> Iterator[tuple[int, str, Kept]]:
    """Yield the job of a folder. Raises: UnavailableError, MalformedError."""
    names = [name for name in ("jobspec", "eventlog", "R") if (path / name).is_file()]
    texts = {name: whole_text(path / name, report, limit=LONGEST) for name in names}
    yield 0, path.name, Kept({"id": path.name, **texts}, 0)


@dataclass
class Reading:
    """One pass over the jobs of a file."""

    system: str
    accounts: Accounts

    def job(self, kept: Kept) -> Job:
        """Return the job of a record. Raises: MalformedError."""
        number = job_number(kept.job.get("id"))
        replay = replayed(kept.job.get("eventlog"), lambda line, text, why: self._skip(kept.line or line, text, why))
        jobspec = Jobspec(parsed("jobspec", kept.job.get("jobspec")), replay.updates)
        resources = Resources.of(kept.job.get("R"))
        started, ended = replay.entered_ns.get("RUN"), replay.entered_ns.get("CLEANUP")
        status, word = replay.values.get("status"), replay.word()
        code, signal = wait_status(status) if isinstance(status, int) and status < 1 << 16 else (None, None)
        return Job(
            system=self.system,
            job_id=f58(number),
            name=jobspec.name(),
            user=text_of(replay.values.get("userid")) or None,
            account=text_of(jobspec.attribute("bank")) or None,
            partition=text_of(jobspec.attribute("queue")) or None,
            state=SLURM_WORDS.get(word, word),
            exit_code=code,
            signal=signal,
            nodes=resources.nodes,
            node_count=resources.ranks or None,
            cpu_count=resources.cores or None,
            submitted_ns=replay.entered_ns.get("NEW"),
            started_ns=started,
            ended_ns=ended,
            elapsed_seconds=(ended - started) / 1_000_000_000 if started and ended and ended >= started else None,
            fields={"id": str(number), "status": word} | _fields(jobspec, replay, resources),
        )

    def _skip(self, line: int, text: str, reason: str) -> None:
        self.accounts.report.skip(line, text, reason)


@dataclass(frozen=True)
class Jobspec:
    """The request of a job with its later updates."""

    spec: Mapping[str, object]
    updates: Mapping[str, object]

    def attribute(self, name: str) -> object:
        """Return a system attribute by its name, with dots between nested names; None for none."""
        path = f"attributes.system.{name}"
        return self.updates[path] if path in self.updates else _below(self.spec, path)

    def command(self) -> list[str]:
        """Return the command line of the job's program. Raises: MalformedError."""
        tasks = self.spec.get("tasks")
        command = _below(tasks[0], "command") if isinstance(tasks, list) and tasks else None
        return [text_of(word) for word in command] if isinstance(command, list) else [text_of(command)]

    def name(self) -> str:
        """Return the job's name, else that of its program, as `flux jobs` does. Raises: MalformedError."""
        first = next(iter(self.command()), "")
        return text_of(self.attribute("job.name")) or first.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Resources:
    """The nodes of a job, by brokers' ranks."""

    nodes: tuple[str, ...] = ()
    ranks: int = 0
    cores: int = 0
    gpus: int = 0
    expiration: str = ""

    @classmethod
    def of(cls, resource_set: object) -> "Resources":
        """Return the resources of an R; none for nothing. Raises: MalformedError."""
        if resource_set in (None, "", {}):
            return cls()
        execution = parsed("R", resource_set).get("execution")
        entries = _below(execution, "R_lite")
        names = _below(execution, "nodelist")
        if not isinstance(entries, list) or not isinstance(names, list | None):
            raise MalformedError(
                "R: no list execution.R_lite, or a nodelist that is none; expected version 1 of RFC 20"
            )
        counts = [_counts(entry) for entry in entries]
        return cls(
            nodes=hostlist.expand(",".join(text_of(name) for name in names or [])),
            ranks=sum(ranks for ranks, _, _ in counts),
            cores=sum(ranks * cores for ranks, cores, _ in counts),
            gpus=sum(ranks * gpus for ranks, _, gpus in counts),
            expiration=text_of(_below(execution, "expiration")),
        )


def _counts(entry: object) -> tuple[int, int, int]:
    """Return ranks of an entry of R_lite, and cores and GPUs of each. Raises: MalformedError."""
    ranks, cores, gpus = (_below(entry, name) for name in ("rank", "children.core", "children.gpu"))
    return idset_size("rank", ranks), idset_size("core", cores), idset_size("gpu", gpus)


def idset_size(name: str, idset: object) -> int:
    """Return the size of a set such as `0-3,7` or `[0-3,7]`; 0 for none. Raises: MalformedError. Source: RFC 22."""
    if idset in (None, ""):
        return 0
    match = IDSET.fullmatch(text_of(idset))
    ranges = [piece.partition("-") for piece in match[2].split(",")] if match else []
    sizes = [int(last or first) - int(first) + 1 for first, _, last in ranges]
    if not sizes or min(sizes) < 1:
        raise MalformedError(f"R: {name} {text_of(idset)[:40]!r}; expected numbers such as 0-3,7")
    return sum(sizes)


def job_number(job_id: object) -> int:
    """Return a job's id as a number. Raises: MalformedError."""
    number = _number(str(job_id)) if isinstance(job_id, str | int) else None
    if number is None or number >= ID_LIMIT:
        shown = ascii(job_id)[:40] if isinstance(job_id, str | int) else type(job_id).__name__
        raise MalformedError(f"id {shown}; expected a number, or an id such as ƒuZZybuNNy")
    return number


def _number(text: str) -> int | None:
    """Return the number of an id in decimals, F58 or hexadecimal with dots; None for anything else. Source: RFC 19."""
    text = text.removeprefix("job.")
    if DOTHEX.fullmatch(text):
        return int(text.replace(".", ""), 16)
    if text.isascii() and text.isdigit() and len(text) <= 20:
        return int(text)
    digits = text[1:] if text[:1] in ("ƒ", "f") else ""
    if not 0 < len(digits) <= 12 or not set(digits) <= set(BASE58):
        return None
    number = 0
    for digit in digits:
        number = number * 58 + BASE58.index(digit)
    return number


def _below(value: object, path: str) -> object:
    """Return the value at a path of names with dots between; None if there is none."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _fields(jobspec: Jobspec, replay: Replay, resources: Resources) -> dict[str, str]:
    """Return the remaining facts as texts. Raises: MalformedError."""
    facts: dict[str, object] = {name: jobspec.attribute(name) for name in ATTRIBUTES}
    facts |= {"command": " ".join(jobspec.command()), "expiration": resources.expiration}
    facts |= {name: replay.values.get(name) for name in ("urgency", "priority")}
    facts |= {"waitstatus": replay.values.get("status"), "ngpus": resources.gpus or None}
    facts |= {f"exception.{name}": replay.exception.get(name) for name in ("type", "note")}
    return {name: text for name, value in facts.items() if (text := text_of(value))}

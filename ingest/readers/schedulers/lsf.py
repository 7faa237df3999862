"""Jobs from LSF's accounting log, lsb.acct."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.hostlist import NODES_LIMIT
from crosswind.data.schema.job import Job
from crosswind.ingest.reader.lines import plain_head
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.schedulers.accounts import Accounts, epoch_nanoseconds, line_records, wait_status

TOKEN = re.compile(r'"([^"]*(?:""[^"]*)*)"|([^\s"]+)')
INTEGER = re.compile("-?[0-9]{1,18}")
RECORD = re.compile(r'"(?:JOB_FINISH|EVENT_ADRSV_FINISH|JOB_RESIZE)" "[0-9]{1,4}(?:\.[0-9]{1,6})*" [0-9]+ ')
HOST = re.compile(r"(?:([0-9]{1,9})\*)?([A-Za-z0-9][A-Za-z0-9._-]{0,252})")
BEFORE_HOSTS = (
    *("version", "eventTime", "jobId", "userId", "options", "numProcessors", "submitTime", "beginTime", "termTime"),
    *("startTime", "userName", "queue", "resReq", "dependCond", "preExecCmd", "fromHost", "cwd", "inFile", "outFile"),
    *("errFile", "jobFile"),
)
USAGE = (
    *("ru_utime", "ru_stime", "ru_maxrss", "ru_ixrss", "ru_ismrss", "ru_idrss", "ru_isrss", "ru_minflt", "ru_majflt"),
    *("ru_nswap", "ru_inblock", "ru_oublock", "ru_ioch", "ru_msgsnd", "ru_msgrcv", "ru_nsignals", "ru_nvcsw"),
    *("ru_nivcsw", "ru_exutime"),
)
AFTER_HOSTS = (
    *("jStatus", "hostFactor", "jobName", "command", *USAGE, "mailUser", "projectName", "exitStatus"),
    *("maxNumProcessors", "loginShell", "timeEvent", "idx", "maxRMem", "maxRSwap", "inFileSpool", "commandSpool"),
    *("rsvId", "sla", "exceptMask", "additionalInfo", "exitInfo", "warningAction", "warningTimePeriod"),
    *("chargedSAAP", "licenseProject", "app"),
)
NEEDED = AFTER_HOSTS.index("maxRSwap") + 1  # version 5.1, the oldest one seen, ends soon after
UNTOLD = ("", "0")  # LSF's texts and numbers for unknown values
UNMEASURED = ("-1", "-1.000000")  # and resources
KEPT = frozenset((*BEFORE_HOSTS, "askedHosts", *AFTER_HOSTS)) - {
    *("version", "eventTime", "jobId", "submitTime", "startTime", "userName", "queue", "jobName", "projectName"),
    *("idx", "jStatus", "exitInfo"),
}
STATUSES = {32: "EXIT", 64: "DONE"}
REASONS = {
    **dict(enumerate(("TERM_PREEMPT", "TERM_WINDOW", "TERM_LOAD", "TERM_OTHER", "TERM_RUNLIMIT"), 1)),
    **dict(enumerate(("TERM_DEADLINE", "TERM_PROCESSLIMIT", "TERM_FORCE_OWNER", "TERM_FORCE_ADMIN"), 6)),
    **dict(enumerate(("TERM_REQUEUE_OWNER", "TERM_REQUEUE_ADMIN", "TERM_CPULIMIT", "TERM_CHKPNT", "TERM_OWNER"), 10)),
    **dict(enumerate(("TERM_ADMIN", "TERM_MEMLIMIT", "TERM_EXTERNAL_SIGNAL", "TERM_RMS", "TERM_ZOMBIE"), 15)),
    **dict(enumerate(("TERM_SWAP", "TERM_THREADLIMIT", "TERM_SLURM", "TERM_BUCKET_KILL", "TERM_CTRL_PID"), 20)),
    **dict(enumerate(("TERM_CWD_NOTEXIST", "TERM_REMOVE_HUNG_JOB", "TERM_ORPHAN_SYSTEM", "TERM_PRE_EXEC_FAIL"), 25)),
    **dict(enumerate(("TERM_DATA", "TERM_MC_RECALL", "TERM_RC_RECLAIM", "TERM_CSM_ALLOC", "TERM_KUBE"), 29)),
}
STATES = {  # Slurm's words, if it has one of the same meaning; every other EXIT is FAILED
    **dict.fromkeys(("TERM_OWNER", "TERM_ADMIN", "TERM_FORCE_OWNER", "TERM_FORCE_ADMIN"), "CANCELLED"),
    "TERM_BUCKET_KILL": "CANCELLED",  # bkill -b
    **dict.fromkeys(("TERM_REQUEUE_OWNER", "TERM_REQUEUE_ADMIN"), "REQUEUED"),
    "TERM_RUNLIMIT": "TIMEOUT",
    "TERM_DEADLINE": "DEADLINE",
    "TERM_PREEMPT": "PREEMPTED",
    "TERM_MEMLIMIT": "OUT_OF_MEMORY",
}
# effectiveResReq srcCluster srcJobId dstCluster dstJobId forwardTime flow_id acJobWaitTime totalProvisionTime outdir
# runTime subcwd, as texts and numbers: the fields before differ in number between versions
RUN_TIME = re.compile("ttntnntnntnt")


@dataclass(frozen=True)
class LsfReader:
    """One job for each JOB_FINISH record, of any version since 5.1.

    Source: IBM Spectrum LSF, configuration reference, lsb.acct; the numbers of exitInfo: lsbatch.h.
    """

    name: ClassVar[str] = "lsf"
    description: ClassVar[str] = "LSF's accounting log, lsb.acct (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether the first line is a record of lsb.acct."""
        return RECORD.match(plain_head(head).lstrip()) is not None

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Job]:
        """Yield the jobs in the file's order. Raises: UnavailableError, MalformedError."""
        reading = Reading(context.system, Accounts(report))
        yield from reading.accounts.jobs(line_records(path, report), reading.job)
        reading.accounts.note()


@dataclass
class Record:
    """The fields of one record, taken from the front; a field is a quoted text or a number."""

    tokens: list[tuple[str, str]]
    at: int = 1

    @classmethod
    def of(cls, line: str) -> "Record":
        """Split a line into fields. Raises: MalformedError when a quote stays open."""
        if line.count('"') % 2:
            raise MalformedError("a quoted text has no end")
        return cls(TOKEN.findall(line))

    def texts(self, count: int) -> list[str]:
        """Return the next fields, at most so many: `""` inside a text means `"`."""
        taken = self.tokens[self.at : self.at + count]
        self.at += len(taken)
        return [word or (text.replace('""', '"') if '""' in text else text) for text, word in taken]

    def kinds(self) -> str:
        """Return for each remaining field t for a quoted text and n for a number."""
        return "".join(["n" if word else "t" for _text, word in self.tokens[self.at :]])

    def take(self, names: Sequence[str], at_least: int | None = None) -> dict[str, str]:
        """Return the next fields by name; the last ones may be missing. Raises: MalformedError."""
        values = self.texts(len(names))
        if len(values) < (len(names) if at_least is None else at_least):
            raise MalformedError(f"{len(self.tokens)} fields; {names[len(values)]} is missing")
        return dict(zip(names, values, strict=False))

    def take_list(self, name: str) -> list[str]:
        """Return as many of the next fields as the first one, a number, says. Raises: MalformedError."""
        count, left = integer(name, self.take([name])[name]), len(self.tokens) - self.at
        if not 0 <= count <= left:
            raise MalformedError(f"{name} {count}; {left} fields follow")
        return self.texts(count)


@dataclass
class Reading:
    """One pass over the lines of a log."""

    system: str
    accounts: Accounts

    def job(self, line: str) -> Job | None:
        """Return the job of a record; None for other kinds of records. Raises: MalformedError."""
        if not RECORD.match(line):
            raise MalformedError('no record; expected "JOB_FINISH" "version" and a time')
        if not line.startswith('"JOB_FINISH"'):
            self.accounts.remarks["records of reservations and resizes, which are no jobs"] += 1
            return None
        record = Record.of(line)
        values = record.take(BEFORE_HOSTS)
        hosts_wanted = record.take_list("numAskedHosts")
        nodes, slots = hosts(record.take_list("numExHosts"))
        values |= record.take(AFTER_HOSTS, NEEDED)
        return self.account(values | {"askedHosts": " ".join(hosts_wanted)}, nodes, slots, record)

    def account(self, values: dict[str, str], nodes: tuple[str, ...], slots: int, record: Record) -> Job:
        """Return the job of these values. Raises: MalformedError."""
        status, reason = STATUSES.get(integer("jStatus", values["jStatus"])), exit_reason(values.get("exitInfo", "0"))
        if status is None:
            raise MalformedError(f"jStatus {values['jStatus']!r}; expected 32 (EXIT) or 64 (DONE)")
        index, started = integer("idx", values["idx"]), epoch_nanoseconds("startTime", values["startTime"])
        ended = epoch_nanoseconds("eventTime", values["eventTime"])
        code, signal = wait_status(integer("exitStatus", values["exitStatus"])) if started else (None, None)
        fields = {name: text for name, text in values.items() if name in KEPT and _is_given(name, text)}
        return Job(
            system=self.system,
            job_id=job_id(values["jobId"], index),
            name=values["jobName"],
            user=values["userName"] or None,
            account=values["projectName"] or None,
            partition=values["queue"] or None,
            state="COMPLETED" if status == "DONE" else STATES.get(reason, "FAILED"),
            exit_code=code,
            signal=signal,
            nodes=nodes,
            node_count=len(nodes) or None,
            cpu_count=slots or None,
            submitted_ns=epoch_nanoseconds("submitTime", values["submitTime"]),
            started_ns=started,
            ended_ns=ended,
            elapsed_seconds=run_seconds(record, started, ended),
            fields=fields
            | {"jStatus": status, "version": values["version"]}
            | ({"exitInfo": reason} if reason else {}),
        )


def _is_given(name: str, text: str) -> bool:
    """Return whether the value is known; 0 used of a resource is."""
    return text not in UNMEASURED and (text not in UNTOLD or name in USAGE)


def hosts(texts: Sequence[str]) -> tuple[tuple[str, ...], int]:
    """Return ordered host names, and slots: `n1 n1 n2`, or `2*n1 n2` with SHORT_EVENTFILE. Raises: MalformedError."""
    names: dict[str, None] = {}
    slots = 0
    for text in texts:
        match = HOST.fullmatch(text)
        if not match:
            raise MalformedError(f"host {text[:80]!r}; expected a name such as n1, or 16*n1")
        slots += int(match[1] or 1)
        names[match[2]] = None
    if len(names) > NODES_LIMIT:
        raise MalformedError(f"more than {NODES_LIMIT} hosts")
    return tuple(names), slots


def job_id(text: str, index: int) -> str:
    """Return the id as LSF's commands take it: `123`, or `123[4]` of an array. Raises: MalformedError."""
    if not (INTEGER.fullmatch(text) and text.isdigit()):
        raise MalformedError(f"jobId {text[:40]!r}; expected a whole number")
    return f"{text}[{index}]" if index > 0 else text


def exit_reason(text: str) -> str:
    """Return why LSF ended the job, as `bacct -l` names it; the number if it has no name here, empty for 0.

    Raises: MalformedError.
    """
    number = integer("exitInfo", text)
    return REASONS.get(number, str(number)) if number else ""


def run_seconds(record: Record, started: int | None, ended: int | None) -> float | None:
    """Return seconds in the run state, without suspension; None in versions that do not have them."""
    place = RUN_TIME.search(record.kinds())
    if not place or started is None or ended is None:
        return None
    seconds = record.tokens[record.at + place.start() + 10][1]
    is_possible = seconds.isdigit() and int(seconds) * 1_000_000_000 <= ended - started + 1_000_000_000
    return float(seconds) if is_possible else None


def integer(name: str, text: str) -> int:
    """Return a whole number. Raises: MalformedError."""
    if not INTEGER.fullmatch(text):
        raise MalformedError(f"{name} {text[:40]!r}; expected a whole number")
    return int(text)

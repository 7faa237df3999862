"""Jobs from Flux, as `flux jobs --json` and `flux job list` write them."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema import hostlist
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.job import Job
from crosswind.ingest.reader.lines import head_of, numbered_lines, plain_head
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.clock import LATEST_SECONDS
from crosswind.ingest.readers.json_items import items
from crosswind.ingest.readers.schedulers.accounts import Accounts, wait_status

DOCUMENT = re.compile(r'\s*\{\s*"jobs"\s*:\s*\[')
OF_A_JOB = ('"id"', '"t_submit"', '"state"')
STATES = {1: "NEW", 2: "DEPEND", 4: "PRIORITY", 8: "SCHED", 16: "RUN", 32: "CLEANUP", 64: "INACTIVE"}
RESULTS = {1: "COMPLETED", 2: "FAILED", 4: "CANCELED", 8: "TIMEOUT"}
SLURM_WORDS = {
    **dict.fromkeys(("NEW", "DEPEND", "PRIORITY", "SCHED"), "PENDING"),
    "RUN": "RUNNING",
    "CLEANUP": "COMPLETING",
    "CANCELED": "CANCELLED",
}
TAKEN = frozenset(
    (
        *("name", "username", "userid", "bank", "queue", "nodelist", "nnodes", "ncores", "t_submit", "t_run"),
        *("t_cleanup", "state", "result", "status", "runtime", "annotations", "exception", "jobs"),
    )
)
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
SECONDS = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,18}))?")
COUNT_LIMIT = 1 << 40
NOT_TEXT = re.compile("[\0\ud800-\udfff]")  # as JSON can escape them


@dataclass(frozen=True)
class FluxReader:
    """One job for each object; of jobs inside jobs, the outer ones.

    Source: flux-jobs(1); flux-core, src/bindings/python/flux/job/info.py (to_dict) and src/common/libjob/job.h.
    """

    name: ClassVar[str] = "flux"
    description: ClassVar[str] = "Flux jobs, written by flux jobs --json or flux job list (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether the file begins with a job: an object that has an id, a state and a time of submission."""
        text = plain_head(head)
        begin = DOCUMENT.match(text)
        first = text[begin.end() :] if begin else text.lstrip().split("\n", 1)[0]
        return first.lstrip().startswith("{") and all(name in first for name in OF_A_JOB)

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Job]:
        """Yield the jobs in the file's order. Raises: UnavailableError, MalformedError."""
        reading = Reading(context.system, Accounts(report))
        is_document = DOCUMENT.match(plain_head(head_of(path)))
        records = _document(path, report) if is_document else json_lines(path, report)
        yield from reading.accounts.jobs(records, reading.job)
        reading.accounts.note()


def _document(path: Path, report: Report) -> Iterator[tuple[int, str, object]]:
    for item in items(path, report, "jobs"):
        yield item.line, item.text, item.value


def json_lines(path: Path, report: Report) -> Iterator[tuple[int, str, object]]:
    """Yield number, text and value of each line; others than JSON go to the report. Raises: as `numbered_lines`."""
    for number, text in numbered_lines(path, report):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            report.skip(number, text, f"no JSON: {error}")
            continue
        yield number, text, value


@dataclass
class Reading:
    """One pass over the objects of a file."""

    system: str
    accounts: Accounts

    def job(self, value: object) -> Job:
        """Return the job of an object. Raises: MalformedError."""
        if not isinstance(value, dict):
            raise MalformedError(f"{str(value)[:40]!r}; expected an object")
        self.accounts.remarks["jobs hold further jobs: those are left out"] += bool(value.get("jobs"))
        number, word = count(value, "id"), state(value)
        if number is None:
            raise MalformedError("id is missing")
        started, ended = time(value, "t_run"), time(value, "t_cleanup")
        raw = value.get("waitstatus")
        code, signal = wait_status(raw) if type(raw) is int and 0 <= raw < 1 << 16 else (None, None)
        return Job(
            system=self.system,
            job_id=f58(number),
            name=text_of(value.get("name")),
            user=text_of(value.get("username")) or text_of(value.get("userid")) or None,
            account=text_of(value.get("bank")) or None,
            partition=text_of(value.get("queue")) or None,
            state=SLURM_WORDS.get(word, word),
            exit_code=code,
            signal=signal,
            nodes=hostlist.expand(text_of(value.get("nodelist"))),
            node_count=count(value, "nnodes"),
            cpu_count=count(value, "ncores"),
            submitted_ns=time(value, "t_submit"),
            started_ns=started,
            ended_ns=ended,
            elapsed_seconds=(ended - started) / 1_000_000_000 if started and ended and ended >= started else None,
            fields=fields(value, word),
        )


def f58(number: int) -> str:
    """Return the id as the job sees it in FLUX_JOB_ID.

    Source: Flux RFC 19, F58 encoding.
    """
    digits = BASE58[number % 58]
    while number := number // 58:
        digits = BASE58[number % 58] + digits
    return f"ƒ{digits}"


def state(value: Mapping[str, object]) -> str:
    """Return Flux's word for a job's result, or its present state. Raises: MalformedError."""
    word = _word(value, "state", STATES)
    if word == "INACTIVE":
        return _word(value, "result", RESULTS) if value.get("result") else word
    return word


def _word(value: Mapping[str, object], name: str, words: Mapping[int, str]) -> str:
    """Return a word, which `flux job list` writes as a number. Raises: MalformedError."""
    code = value.get(name)
    word = words.get(code) if type(code) is int else code
    if word not in words.values():
        raise MalformedError(f"{name} {str(code)[:40]!r}; expected one of {', '.join(words.values())}")
    return str(word)


def time(value: Mapping[str, object], name: str) -> int | None:
    """Return a time in ns UTC; None when it is missing or 0. Raises: MalformedError."""
    seconds = value.get(name)
    if not seconds or isinstance(seconds, bool):
        return None
    match = SECONDS.fullmatch(str(seconds))
    if not match or int(match[1]) > LATEST_SECONDS:
        raise MalformedError(f"{name} {str(seconds)[:40]!r}; expected seconds since 1970")
    return int(match[1]) * 1_000_000_000 + int(f"{match[2] or '':0<9}"[:9])


def count(value: Mapping[str, object], name: str) -> int | None:
    """Return a whole number; None when it is missing or empty. Raises: MalformedError."""
    number = value.get(name)
    if number is None or number == "":
        return None
    limit = 1 << 64 if name == "id" else COUNT_LIMIT
    if not (type(number) is int and 0 <= number < limit):
        raise MalformedError(f"{name} {str(number)[:40]!r}; expected a whole number")
    return number


def fields(value: Mapping[str, object], word: str) -> dict[str, str]:
    """Return the remaining facts as texts, without empty ones."""
    exception = value.get("exception")
    texts = {name: text_of(item) for name, item in value.items() if name not in TAKEN}
    if isinstance(exception, dict) and exception.get("occurred"):
        texts |= {f"exception.{name}": text_of(item) for name, item in exception.items()}
    if value.get("annotations"):
        texts["annotations"] = text_of(value["annotations"])
    return {name: text for name, text in texts.items() if text} | {"status": word}


def text_of(value: object) -> str:
    """Return the value as text; empty for none. Raises: MalformedError when it cannot be stored as text."""
    if value in (None, [], {}):
        return ""
    if type(value) in (int, float):
        return str(value)
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError as error:
        raise MalformedError("nested too deep") from error
    if NOT_TEXT.search(text):
        raise MalformedError(f"{ascii(text)[:80]} is no text")
    return text

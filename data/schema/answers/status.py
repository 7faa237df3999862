"""State of a server, as its administrators see it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from crosswind.data.schema.answers.fields import about


@dataclass(frozen=True)
class Check:
    """One check of the server's health."""

    name: str
    is_good: bool
    detail: str = ""


@dataclass(frozen=True)
class Use:
    """A limit, and how much of it is in use."""

    name: str
    limit: int
    used: int
    waiting: int = field(default=0, metadata=about("how many wait for a place"))


@dataclass(frozen=True)
class Activity:
    """A thread of the server: its turns, when the last one began and ended (ns UTC), and its last error."""

    name: str
    is_alive: bool
    turns: int
    began_ns: int | None
    ended_ns: int | None
    last_error: str | None = None


@dataclass(frozen=True)
class ErrorKind:
    """Log lines of one level and source since the server started, and the last of them."""

    source: str
    level: str
    count: int
    last_ns: int
    last: str


@dataclass(frozen=True)
class ServerStatus:
    """State of a server and of its store; secrets are masked."""

    at_ns: int
    started_ns: int
    checks: tuple[Check, ...]
    configuration: Mapping[str, str]
    uses: tuple[Use, ...]
    stored: Mapping[str, int | None] = field(metadata=about("bytes, files and rows by what they are of"))
    last_batch_ns: int | None
    batches_in_hour: int
    damaged: tuple[str, ...]
    threads: tuple[Activity, ...]
    versions: Mapping[str, str]
    errors: tuple[ErrorKind, ...]
    answers: Mapping[str, int] = field(metadata=about("how many, by HTTP status"))
    refusals: Mapping[str, int] = field(metadata=about("before any route, by kind of problem"))

    @property
    def is_good(self) -> bool:
        """True if every check is good."""
        return all(check.is_good for check in self.checks)

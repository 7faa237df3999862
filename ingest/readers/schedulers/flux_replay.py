"""Replay of Flux's log of a job's events: state, times and result."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.readers.schedulers.flux import count, text_of, time

STATES = ("NEW", "DEPEND", "PRIORITY", "SCHED", "RUN", "CLEANUP", "INACTIVE")
ENTERED = {  # the state that an event begins, unless the job is further already
    "submit": "NEW",
    "validate": "DEPEND",
    "depend": "PRIORITY",
    "priority": "SCHED",
    "alloc": "RUN",
    "finish": "CLEANUP",
    "clean": "INACTIVE",
}
RESULTS = {"cancel": "CANCELED", "timeout": "TIMEOUT", "timelimit": "TIMEOUT"}  # Flux writes timeout, RFC 21 the other
KEPT = {"submit": ("userid", "urgency"), "urgency": ("urgency",), "priority": ("priority",), "finish": ("status",)}
Skip = Callable[[int, str, str], None]


@dataclass(frozen=True)
class Event:
    """One event: time, name and context."""

    ts_ns: int
    name: str
    context: Mapping[str, object]


@dataclass
class Replay:
    """The events so far.

    Source: Flux RFC 21, job states and events; flux-core, src/modules/job-list/job_state.c, for the result.
    """

    state: str = ""
    entered_ns: dict[str, int] = field(default_factory=dict)  # by state, the first time
    values: dict[str, object] = field(default_factory=dict)  # the newest, by name
    updates: dict[str, object] = field(default_factory=dict)  # of the jobspec, by names with dots
    exception: Mapping[str, object] = field(default_factory=dict)  # the first that ended the job

    def take(self, event: Event) -> None:
        """Apply one event. Raises: MalformedError."""
        values = {name: count(event.context, name) for name in KEPT.get(event.name, ())}
        state = ENTERED.get(event.name, "")
        if event.name == "exception" and count(event.context, "severity") == 0:
            self.exception = self.exception or event.context
            state = "CLEANUP"
        if event.name == "jobspec-update":
            self.updates |= event.context
        self.values |= {name: value for name, value in values.items() if value is not None}
        if state and (not self.state or STATES.index(state) > STATES.index(self.state)):
            self.state = state
            self.entered_ns[state] = event.ts_ns

    def word(self) -> str:
        """Return Flux's word for the job's result, or its present state."""
        if self.state != "INACTIVE":
            return self.state
        if "RUN" in self.entered_ns and self.values.get("status") == 0:
            return "COMPLETED"
        return RESULTS.get(str(self.exception.get("type")), "FAILED")


def replayed(eventlog: object, skip: Skip) -> Replay:
    """Return the outcome of the events of a log, a text or a list of objects; bad ones are skipped.

    Raises: MalformedError when none is good.
    """
    replay = Replay()
    for number, entry in _entries(eventlog):
        try:
            replay.take(event_of(entry))
        except MalformedError as error:
            skip(number, entry if isinstance(entry, str) else "", str(error))
    if not replay.state:
        raise MalformedError("eventlog: no event that begins a state; expected submit, alloc, finish, ..., of RFC 21")
    return replay


def _entries(eventlog: object) -> Iterator[tuple[int, object]]:
    """Yield each event as written, with its number from 1. Raises: MalformedError."""
    lines = eventlog.split("\n") if isinstance(eventlog, str) else eventlog
    if not isinstance(lines, list):
        raise MalformedError(
            f"eventlog is of type {type(eventlog).__name__}; expected lines of events, or a list of them"
        )
    return ((number, line) for number, line in enumerate(lines, 1) if not isinstance(line, str) or line.strip())


def event_of(entry: object) -> Event:
    """Parse an event from its line or object. Raises: MalformedError. Source: Flux RFC 18, KVS event log format."""
    value = parsed("event", entry)
    name, context, ts_ns = value.get("name"), value.get("context") or {}, time(value, "timestamp")
    if ts_ns is None:
        raise MalformedError("event: timestamp is missing")
    if not isinstance(name, str) or not isinstance(context, dict):
        raise MalformedError(f"event: name {text_of(name)[:40]!r} and context; expected a text and an object")
    return Event(ts_ns, name, context)


def parsed(name: str, document: object) -> dict[str, object]:
    """Return an object, which may be written as its JSON. Raises: MalformedError."""
    try:
        value = json.loads(document) if isinstance(document, str) else document
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"{name}: no JSON: {error}") from error
    if not isinstance(value, dict):
        raise MalformedError(f"{name} is of type {type(value).__name__}; expected an object")
    return value

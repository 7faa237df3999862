"""Events: what was stored, in the order in which it was, for whoever follows it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from crosswind.data.schema.answers.fields import about, fill_texts, text_of


class EventKind(StrEnum):
    """A kind of event; `reset` says that events before it are not kept any more."""

    RUN_STARTED = "run.started"
    RUN_PROGRESS = "run.progress"
    RUN_ENDED = "run.ended"
    RUN_VERDICT = "run.verdict"
    STUDY_CREATED = "study.created"
    STUDY_STATE = "study.state"
    TRIAL_STARTED = "trial.started"
    TRIAL_ENDED = "trial.ended"
    CHECK_MEASURED = "check.measured"
    DATA_GAP = "data.gap"
    RESET = "reset"
    TEST = "test"


Detail = str | int | float | bool | None


@dataclass(frozen=True, kw_only=True)
class Event:
    """One event. Ids grow in the order of storing, with gaps; `details` depend on the kind."""

    event_id: int
    kind: EventKind
    at: str | None = field(default=None, metadata=text_of("at_ns"))
    at_ns: int = field(metadata=about("when it was stored, ns UTC"))
    run_id: str | None = None
    workload: str | None = field(default=None, metadata=about("of the run"))
    system: str | None = None
    study_id: str | None = None
    trial_id: str | None = None
    details: Mapping[str, Detail] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fill_texts(self)


@dataclass(frozen=True, kw_only=True)
class EventFilter:
    """Conditions on events; None asks for all. A `reset` meets all of them."""

    run_id: str | None = None
    workload: str | None = None
    system: str | None = None
    study_id: str | None = None
    kinds: tuple[EventKind, ...] | None = None

    def takes(self, event: Event) -> bool:
        """Return whether an event meets the conditions."""
        if event.kind is EventKind.RESET:
            return True
        wanted = (self.run_id, self.workload, self.system, self.study_id)
        has = (event.run_id, event.workload, event.system, event.study_id)
        is_of_kind = self.kinds is None or event.kind in self.kinds
        return is_of_kind and all(one is None or one == other for one, other in zip(wanted, has, strict=True))


ANY_EVENT = EventFilter()


@dataclass(frozen=True)
class EventPart:
    """Events in the order of storing, and the id up to which all were looked at: the next part begins after it."""

    events: tuple[Event, ...]
    position: int
    is_last: bool = field(metadata=about("whether nothing more was stored then"))

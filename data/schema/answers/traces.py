"""Traces of a run's ranks: where their time went, whom they waited for, and what the run would take without a cause."""

from dataclasses import dataclass, field

from crosswind.data.schema.answers.fields import about, fill_texts, text_of

NOTED = 0.01  # of a run's time: shorter waits and savings are no finding


@dataclass(frozen=True)
class TracePart:
    """A part of a time: a class of work, a kernel, an operator or a rank."""

    name: str
    ns: int
    share: float
    kind: str = field(default="", metadata=about("of a kernel: kernel, collective or copy"))
    count: int | None = field(default=None, metadata=about("how often it ran"))


@dataclass(frozen=True)
class TracedRank:
    """One rank: its time in classes that sum to the span, its steps, and its arrivals at collectives."""

    rank: int
    source: str = field(metadata=about("the file, where it is one"))
    events: int
    span_ns: int
    locations: str = field(metadata=about("whose time the classes are of: device, or host without one"))
    parts: tuple[TracePart, ...] = field(metadata=about("classes of time, which sum to the span"))
    overlap_share: float | None = field(metadata=about("of communication, that runs beside computation"))
    step_ns: tuple[int, ...] = field(metadata=about("durations of the steps that it marks"))
    step_wait_ns: tuple[int, ...] = field(metadata=about("of these, waits in collectives while nothing is computed"))
    times_last: int = field(metadata=about("at how many collectives it came last"))
    waited_ns: int = field(metadata=about("for others, in collectives"))
    caused_ns: int = field(metadata=about("that others waited for it, as it came last"))
    waited_for_ns: tuple[int, ...] = field(metadata=about("by whom it waited for, in the order of the ranks"))
    clock_offset_ns: int = field(metadata=about("added to its times, to be on the clock of the first rank"))
    clock_residual_ns: float | None = field(metadata=about("median distance of its ends of collectives after that"))


@dataclass(frozen=True)
class TracedCollectives:
    """Collectives of one operation: of the shortest duration is the transfer, and what ranks have over it is wait."""

    operation: str
    count: int
    transfer_ns: int
    wait_ns: int = field(metadata=about("of all ranks together"))
    bytes: int | None = field(metadata=about("of one rank, in all of them; null where a trace does not say"))


@dataclass(frozen=True)
class TracedPop:
    """POP's metrics over some locations, as ratios; null where they cannot be had."""

    over: str = field(metadata=about("devices or hosts"))
    locations: tuple[str, ...]
    runtime_ns: float
    parallel_efficiency: float | None
    load_balance: float | None
    communication_efficiency: float | None
    serialisation: float | None
    transfer: float | None
    estimated: bool = field(metadata=about("serialisation and transfer are from a replay, not from a network's model"))
    device_communication: float | None
    orchestration: float | None
    ipc: float | None
    frequency_ghz: float | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class TracedPath:
    """The critical path: the chain of activities that took all of the time, by class of work, rank and name."""

    span_ns: int
    works: tuple[TracePart, ...]
    ranks: tuple[TracePart, ...]
    names: tuple[TracePart, ...]


@dataclass(frozen=True)
class TraceReport:
    """The traces of one run: a verdict in words, and what it rests on. Of names only the first ones are in it."""

    verdict: str
    formats: tuple[str, ...]
    world_size: int | None
    span_ns: int = field(metadata=about("from the first begin to the last end of all ranks, on aligned clocks"))
    ranks: tuple[TracedRank, ...]
    slowest_rank: int | None = field(metadata=about("for which the others waited longest"))
    kernel_types: tuple[TracePart, ...] = field(metadata=about("time of devices by the types that run at once"))
    kernels: tuple[TracePart, ...] = field(metadata=about("by their time on devices, the longest first"))
    operators: tuple[TracePart, ...] = field(metadata=about("by the time that they themselves cause on devices"))
    collectives: tuple[TracedCollectives, ...]
    clock_basis: str
    pop: tuple[TracedPop, ...]
    critical_path: TracedPath
    notes: tuple[str, ...]


@dataclass(frozen=True)
class TraceWhatIf:
    """A run replayed with one cause taken out."""

    cause: str
    measured_ns: float
    replayed_ns: float
    slowdown: float = field(metadata=about("measured / replayed; 1: nothing would be gained"))
    saved_ns_per_step: float
    saved_seconds: float | None = field(metadata=about("in a run of as many steps as were asked for"))
    notes: tuple[str, ...]


@dataclass(frozen=True)
class TracedRun:
    """A run that has traces."""

    run_id: str
    traced_ranks: int
    events: int
    first_ns: int = field(metadata=about("begin of the first event"))
    last_ns: int = field(metadata=about("begin of the last event"))
    first_at: str | None = field(default=None, metadata=text_of("first_ns"))
    last_at: str | None = field(default=None, metadata=text_of("last_ns"))

    def __post_init__(self) -> None:
        fill_texts(self)

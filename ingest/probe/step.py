"""One step of one rank as it happened, and the row that comes of it.

All times are `perf_counter_ns` of the rank; `to_utc` leads from them to the node's UTC. What happens on a device is
noted as marks, and becomes times when the device has come past them: then the step is replayed by those.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from crosswind.data.schema.metric import Scalar
from crosswind.ingest.probe.device_clock import Mark
from crosswind.ingest.probe.stops import Stop
from crosswind.ingest.probe.thread_usage import Reading, usage_of

MARKED_PHASES = ("checkpoint", "other")

Row = tuple[Scalar, ...]
What = tuple[int | None, str, str]  # bytes, operation, group
Wait = tuple[int, int, What, int, bool]  # came, end, what, marked by then, whether the loop's body stood still


@dataclass(slots=True)
class Stretch:
    """Time for which the loop stood still for a collective; `marked` is what its step had in marked phases by then."""

    begin: int
    end: int
    marked: int


@dataclass(slots=True, eq=False)
class Step:
    """A turn of the loop, filled while it runs."""

    number: int
    begin: int
    to_utc: int
    usage: Reading
    is_in_body: bool = False  # the loop has its batch
    open_phases: int = 0
    body: int = 0  # when the batch was there
    waiting: int = 0
    end: int = 0
    end_usage: Reading | None = None
    marked: dict[str, int] = field(default_factory=dict)
    marked_total: int = 0
    arrivals: list["Arrival"] = field(default_factory=list)
    blocked: list[Stretch] = field(default_factory=list)
    waits: list["Wait"] = field(default_factory=list)  # noted in haste; arrivals and stretches when it is settled
    marks: list[Mark] = field(default_factory=list)
    awaited: list[tuple[Mark, "Happened"]] = field(default_factory=list)  # on the device, in this order
    _phases: list[tuple[int, int]] = field(default_factory=list)  # open ones: begin, and what was marked by then

    def begin_now(self, now: int) -> None:
        """The step begins."""
        self.begin = now

    def begin_body(self, now: int) -> None:
        """The batch is there."""
        self.body = now
        self.waiting = now - self.begin - self.marked_total

    def enter_phase(self, now: int) -> None:
        """A marked phase begins, within another one it may be."""
        self._phases.append((now, self.marked_total))

    def leave_phase(self, now: int, name: str) -> None:
        """The phase entered last ends, unless the step did before it."""
        if not self._phases:
            return
        begin, marked_before = self._phases.pop()
        own = now - begin - (self.marked_total - marked_before)
        self.marked[name] = self.marked.get(name, 0) + own
        self.marked_total += own

    def see_end(self, now: int, arrival: "Arrival", blocked_since: int | Mark | None) -> None:
        """A collective ended, for which the loop stood still since then, if it did."""
        arrival.marked = self.marked_total
        since = blocked_since.ns if isinstance(blocked_since, Mark) else blocked_since
        if since is not None and arrival.beside and arrival.beside.ns:
            since = max(since, arrival.beside.ns)  # until then the device had work to do
        if since is not None:
            self.blocked.append(Stretch(max(since, self.body), now, self.marked_total))

    def finish(self, now: int) -> None:
        """The step ends."""
        self.end = now

    def _see_wait(self, wait: "Wait") -> None:
        came, end, what, marked, is_exposed = wait
        self.arrivals.append(Arrival(self, came, is_exposed, end, *what, marked=marked if is_exposed else 0))
        if is_exposed:
            self.blocked.append(Stretch(max(came, self.body), end, marked))

    @property
    def is_reached(self) -> bool:
        """Return whether the device, if there is one, has come past everything of this step."""
        return all(mark.ns is not None for mark in self.marks)

    def replay(self) -> None:
        """Tells the step what was noted in haste, and what happened on its device, now that the times are known."""
        for wait in self.waits:
            self._see_wait(wait)
        self.waits.clear()
        for arrival in self.arrivals:
            if arrival.came and arrival.came.ns is not None:
                arrival.time = arrival.came.ns
            arrival.settle_end()
        for mark, happened in self.awaited:
            happened(self, mark.ns or mark.asked)
        self.awaited.clear()
        self.marks.clear()


Happened = Callable[[Step, int], None]


@dataclass(slots=True, eq=False)
class Arrival:
    """This rank at a collective; `number` is its place in the step, known once the step is settled."""

    step: Step
    time: int
    is_exposed: bool  # neither in a marked phase nor while batches are waited for
    end: int | None = None
    size_bytes: int | None = None
    operation: str | None = None
    group: str | None = None
    number: int | None = None
    marked: int = 0  # what the step had in marked phases when it ended
    came: Mark | None = None  # on a device: when it had come
    beside: Mark | None = None  # on the host beside a device: where that was when the rank had come
    went: Mark | None = None  # and when it was done

    def settle_end(self) -> bool:
        """Return whether its end is known by now, if it was on a device."""
        if self.went is None:
            return True
        self.end = self.went.ns
        return self.end is not None


def numbered(step: Step) -> list[Arrival]:
    """The step's arrivals in their order, from now on with their numbers."""
    step.arrivals.sort(key=lambda arrival: arrival.came.asked if arrival.came else arrival.time)
    for number, arrival in enumerate(step.arrivals):
        arrival.number = number
    return step.arrivals


def collective_row(arrival: Arrival, rank: int) -> Row:
    """The row of a collective, its run left out; no duration where nobody saw its end."""
    step, duration = arrival.step, None if arrival.end is None else arrival.end - arrival.time
    key = (arrival.time + step.to_utc, rank, step.number, arrival.number)
    return (*key, duration, arrival.size_bytes, arrival.operation, arrival.group)


def step_row(step: Step, rank: int, stops: Sequence[Stop] = ()) -> Row:
    """The row of a step that has ended, its run left out; the phases sum to its duration.

    While the process was stopped it waited for nobody, whatever it was in: that time is computation.
    """
    duration = step.end - step.begin
    checkpoint, other = (step.marked.get(name, 0) for name in MARKED_PHASES)
    rest = duration - step.waiting - step.marked_total
    stopped = [_within(stretch, stop) for stretch in step.blocked for stop in stops]
    comm = min(_covered(step.blocked) - _covered(stopped), rest)
    phases = (duration, step.waiting, rest - comm, comm, checkpoint, other, _tail(step, rest - comm))
    return (step.begin + step.to_utc, rank, step.number, *phases, *_used(step.usage, step.end_usage or step.usage))


def _within(stretch: Stretch, stop: Stop) -> Stretch:
    begin = max(stretch.begin, stop[0])
    return Stretch(begin, max(begin, min(stretch.end, stop[1])), stretch.marked)


def _covered(stretches: list[Stretch]) -> int:
    """Time within at least one of them."""
    total = until = 0
    for stretch in sorted(stretches, key=lambda stretch: stretch.begin):
        total += max(0, stretch.end - max(stretch.begin, until))
        until = max(until, stretch.end)
    return total


def _tail(step: Step, compute: int) -> int | None:
    """The part of compute behind the last collective that the loop waited for, else behind the last that ended."""
    if step.blocked:
        last = max(step.blocked, key=lambda stretch: stretch.end)
        return min(step.end - last.end - (step.marked_total - last.marked), compute)
    ended = [
        arrival
        for arrival in step.arrivals
        if arrival.is_exposed and arrival.end is not None and arrival.end <= step.end
    ]
    tails = [step.end - (arrival.end or 0) - (step.marked_total - arrival.marked) for arrival in ended]
    return max(0, min(*tails, compute)) if tails else None


def _used(first: Reading, last: Reading) -> Row:
    before, after = usage_of(first), usage_of(last)
    waited = None
    if before.run_queue_wait_ns is not None and after.run_queue_wait_ns is not None:
        waited = after.run_queue_wait_ns - before.run_queue_wait_ns
    return (
        after.user_ns - before.user_ns,
        after.system_ns - before.system_ns,
        waited,
        after.minor_faults - before.minor_faults,
        after.major_faults - before.major_faults,
        after.involuntary_switches - before.involuntary_switches,
    )

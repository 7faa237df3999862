"""One step of one rank as it happened, and its row.

All times are `perf_counter_ns` of the rank; `to_utc` converts them to the node's UTC. Events on a device are noted as
marks, and become times when the device has passed them: then the step is replayed with those.
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
Wait = tuple[int, int, What, int, bool]  # arrival, end, what, marked by then, whether the loop's body stood still


@dataclass(slots=True)
class Stretch:
    """Time for which the loop stood still for a collective; `marked` is the step's time in marked phases by then."""

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
        """Begin the step."""
        self.begin = now

    def begin_body(self, now: int) -> None:
        """Note that the batch is there."""
        self.body = now
        self.waiting = now - self.begin - self.marked_total

    def enter_phase(self, now: int) -> None:
        """Begin a marked phase, possibly within another one."""
        self._phases.append((now, self.marked_total))

    def leave_phase(self, now: int, name: str) -> None:
        """End the phase entered last, unless the step has ended."""
        if not self._phases:
            return
        begin, marked_before = self._phases.pop()
        own = now - begin - (self.marked_total - marked_before)
        self.marked[name] = self.marked.get(name, 0) + own
        self.marked_total += own

    def see_end(self, now: int, arrival: "Arrival", blocked_since: int | Mark | None) -> None:
        """Note that a collective ended, for which the loop stood still since then, if it did."""
        arrival.marked = self.marked_total
        since = blocked_since.ns if isinstance(blocked_since, Mark) else blocked_since
        if since is not None and arrival.host_mark and arrival.host_mark.ns:
            since = max(since, arrival.host_mark.ns)  # until then the device had work to do
        if since is not None:
            self.blocked.append(Stretch(max(since, self.body), now, self.marked_total))

    def finish(self, now: int) -> None:
        """End the step."""
        self.end = now

    def _see_wait(self, wait: "Wait") -> None:
        came, end, what, marked, is_exposed = wait
        self.arrivals.append(Arrival(self, came, is_exposed, end, *what, marked=marked if is_exposed else 0))
        if is_exposed:
            self.blocked.append(Stretch(max(came, self.body), end, marked))

    @property
    def is_reached(self) -> bool:
        """Return whether the device, if there is one, has passed all marks of this step."""
        return all(mark.ns is not None for mark in self.marks)

    def replay(self) -> None:
        """Apply the events noted in haste, and those of the device, now that the times are known."""
        for wait in self.waits:
            self._see_wait(wait)
        self.waits.clear()
        for arrival in self.arrivals:
            if arrival.came and arrival.came.ns is not None:
                arrival.time = arrival.came.ns
            arrival.settle_end()
        for mark, happened in self.awaited:
            happened(self, mark.ns or mark.put_ns)
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
    marked: int = 0  # the step's time in marked phases at the end
    came: Mark | None = None  # on a device: when the rank had come
    host_mark: Mark | None = None  # on the host, with a device: the device's place when the rank had come
    went: Mark | None = None  # and when it was done

    def settle_end(self) -> bool:
        """Return whether its end, if on a device, is known by now."""
        if self.went is None:
            return True
        self.end = self.went.ns
        return self.end is not None


def numbered(step: Step) -> list[Arrival]:
    """Return the step's arrivals in their order, from now on with their numbers."""
    step.arrivals.sort(key=lambda arrival: arrival.came.put_ns if arrival.came else arrival.time)
    for number, arrival in enumerate(step.arrivals):
        arrival.number = number
    return step.arrivals


def collective_row(arrival: Arrival, rank: int) -> Row:
    """Return the row of a collective without its run; no duration if its end was not seen."""
    step, duration = arrival.step, None if arrival.end is None else arrival.end - arrival.time
    key = (arrival.time + step.to_utc, rank, step.number, arrival.number)
    return (*key, duration, arrival.size_bytes, arrival.operation, arrival.group)


def step_row(step: Step, rank: int, stops: Sequence[Stop] = ()) -> Row:
    """Return the row of a step that has ended, without its run; the phases sum to its duration.

    A stopped process waits for nobody, whatever phase it was in: that time is computation.
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
    """Return the time within at least one of them."""
    total = until = 0
    for stretch in sorted(stretches, key=lambda stretch: stretch.begin):
        total += max(0, stretch.end - max(stretch.begin, until))
        until = max(until, stretch.end)
    return total


def _tail(step: Step, compute: int) -> int | None:
    """Return the compute time after the last collective that the loop waited for, else after the last that ended."""
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

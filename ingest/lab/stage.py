"""Faults that come and go while a run trains, and their truth."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.lab.conditions import Conditions
from crosswind.ingest.lab.hosts.hosts import Host
from crosswind.ingest.lab.injection import Applied, FaultRemainsError, Injection, Truth
from crosswind.ingest.lab.injectors import Target
from crosswind.ingest.lab.plans.plan import PlannedRun
from crosswind.ingest.lab.workers.crew import Worker
from crosswind.ingest.lab.workers.order import Order
from crosswind.ingest.lab.workers.watch import Moment


def node_name(host: Host) -> str:
    """Return the node name of a host's samples and ranks."""
    return f"lab-{host.index + 1}"


@dataclass(frozen=True)
class Scene:
    """The hosts, the conditions and the folder that injectors may touch."""

    hosts: Sequence[Host]
    conditions: Conditions
    scratch: Path

    def target(self, host: Host, rank: int, worker: Worker, order: Order) -> Target:
        """Return one rank of the run on its host as a target."""
        others = tuple(other for other in self.hosts if other.index != host.index and other.wire is None)
        return Target(host, (worker.pid,), rank, self.scratch, self.conditions, others, order.cores[0])


class Stage:
    """The faults of one run, by injection."""

    def __init__(self, scene: Scene, ranks: Sequence[tuple[Worker, Order]]) -> None:
        self._scene = scene
        self._ranks = ranks
        self._applied: dict[Injection, Applied] = {}
        self._truths: dict[Injection, Truth] = {}
        self._refusals: list[UnavailableError] = []

    def begin(self, injection: Injection) -> None:
        """Switch the fault on. Raises: UnavailableError."""
        worker, order = self._ranks[injection.rank]
        host = worker.post.host
        target = self._scene.target(host, injection.rank, worker, order)
        with self._noting_refusals():
            self._applied[injection] = Applied(injection, target, node_name(host))

    def end(self, injection: Injection) -> None:
        """Switch it off, if it was on. Raises: UnavailableError."""
        if applied := self._applied.pop(injection, None):
            with self._noting_refusals():
                self._truths[injection] = applied.end()

    def end_all(self) -> None:
        """Switch off all faults that are still on; `refusal` has the error of any that could not be."""
        for injection in list(self._applied):
            with suppress(UnavailableError):
                self.end(injection)

    @property
    def refusal(self) -> UnavailableError | None:
        """Return why the faults are not as planned: first of all one that is still there."""
        return min(self._refusals, key=lambda error: not isinstance(error, FaultRemainsError), default=None)

    @property
    def truths(self) -> list[Truth]:
        """Return the faults that were switched on and off, in order."""
        return sorted(self._truths.values(), key=lambda truth: truth.started_ns)

    @contextmanager
    def _noting_refusals(self) -> Iterator[None]:
        try:
            yield
        except UnavailableError as error:
            self._refusals.append(error)
            raise

    def moments(self, planned: PlannedRun) -> list[Moment]:
        """Switch on those from before the run. Return when to begin and end the others. Raises: UnavailableError."""
        moments = []
        for fault in planned.faults:
            injection = planned.injection(fault)
            begin, end = fault.during(planned.steps)
            if begin is None:
                self.begin(injection)
            else:
                moments.append(Moment(begin, _call(self.begin, injection)))
            if end is not None:
                moments.append(Moment(end, _call(self.end, injection)))
        return moments


def _call(action: Callable[[Injection], None], injection: Injection) -> Callable[[], None]:
    return lambda: action(injection)

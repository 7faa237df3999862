"""The probe's interface: `with crosswind.run(...) as run: for batch in run.steps(loader): ...`.

Nothing here raises into the user's loop: errors are logged, and training goes on. Rows that the disk does not take are
kept in memory, within bounds, until it does; lost rows are counted in the run's tags.
"""

import logging
import math
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from numbers import Integral, Real
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.failure import Failure
from crosswind.data.schema.paths import spool_directory
from crosswind.data.schema.run import RunState
from crosswind.data.schema.steps import COLLECTIVES, LOOP_SETS, NOT_SEEN
from crosswind.data.schema.trial import Configuration
from crosswind.ingest.kernel.node_facts import node_facts
from crosswind.ingest.probe.adapters import watch
from crosswind.ingest.probe.captures import Captures
from crosswind.ingest.probe.crash import end_state, failure_of
from crosswind.ingest.probe.identity import agreed_id, given_configuration, given_id, note_recorded
from crosswind.ingest.probe.place import Place, node_name, owner, system_name
from crosswind.ingest.probe.software_facts import software_facts
from crosswind.ingest.probe.step import MARKED_PHASES
from crosswind.ingest.probe.step_work import COUNTED_STEP, StepWork
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.spool.records import workload_name
from crosswind.ingest.spool.registration import announce, directories, require_alone, withdraw
from crosswind.ingest.spool.spool import SpoolWriter

HUNG_SECONDS = 20.0  # for which the end of a run waits for a file system that hangs
DEVICE_SECONDS = 5.0  # for which it waits for a device to come past the last step
FLUSH_SECONDS = 0.8  # the most that a kill -9 of the rank, or of its launcher when a peer dies, can lose
SEGMENT_SECONDS = 60.0  # after which what is written is sealed, so that it is stored while the run goes on
MAX_CONFIGURATION_TEXT = 1000
MAX_NAME = 100
PACKAGES = ("torch", "numpy", "lightning", "pytorch_lightning", "transformers", "accelerate", "deepspeed", "jax")
Item = TypeVar("Item")
Watched = TypeVar("Watched")
logger = logging.getLogger("crosswind")


class RunProbe:
    """Records one rank of one run; use it as a context manager around the training loop.

    Args:
        workload: the name of what is trained, whatever the configuration.
        config: flat map of parameter name to scalar; None is left out, anything else is kept as its text.
        spool: folder to write to.
        run_id: the same on all ranks; by default that of `crosswind run`, else one agreed by broadcast.
        count_work: whether PyTorch counts the floating point operations and bytes of the third step, which slows it.
    """

    def __init__(
        self,
        *,
        workload: str | None = None,
        config: Configuration | None = None,
        spool: Path | str | None = None,
        run_id: str | None = None,
        count_work: bool = False,
    ) -> None:
        self._workload = workload
        self._wanted_config = config
        self._configuration: dict[str, bool | int | float | str] = {}
        self._wanted_spool = None if spool is None else Path(spool)
        self._place = Place(0, 1, node_name(), None)  # until the run begins
        self._wanted_id = run_id
        self._timeline = Timeline(0)
        self._work = StepWork() if count_work else None
        self._writer: SpoolWriter | None = None
        self._captures: Captures | None = None
        self._is_disk_refusing = False
        self._refused_phases: set[str] = set()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.run_id: str | None = None

    def __enter__(self) -> Self:
        self._guarded(self._open, "crosswind does not record this run")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._guarded(lambda: self._close(error), "crosswind could not record the end of this run")

    def steps(self, batches: Iterable[Item]) -> Iterator[Item]:
        """Yield the batches, one per step; getting one is the step's `input`, the loop's body the rest of the step."""
        if self._writer is None:
            yield from batches
            return
        source = iter(batches)
        try:
            while True:
                self._begin_step()
                batch = next(source, _NOTHING)
                if batch is _NOTHING:
                    return
                self.batch_arrived()
                yield batch
                self.end_step()
        finally:
            self.abandon_step()

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Return a context whose time counts as this phase, `checkpoint` or `other`, of the running step."""
        if name in MARKED_PHASES:
            return self._timeline.phase(name)
        if name not in self._refused_phases:
            logger.warning("phase %r counts as compute: expected one of %s", name, ", ".join(MARKED_PHASES))
            self._refused_phases.add(name)
        return nullcontext()

    def begin_step(self) -> None:
        """Begin a step with the wait for its batch: for loops that cannot use `steps`."""
        if self._writer:
            self._begin_step()

    def _begin_step(self) -> None:
        """Begin a step; what a capture takes of its time is `other`."""
        timeline, captures = self._timeline, self._captures
        timeline.begin_step()
        if captures and timeline.next_number >= captures.due:
            with timeline.phase("other"):
                captures.at_border(timeline.next_number)

    def batch_arrived(self) -> None:
        """Note that the batch of the step is there."""
        self._timeline.batch_arrived()
        if self._work and self._timeline.next_number == COUNTED_STEP:
            self._guarded(self._work.begin, "the work of a step is not counted")

    def end_step(self) -> None:
        """End the step."""
        self._count_work()
        self._timeline.end_step()

    def abandon_step(self) -> None:
        """Drop the step that was begun: there was no further batch, or the loop was left."""
        self._count_work()
        if self._captures:
            self._captures.end()
        self._timeline.abandon_step()

    def _count_work(self) -> None:
        if self._work and self._timeline.next_number == COUNTED_STEP:
            work, self._work = self._work, None
            self._guarded(lambda: self._record(work.end()), "the work of a step is not counted")

    def watch(self, thing: Watched) -> Watched:
        """Make a model, an engine or a communicator report its collectives. Return the object to use in its place."""
        watched: list[Watched] = []
        if self._writer:
            doing = "crosswind cannot watch the collectives of this"
            self._guarded(lambda: watched.append(watch(thing, self._timeline)), doing)
        return watched[0] if watched else thing

    def watch_training(self, parameters: Iterable[Any]) -> None:
        """Time steps by the device of the trained parameters; report the collectives that Python launches."""
        if self._writer:
            doing = "crosswind cannot watch the device and the collectives of this program"
            self._guarded(lambda: self._watch_training(parameters), doing)

    def _watch_training(self, parameters: Iterable[Any]) -> None:
        from crosswind.ingest.probe.torch_calls import watch_training  # noqa: PLC0415 - not every program needs it

        watch_training(parameters, self._timeline)

    def record(self, **values: float) -> None:
        """Record values of this step: loss, accuracy, staleness; a tensor or array of one element counts as its value.

        A tensor on a device is waited for; record such values rarely.
        """
        if self._writer:
            self._guarded(lambda: self._record(values), "crosswind does not record these values")

    def _record(self, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            if not name.isprintable() or len(name) > MAX_NAME:
                raise InvalidInputError(f"record({name!r:.80}=...): expected a name of at most {MAX_NAME} characters")
            self._timeline.record(name, float(value.item() if hasattr(value, "item") else value))

    def _open(self) -> None:
        self._place = Place.of_process()
        self._timeline.rank = self._place.rank
        run_id = self._wanted_id or given_id() or agreed_id(self._place)  # first: other ranks may wait for this one's
        self._configuration = _scalars(self._wanted_config or {}) or dict(given_configuration())
        directory = self._wanted_spool or spool_directory()
        origin = f"{run_id}-rank{self._place.rank}"
        writer = SpoolWriter(directory, origin, segment_seconds=SEGMENT_SECONDS)
        self._guarded(lambda: self._announce(directory, run_id), "no agent will watch this process")
        require_alone(directory, run_id, self._place.rank)
        self.run_id = run_id
        self._captures = Captures.given(run_id, self._place.rank)
        if self._captures:
            self._captures.look()
        writer.append_record("run", self._run_record() | {"state": RunState.RUNNING, "started_ns": time.time_ns()})
        writer.append_record("rank", self._rank_record() | {"started_ns": time.time_ns()})
        self._writer = writer
        self._thread = threading.Thread(target=self._write_regularly, name="crosswind-probe", daemon=True)
        self._thread.start()
        self._timeline.stops.follow(self._thread.native_id)

    def _announce(self, spool: Path, run_id: str) -> None:
        for directory in directories(spool):
            announce(directory, run_id=run_id, rank=self._place.rank, node=self._place.node)

    def _close(self, error: BaseException | None) -> None:
        """Write the rest; a file that cannot be sealed stays open, and its run becomes lost."""
        self._stop.set()
        if self._thread:
            self._thread.join(HUNG_SECONDS)
            if self._thread.is_alive():
                raise UnavailableError(f"the spool has not answered for {HUNG_SECONDS:.0f} s; what it lacks is lost")
        writer, self._writer = self._writer, None
        if self._captures:
            self._captures.close()
        if writer is None:
            self._timeline.close()
            return
        self._guarded(lambda: _withdraw(writer.directory), "crosswind cannot remove its announcement")
        self._timeline.finish_device(DEVICE_SECONDS)
        self._write_or_keep(writer)
        if self._work:
            self._work.end()
        steps = self._timeline.next_number
        failure = failure_of(error, self._place, steps) if error else None
        if self._wanted_id is None and steps:
            note_recorded(self._place.rank, steps, failure.reason if failure else None)
        self._write_end(writer, end_state(error), failure, steps)
        writer.close()

    def _write_end(self, writer: SpoolWriter, state: RunState, failure: Failure | None, steps: int) -> None:
        rank, tags = self._place.rank, dict[str, str]()
        if rank == 0 and steps and self._place.world_size > 1 and not self._timeline.has_seen_waits:
            tags[COLLECTIVES] = NOT_SEEN
        if lost := self._timeline.close():
            tags[f"rank{rank}_lost_rows"] = str(lost)
        if failure:
            name, text = failure.tag()
            tags[name] = text
        if rank == 0 or state is not RunState.COMPLETED:
            ended = {"state": state, "ended_ns": time.time_ns(), "tags": _part(str(self.run_id)) | tags}
            writer.append_record("run", self._run_record() | ended)
        elif tags:
            writer.append_record("run", self._run_record() | {"state": RunState.RUNNING, "tags": tags})

    def _write_regularly(self) -> None:
        stops = self._timeline.stops
        while not stops.wait(self._stop, FLUSH_SECONDS):
            if writer := self._writer:
                self._write_or_keep(writer)
            if self._captures:
                self._captures.look()
            self._timeline.make_room()

    def _write_or_keep(self, writer: SpoolWriter) -> None:
        try:
            self._timeline.settle()
            for metric_set in LOOP_SETS:
                with self._timeline.taking(metric_set) as columns:
                    if columns:
                        run_ids = [self.run_id] * len(columns["ts_ns"])
                        writer.append_rows(metric_set, {**columns, "run_id": run_ids})
        except Exception as error:  # noqa: BLE001 - nothing else would catch it in this thread
            if not self._is_disk_refusing:
                logger.warning("crosswind keeps its rows in memory until they can be written: %s", error)
            self._is_disk_refusing = True
        else:
            self._is_disk_refusing = False

    def _run_record(self) -> dict[str, object]:
        workload = self._workload or os.environ.get("CROSSWIND_WORKLOAD") or Path(sys.argv[0]).stem
        return {
            "run_id": self.run_id,
            "workload": workload_name(str(workload)),
            "system": system_name(),
            "world_size": self._place.world_size,
            "configuration": self._configuration,
            "job_id": self._place.job_id,
            **owner(),
            "software": _software(),
            "tags": _part(str(self.run_id)),
            "facts": self._facts(),
        }

    def _facts(self) -> dict[str, object]:
        """Facts of the first rank's node and software, which stand for all."""
        if self._place.rank:
            return {}
        return dict(Facts.of_valid({**node_facts(), **software_facts()}).given)

    def _rank_record(self) -> dict[str, object]:
        place = self._place
        return {"run_id": self.run_id, "rank": place.rank, "node": place.node, "pid": os.getpid()}

    def _guarded(self, action: Callable[[], None], consequence: str) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - no error of ours may stop the user's training
            logger.warning("%s: %s", consequence, error)


_NOTHING: Any = object()


def _withdraw(spool: Path) -> None:
    for directory in directories(spool):
        withdraw(directory)


def _part(run_id: str) -> dict[str, str]:
    """Return the tag of the run of `crosswind run` that this one is a part of, if it is not that run itself."""
    given = os.environ.get("CROSSWIND_RUN_ID", run_id)
    return {"part_of": given} if run_id != given and run_id.startswith(f"{given}-") else {}


def _scalars(config: Mapping[str, object]) -> dict[str, bool | int | float | str]:
    """Return a user's settings as the catalog keeps them: scalars unchanged, other values as text."""
    return {str(name): _scalar(value) for name, value in config.items() if value is not None}


def _scalar(value: object) -> bool | int | float | str:
    if isinstance(value, bool):
        return value
    if isinstance(value, Integral):  # numpy's scalars are such, too
        return int(value)
    if isinstance(value, Real) and math.isfinite(value):
        return float(value)
    return str(value)[:MAX_CONFIGURATION_TEXT]


def _software() -> dict[str, str]:
    versions = {"python": platform.python_version(), "kernel": platform.release()}
    for name in PACKAGES:
        if version := getattr(sys.modules.get(name), "__version__", None):
            versions[name] = str(version)
    return versions

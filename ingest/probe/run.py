"""The probe's face: `with crosswind.run(...) as run: for batch in run.steps(loader): ...`.

Nothing here raises into the user's loop: what fails is logged once, recording stops, and training goes on.
"""

import logging
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from crosswind.data.errors import InvalidInputError
from crosswind.data.paths import spool_directory
from crosswind.data.run import RunState, new_ulid
from crosswind.data.steps import COLLECTIVE, STEP
from crosswind.data.trial import Configuration
from crosswind.ingest.probe.ddp import watch_ddp
from crosswind.ingest.probe.place import Place, system_name
from crosswind.ingest.probe.timeline import Timeline
from crosswind.ingest.registration import announce, withdraw
from crosswind.ingest.spool import SpoolWriter

FLUSH_SECONDS = 0.5  # what a kill -9 of the rank can lose
Item = TypeVar("Item")
logger = logging.getLogger("crosswind")


class RunProbe:
    """Records one rank of one run; use it as a context manager around the training loop.

    Args:
        workload: what is trained, whatever the configuration.
        config: flat map of parameter name to scalar.
        spool: folder to write to.
        run_id: the same on all ranks; by default that of `crosswind run`, else one agreed by broadcast.
    """

    def __init__(
        self,
        *,
        workload: str | None = None,
        config: Configuration | None = None,
        spool: Path | None = None,
        run_id: str | None = None,
    ) -> None:
        self._workload = workload or os.environ.get("CROSSWIND_WORKLOAD") or Path(sys.argv[0]).stem or "python"
        self._configuration = dict(config or {})
        self._directory = spool or spool_directory()
        self._place = Place.from_environment()
        self._wanted_id = run_id or os.environ.get("CROSSWIND_RUN_ID")
        self._timeline = Timeline(self._place.rank)
        self._writer: SpoolWriter | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.run_id: str | None = None

    def __enter__(self) -> Self:
        self._guarded(self._open)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._guarded(lambda: self._close(failed=kind is not None))

    def steps(self, batches: Iterable[Item]) -> Iterator[Item]:
        """The batches, one a step; the time to get each is the step's `input`, the loop's body the rest of it."""
        timeline, source = self._timeline, iter(batches)
        try:
            while True:
                timeline.begin_step()
                batch = next(source, _NOTHING)
                if batch is _NOTHING:
                    return
                timeline.batch_arrived()
                yield batch
                timeline.end_step()
        finally:
            timeline.abandon_step()

    def phase(self, name: str) -> Any:
        """A context whose time counts as this phase, `checkpoint` or `other`, of the running step."""
        try:
            return self._timeline.phase(name)
        except InvalidInputError as error:
            logger.warning("%s", error)
            return nullcontext()

    def watch(self, model: Any) -> None:
        """Has a DistributedDataParallel model report every gradient all-reduce."""
        self._guarded(lambda: watch_ddp(model, self._timeline))

    def _open(self) -> None:
        run_id = self._wanted_id or _agreed_id(self._place)
        writer = SpoolWriter(self._directory, f"{run_id}-rank{self._place.rank}")
        self.run_id, self._writer = run_id, writer
        writer.append_record("run", self._run_record() | {"state": RunState.RUNNING, "started_ns": time.time_ns()})
        writer.append_record("rank", self._rank_record() | {"started_ns": time.time_ns()})
        announce(self._directory, run_id=run_id, rank=self._place.rank, node=self._place.node, pid=os.getpid())
        self._thread = threading.Thread(target=self._write_regularly, name="crosswind-probe", daemon=True)
        self._thread.start()

    def _close(self, *, failed: bool) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()
        if self._writer is None:
            return
        withdraw(self._directory, os.getpid())
        self._write()
        if self._place.rank == 0 or failed:
            state = RunState.FAILED if failed else RunState.COMPLETED
            self._writer.append_record("run", self._run_record() | {"state": state, "ended_ns": time.time_ns()})
        self._writer.close()

    def _write_regularly(self) -> None:
        while not self._stop.wait(FLUSH_SECONDS):
            self._guarded(self._write)
            self._timeline.make_room()

    def _write(self) -> None:
        if self._writer is None:
            return
        for metric_set, columns in zip((STEP, COLLECTIVE), self._timeline.take(), strict=True):
            if columns:
                count = len(columns["ts_ns"])
                self._writer.append_rows(metric_set, {**columns, "run_id": [self.run_id] * count})

    def _run_record(self) -> dict[str, object]:
        return {
            "run_id": self.run_id,
            "workload": self._workload,
            "system": system_name(),
            "world_size": self._place.world_size,
            "configuration": self._configuration,
            "job_id": self._place.job_id,
            "software": _software(),
        }

    def _rank_record(self) -> dict[str, object]:
        place = self._place
        return {"run_id": self.run_id, "rank": place.rank, "node": place.node, "pid": os.getpid()}

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - the user's training goes on whatever we get wrong
            logger.warning("crosswind records nothing more of this run: %s", error)
            self._writer = None


_NOTHING: Any = object()


def _software() -> dict[str, str]:
    versions = {"python": platform.python_version(), "kernel": platform.release()}
    for name in ("torch", "numpy"):
        if module := sys.modules.get(name):
            versions[name] = str(getattr(module, "__version__", ""))
    return versions


def _agreed_id(place: Place) -> str:
    """A fresh run id that every rank of the run has."""
    if place.world_size == 1:
        return new_ulid()
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_initialized():
        raise InvalidInputError(
            f"{place.world_size} ranks have no run id in common: start them by `crosswind run -- ...`, "
            "set CROSSWIND_RUN_ID, or enter crosswind.run() after init_process_group()"
        )
    box = [new_ulid()]
    distributed.broadcast_object_list(box, src=0)
    return box[0]

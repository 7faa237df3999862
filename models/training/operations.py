"""Training as operations: requested by people, by a schedule or by drift, and run by any process that is alive.

An operation is held under a lease that its process renews while it works. If the process is killed, the operation is
started again after the lease has run out, at most ATTEMPTS_MAX times. The new version and the operation's end are
written in one transaction, so that nothing is registered twice.
"""

import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from crosswind.data.schema.errors import ConflictError, NotFoundError, ProjectError
from crosswind.data.schema.model import ModelRecord
from crosswind.data.schema.operation import OPEN, Operation
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.run import new_ulid
from crosswind.data.store.store import Store
from crosswind.models.registry.registry import Registry, check_name, pack
from crosswind.models.registry.trainer import Trained, Trainer
from crosswind.models.training.drifting import drift_on
from crosswind.models.training.trainers import TRAINERS

TRAIN = "train"
LEASE_SECONDS = 60.0
BEATS = 4  # a lease; three may be missed
TRAINED = 0.9  # of a training, when the model is fitted and not yet saved
NANOSECONDS = 1_000_000_000

_log = logging.getLogger("crosswind.operations")


class Runner:
    """Requests trainings and runs them, one at a time."""

    def __init__(
        self,
        store: Store,
        trainers: Mapping[str, Trainer] = TRAINERS,
        *,
        registry: Registry | None = None,
        lease_seconds: float = LEASE_SECONDS,
        clock: Callable[[], int] | None = None,
    ) -> None:
        self._store = store
        self._trainers = trainers
        self._clock = clock or store.catalog.clock
        self._registry = registry or Registry(store, clock=self._clock)
        self._lease_seconds = lease_seconds
        self._owner = f"{socket.gethostname()[:100]} {os.getpid()} {secrets.token_hex(4)}"
        self._current: str | None = None

    def ask(self, name: str, because: str = "asked for", *, request: RequestKey | None = None) -> Operation:
        """The operation that trains this model: a new one, or the one that is waiting or running already.

        Raises: NotFoundError for a model without a trainer, InvalidInputError.
        """
        check_name(name)
        self._trainer(name)
        fresh = Operation(new_ulid(), TRAIN, {"name": name}, self._clock(), result={"because": because})
        with self._store.catalog.write() as session:
            made = session.requests.claim(request, self._clock()) if request else None
            if made:
                return session.operations.get(made[0])
            operation = session.operations.add_unless_open(fresh)
            if request:
                session.requests.settle(request, [operation.operation_id])
            return operation

    def run_next(self, operation_id: str | None = None) -> Operation | None:
        """Runs the oldest free training, or the named one, and returns it when ended; None when none is free.

        An exception of a trainer ends the operation as failed, not this process.
        """
        begun = self._claim(operation_id)
        if begun is None:
            return None
        self._current = begun.operation_id
        try:
            with self._beating(begun):
                return self._done(begun)
        except ConflictError as error:  # it took longer than its lease, and another process has it now
            _log.warning("%s", error)
            return None
        finally:
            self._current = None

    @property
    def registry(self) -> Registry:
        """The registry that holds the versions."""
        return self._registry

    @property
    def names(self) -> tuple[str, ...]:
        """The models that can be trained."""
        return tuple(sorted(self._trainers))

    def look_after(self, name: str) -> Operation | None:
        """Takes the promoted version back if it drifted, and requests a training after drift or by schedule.

        Raises: what the trainer's `later_runs` raises, NotFoundError, UnavailableError, MalformedError.
        """
        trainer = self._trainer(name)
        reason = self._demoted_because(name, trainer)
        return self.ask(name, reason) if reason else self._ask_if_due(name, trainer)

    def give_back(self) -> None:
        """Releases the running operation, so that another process need not wait for the lease to run out."""
        if current := self._current:
            with suppress(ProjectError), self._store.catalog.write() as session:
                session.operations.release(current, self._owner)

    def _claim(self, operation_id: str | None) -> Operation | None:
        now_ns = self._clock()
        with self._store.catalog.read() as session:
            if not session.operations.is_any_free(now_ns, names=self.names):
                return None
        lease_until_ns = self._lease_end_ns()
        with self._store.catalog.write() as session:
            lease = {"now_ns": now_ns, "lease_until_ns": lease_until_ns}
            return session.operations.claim(self._owner, **lease, names=self.names, operation_id=operation_id)

    def _done(self, begun: Operation) -> Operation:
        try:
            trained = self._trainer(begun.arguments["name"]).train(self._store)
            content = pack(begun.arguments["name"], trained.model)
        except ProjectError as error:
            return self._failed(begun, str(error))
        except Exception as error:  # noqa: BLE001 - any error ends the operation and not the server
            _log.exception("%s of %s failed", begun.kind, dict(begun.arguments))
            return self._failed(begun, f"{type(error).__name__}: {error}")
        lease_until_ns = self._lease_end_ns()
        with self._store.catalog.write() as session:
            session.operations.beat(begun.operation_id, self._owner, lease_until_ns=lease_until_ns, progress=TRAINED)
        return self._registered(begun, content, trained)

    def _trainer(self, name: str) -> Trainer:
        if name not in self._trainers:
            expectation = f"expected {', '.join(sorted(self._trainers))}" if self._trainers else "there is none"
            raise NotFoundError(f"model {name!r} has no trainer: {expectation}")
        return self._trainers[name]

    def _registered(self, begun: Operation, content: bytes, trained: Trained) -> Operation:
        name = begun.arguments["name"]
        with self._store.catalog.write() as session:
            record = self._registry.add(session, name, content, trained.evidence)
            try:
                record = self._registry.promote_in(session, name, record.version)
                note = record.note
            except ConflictError as error:  # raised before anything was written
                note = str(error)
            result = {**begun.result, "version": record.version, "state": record.state.value, "note": note}
            return session.operations.finish(begun.operation_id, self._owner, now_ns=self._clock(), result=result)

    def _failed(self, begun: Operation, error: str) -> Operation:
        with self._store.catalog.write() as session:
            return session.operations.fail(begun.operation_id, self._owner, now_ns=self._clock(), error=error)

    def _demoted_because(self, name: str, trainer: Trainer) -> str | None:
        with self._store.catalog.read() as session:
            record = session.models.promoted(name)
        if record is None:
            return None
        if reason := drift_on(self._store, self._registry, trainer, record).reason:
            self._demote(record, reason)
        return reason

    def _demote(self, record: ModelRecord, reason: str) -> None:
        with suppress(ConflictError):  # another process was faster
            fallback = self._registry.demote(record.name, record.version, reason)
            answers = f"version {fallback.version}" if fallback else "none"
            _log.warning("version %d of %s is taken back, %s answers: %s", record.version, record.name, answers, reason)

    def _ask_if_due(self, name: str, trainer: Trainer) -> Operation | None:
        if trainer.every_seconds is None:
            return None
        with self._store.catalog.read() as session:
            newest = session.models.newest(name)
            trainings = [
                operation for operation in session.operations.find(TRAIN) if operation.arguments["name"] == name
            ]
        if trainings and trainings[0].state in OPEN:
            return None
        latest_ns = max([record.made_ns for record in (newest, *trainings[:1]) if record is not None], default=None)
        if latest_ns is not None and self._clock() - latest_ns < trainer.every_seconds * NANOSECONDS:
            return None
        return self.ask(name, f"every {trainer.every_seconds:g} s")

    @contextmanager
    def _beating(self, begun: Operation) -> Iterator[None]:
        ending = threading.Event()
        thread = threading.Thread(target=self._beat, args=(begun, ending), name="lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()

    def _beat(self, begun: Operation, ending: threading.Event) -> None:
        operation_id, progress = begun.operation_id, self._trainer(begun.arguments["name"]).progress
        while not ending.wait(self._lease_seconds / BEATS):
            try:
                with self._store.catalog.write() as session:
                    done = TRAINED * progress() if progress else None
                    session.operations.beat(
                        operation_id, self._owner, lease_until_ns=self._lease_end_ns(), progress=done
                    )
            except ProjectError as error:
                _log.warning("%s", error)
                return
            except Exception:  # noqa: BLE001 - the database may answer again before the lease has run out
                _log.exception("the lease of %s was not renewed", operation_id)

    def _lease_end_ns(self) -> int:
        return self._clock() + int(self._lease_seconds * NANOSECONDS)

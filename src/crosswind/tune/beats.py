"""Heartbeats of the trials that this process evaluates, from one thread beside it."""

import logging
import threading
import weakref

from crosswind.data.schema.errors import ConflictError, NotFoundError, ProjectError
from crosswind.models.tuner.service.service import Lease, StudyService
from crosswind.tune.trials import Trial

BEATS_PER_LEASE = 4

logger = logging.getLogger("crosswind")


class Beats:
    """Renews the leases of open trials until they are let go; a trial that nobody refers to any more is let go, too."""

    def __init__(self, service: StudyService, study: str) -> None:
        self._service, self._study = service, study
        self._open: weakref.WeakKeyDictionary[Trial, Lease] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def hold(self, trial: Trial, lease: Lease) -> None:
        """Renew this trial's lease from now on."""
        with self._lock:
            self._open[trial] = lease
            if self._thread is None:
                wait = lease.seconds / BEATS_PER_LEASE
                self._thread = threading.Thread(target=self._beat_on, args=(wait,), name="crosswind-beat", daemon=True)
                self._thread.start()

    def let_go(self, trial: Trial) -> bool:
        """Renew it no more; return whether it was held."""
        with self._lock:
            return self._open.pop(trial, None) is not None

    def end(self) -> list[Trial]:
        """Renew nothing more; return the trials that were still held."""
        self._ended.set()
        with self._lock:
            held = list(self._open)
            self._open.clear()
        return held

    def _beat_on(self, wait_seconds: float) -> None:
        while not self._ended.wait(wait_seconds):
            self._beat_all()

    def _beat_all(self) -> None:
        with self._lock:
            held = list(self._open.items())
        for trial, lease in held:
            self._beat(trial, lease)

    def _beat(self, trial: Trial, lease: Lease) -> None:
        try:
            self._service.heartbeat(self._study, trial.trial_id, lease)
        except (ConflictError, NotFoundError) as error:
            if self.let_go(trial):  # else it was told just now
                trial.lose(str(error))
        except ProjectError as error:
            logger.warning("no heartbeat: %s", error)

"""A trial's program while it runs: its lease is kept, and what ends it early is noted."""

import logging
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from crosswind.data.schema.errors import ConflictError, NotFoundError, ProjectError

logger = logging.getLogger("crosswind")
JUDGED_EVERY_SECONDS = 3.0  # by the steps so far, which the probe writes once a second
GIVES_BACK = frozenset({signal.SIGTERM, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP})
ENDS_NOW = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})  # SIGUSR1 is a notice: the end comes later


@contextmanager
def noted_signals() -> Iterator[list[int]]:
    """Note the first signal to give back for the time of the block; another one acts as ever. Main thread only."""
    noted: list[int] = []
    before = {number: signal.getsignal(number) for number in GIVES_BACK}

    def note(number: int, _: object) -> None:
        noted.append(number)
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in (number for number, handler in before.items() if handler is not signal.SIG_IGN):
        signal.signal(number, note)
    try:
        yield noted
    finally:
        restore()


@dataclass
class Watch:
    """Events that came to the program from outside: signals, a lost lease, its time limit.

    `beat` renews the lease; `limit_seconds` is how long the program may take; `grace_seconds` is how long after
    a signal that ends it, it may still write a checkpoint, before `on_overdue` gives the trial back; `surely_worse`
    says why the program should be stopped before its end, or None.
    """

    beat: Callable[[], object]
    beat_seconds: float
    limit_seconds: float | None
    grace_seconds: float
    on_overdue: Callable[[], None]
    surely_worse: Callable[[], str | None] | None = None
    preempted_by: int | None = None
    lost: str | None = None
    stopped_because: str | None = None
    is_leaving: bool = False
    _process: "subprocess.Popen[bytes] | None" = None
    _is_overdue_soon: bool = False
    _done: threading.Event = field(default_factory=threading.Event)

    def heard(self, number: int) -> None:
        """A signal arrived for the program."""
        if number not in GIVES_BACK:
            return
        self.is_leaving = True
        if self._process is not None and self._process.poll() == 0:
            return  # the program was through: its result counts; one that failed may have got this very signal
        self.preempted_by = number
        if number in ENDS_NOW and not self._is_overdue_soon:
            self._is_overdue_soon = True
            threading.Thread(target=self._overdue, name="crosswind-grace", daemon=True).start()

    def started(self, process: "subprocess.Popen[bytes]") -> None:
        """The program is there; it gets a signal that came before it."""
        self._process = process
        if self.preempted_by is not None:
            process.send_signal(self.preempted_by)

    @contextmanager
    def noting_signals(self) -> Iterator[None]:
        """Keeps signals from ending this process before the program's result is reported; main thread only."""
        noted = [number for number in GIVES_BACK if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, lambda taken, _: self.heard(taken)) for number in noted}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Keeps the lease and the time limit for the time of the block."""
        threads = [threading.Thread(target=self._beat_on, name="crosswind-beat", daemon=True)]
        if self.limit_seconds is not None:
            threads.append(threading.Thread(target=self._limit, name="crosswind-limit", daemon=True))
        if self.surely_worse is not None:
            threads.append(threading.Thread(target=self._judge, name="crosswind-judge", daemon=True))
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._done.set()
            for thread in threads:
                thread.join()

    def _beat_on(self) -> None:
        while not self._done.wait(self.beat_seconds):
            try:
                self.beat()
            except (ConflictError, NotFoundError) as error:
                self.lost = str(error)
                self._end(signal.SIGTERM)
                return
            except ProjectError as error:
                logger.warning("no heartbeat: %s", error)

    def _limit(self) -> None:
        if not self._done.wait(self.limit_seconds):
            self._stop(f"stopped after {self.limit_seconds:g} s")

    def _judge(self) -> None:
        while self.surely_worse and not self._done.wait(JUDGED_EVERY_SECONDS):
            try:
                reason = self.surely_worse()
            except ProjectError as error:
                logger.warning("not judged: %s", error)
                return
            if reason:
                self._stop(reason)
                return

    def _stop(self, reason: str) -> None:
        self.stopped_because = self.stopped_because or reason
        self._end(signal.SIGTERM)
        if not self._done.wait(self.grace_seconds):
            self._end(signal.SIGKILL)

    def _overdue(self) -> None:
        if not self._done.wait(self.grace_seconds):
            self.on_overdue()
            self._end(signal.SIGKILL)

    def _end(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)

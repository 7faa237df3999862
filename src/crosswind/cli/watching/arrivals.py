"""Arrivals: the events of a run, and what its ranks have left in the spool here, beside what is shown."""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from crosswind.client.protocol import Client
from crosswind.data.schema.answers.events import Event, EventFilter
from crosswind.data.schema.errors import ProjectError

TAKE_SECONDS = 2.0  # between two looks into the spool


class Arrivals:
    """The events of a run, those of before first, read by a thread."""

    def __init__(self, client: Client, run_id: str) -> None:
        self._queue: queue.SimpleQueue[Event | BaseException] = queue.SimpleQueue()
        self._events = client.events(EventFilter(run_id=run_id), after=0)
        threading.Thread(target=self._read, name="events", daemon=True).start()

    def within(self, seconds: float) -> list[Event]:
        """Return what has come; wait so many seconds where nothing has. Raises: what reading raised."""
        came: list[Event] = []
        try:
            came.append(self._taken(seconds))
            while True:
                came.append(self._taken(0))
        except queue.Empty:
            return came

    def _taken(self, seconds: float) -> Event:
        item = self._queue.get(timeout=seconds) if seconds else self._queue.get_nowait()
        if isinstance(item, BaseException):
            raise item
        return item

    def _read(self) -> None:
        try:
            for event in self._events:
                self._queue.put(event)
        except Exception as error:  # noqa: BLE001 - whoever waits raises it
            self._queue.put(error)


@contextmanager
def taking(take: Callable[[], object]) -> Iterator[None]:
    """Take in what waits to be stored, now and then again and again within the context."""
    over = threading.Event()

    def take_once() -> None:
        with suppress(ProjectError, OSError):  # the next time is another try; what is shown grows old
            take()

    def work() -> None:
        while not over.wait(TAKE_SECONDS):
            take_once()

    take_once()
    thread = threading.Thread(target=work, name="taking", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()

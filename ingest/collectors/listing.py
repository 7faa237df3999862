"""Devices that come and go: searched for from time to time, read at every sweep."""

import os
import time
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import Sample

LISTED_NS = 9_000_000_000  # with a read a second, a new device is noticed within 10 s
MAX_NAME = 200
Device = TypeVar("Device")


class Listing(Generic[Device]):
    """The devices of the last search.

    They are searched for again every few seconds, and at the next read after one showed nothing any more.
    """

    def __init__(self, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock = clock
        self._devices: list[Device] = []
        self._due_ns: int | None = None

    def samples(self, find: Callable[[], Iterable[Device]], read: Callable[[Device], Sample | None]) -> list[Sample]:
        """Return a sample of each device that shows something now. Raises: what `find` and `read` raise."""
        now_ns = self._clock()
        is_new = self._due_ns is None or now_ns >= self._due_ns
        if is_new:
            self._devices, self._due_ns = list(find()), now_ns + LISTED_NS
        shown = [(device, sample) for device in self._devices if (sample := read(device)) is not None]
        if len(shown) < len(self._devices) and not is_new:
            self._due_ns = None
        self._devices = [device for device, _ in shown]
        return [sample for _, sample in shown]


def names_in(folder: str) -> list[str]:
    """Return the names in a folder that can be stored in a table, sorted. Raises: UnavailableError."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - names alone are wanted
    except OSError as error:
        raise UnavailableError(f"{folder}: {error.strerror}") from error
    return sorted(name for name in names if len(name) <= MAX_NAME and name.isprintable())


def names_if_any(folder: str) -> list[str]:
    """Return the names in a folder that may be missing."""
    try:
        return names_in(folder)
    except UnavailableError:
        return []

"""A wire in user space: carries frames between a bridge's port and a host's device, with a delay.

Kernels without sch_netem have no other way to delay packets.
"""

import collections
import ctypes
import fcntl
import os
import select
import struct
import time
from dataclasses import dataclass
from typing import Self

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.lab.hosts import companion
from crosswind.ingest.lab.hosts.companion import Companion
from crosswind.ingest.lab.hosts.names import NAMESPACES

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 2, 0x1000  # linux/if_tun.h
CLONE_NEWNET = 0x40000000  # setns(2)
FRAME_BYTES = 1 << 16
UNDERWAY_BYTES = 64 << 20  # each way; more are lost, as in a full buffer of a switch
FRAMES_A_TURN = 64
DELAY = struct.Struct("d")  # milliseconds


@dataclass(frozen=True)
class Wire:
    """The process that carries the frames."""

    companion: Companion

    @classmethod
    def between(cls, bridge: str, port: str, namespace: str, device: str) -> Self:
        """Make a wire from a new device in one namespace to one in another. Raises: UnavailableError."""
        return cls(companion.start(carry, bridge, port, namespace, device))

    def delay(self, milliseconds: float) -> None:
        """Delay every frame from now on by this, each way. Raises: UnavailableError."""
        if self.companion.stdin.closed:
            raise UnavailableError("wire: it has been cut")
        try:
            self.companion.stdin.write(DELAY.pack(milliseconds))
            answer = self.companion.stdout.read(1)
        except OSError as error:
            raise UnavailableError(f"wire: {error.strerror}") from error
        if not answer:
            raise UnavailableError("wire: its process has ended")

    def cut(self) -> None:
        """End it; both devices vanish."""
        self.companion.kill()


# The rest of this file runs in the wire's process.


class Lane:
    """One direction: frames under way, in their order."""

    def __init__(self, source: int, sink: int) -> None:
        self._source, self._sink = source, sink
        self._frames: collections.deque[tuple[float, bytes]] = collections.deque()
        self._bytes = 0

    def take(self, delay_seconds: float) -> None:
        """Take the frames that have come."""
        due = time.monotonic() + delay_seconds
        for _ in range(FRAMES_A_TURN):
            try:
                frame = os.read(self._source, FRAME_BYTES)
            except BlockingIOError:
                return
            if self._bytes + len(frame) <= UNDERWAY_BYTES:
                self._bytes += len(frame)
                self._frames.append((due, frame))

    def give(self) -> None:
        """Deliver the frames that have been under way long enough."""
        now = time.monotonic()
        while self._frames and self._frames[0][0] <= now:
            _due, frame = self._frames.popleft()
            self._bytes -= len(frame)
            try:
                os.write(self._sink, frame)
            except OSError:  # the device is down or full: a frame is lost, as on any network
                continue

    def next_due(self) -> float:
        """Return the time at which the first frame is due; infinity for none."""
        return self._frames[0][0] if self._frames else float("inf")


def carry(bridge: str, port: str, namespace: str, device: str) -> None:
    """Carry frames until the lab releases this process or dies."""
    there, here = _tap(bridge, port), _tap(namespace, device)
    lanes = {there: Lane(there, here), here: Lane(here, there)}
    control, lab = companion.leash()
    companion.say_ready()
    delay_seconds = 0.0
    while True:
        readable = _wait([control, lab, *lanes], min(lane.next_due() for lane in lanes.values()))
        if control in readable:
            order = os.read(control, DELAY.size)
            if len(order) < DELAY.size:
                return
            delay_seconds = DELAY.unpack(order)[0] / 1000
            os.write(1, b"!")
        if lab in readable:
            return
        for source, lane in lanes.items():
            if source in readable:
                lane.take(delay_seconds)
            lane.give()


def _wait(sources: list[int], until: float) -> list[int]:
    seconds = None if until == float("inf") else max(0.0, until - time.monotonic())
    readable, _, _ = select.select(sources, [], [], seconds)
    return readable


def _tap(namespace: str, name: str) -> int:
    """Make a device there; it lasts as long as the descriptor. Source: Linux, networking/tuntap."""
    with (NAMESPACES / namespace).open("rb") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET):
            raise UnavailableError(f"{namespace}: {os.strerror(ctypes.get_errno())}")
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return tap

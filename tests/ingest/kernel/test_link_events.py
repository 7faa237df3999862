import errno
import socket
from dataclasses import dataclass, field

import pytest
from tests.ingest.namespace import in_a_namespace, output_of

from crosswind.ingest.kernel.link_events import MOST, LinkEvents


@dataclass
class Announcing:
    """Stand-in for the kernel's socket: it has so many announcements left, then nothing or an error."""

    left: int = 0
    error: OSError = field(default_factory=lambda: BlockingIOError(errno.EAGAIN, "nothing"))
    is_closed: bool = False

    def recv(self, size: int, flags: int) -> bytes:
        if self.left == 0:
            raise self.error
        self.left -= 1
        return b"\x20"

    def close(self) -> None:
        self.is_closed = True


def hearing(*sockets: Announcing) -> LinkEvents:
    waiting = list(sockets)

    def connect() -> socket.socket:
        if not waiting:
            raise PermissionError(errno.EPERM, "refused")
        return waiting.pop(0)  # type: ignore[return-value]

    return LinkEvents(connect)


def test_at_first_nobody_knows_and_then_what_was_announced_is_reported_once() -> None:
    kernel = Announcing()
    events = hearing(kernel)
    assert [events.happened(), events.happened()] == [True, False]
    kernel.left = 3
    assert [events.happened(), events.happened()] == [True, False]


@pytest.mark.parametrize("kernel", [Announcing(MOST + 1), Announcing(2, OSError(errno.ENOBUFS, "lost"))])
def test_where_announcements_were_lost_a_new_socket_is_opened_and_nobody_knows(kernel: Announcing) -> None:
    events = hearing(kernel, Announcing())
    assert events.happened()
    assert events.happened()
    assert kernel.is_closed
    assert [events.happened(), events.happened()] == [True, False]


def test_where_it_is_refused_anything_may_have_happened() -> None:
    events = hearing()
    assert [events.happened(), events.happened()] == [True, True]


@in_a_namespace
def test_a_real_link_is_announced_when_it_comes_goes_up_down_or_away() -> None:
    script = """
import subprocess, time
from crosswind.ingest.kernel.link_events import LinkEvents
events = LinkEvents()
events.happened()
changes = "add v0 type veth peer name v1; set v0 up; set v1 up; set v1 down; del v0".split("; ")
for change in changes:
    before = events.happened()
    subprocess.run(["ip", "link", *change.split()], check=True)
    print(before, events.happened())
    time.sleep(1.2)
    events.happened()
"""
    assert output_of("", script).splitlines() == ["False True"] * 5

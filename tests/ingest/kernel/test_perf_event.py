import errno
import struct

import pytest

from crosswind.ingest.kernel.perf_event import (
    DISABLED,
    EXCLUDE_KERNEL,
    HARDWARE,
    INHERIT,
    SOFTWARE,
    Counts,
    Event,
    LinuxPerf,
    Target,
    decoded,
    encoded,
    opened,
)

CYCLES, INSTRUCTIONS = Event("cycles", HARDWARE, 0), Event("instructions", HARDWARE, 1)
SWITCHES = Event("switches", SOFTWARE, 3, is_of_kernel=True)


class FakePerf:
    """A kernel that opens all events but the refused ones; its counters' ids are 100 more than their descriptors."""

    def __init__(self, refused: dict[int, int] | None = None, answer: bytes = b"") -> None:
        self.refused = refused or {}  # errno by event number
        self.answer = answer
        self.asked: list[tuple[int, int, int, int, int]] = []  # kind, number, flags, pid, leader
        self.enabled: list[int] = []
        self.closed: list[int] = []

    def open(self, attributes: bytes, target: Target, leader: int) -> int:
        kind, _, number, _, _, _, flags = struct.unpack("=IIQQQQQ", attributes[:48])
        self.asked.append((kind, number, flags, target.pid, leader))
        if number in self.refused:
            raise OSError(self.refused[number], "refused")
        return 10 + len(self.asked)

    def identity(self, fd: int) -> int:
        return fd + 100

    def enable(self, leader: int) -> None:
        self.enabled.append(leader)

    def read(self, leader: int, size: int) -> bytes:
        return self.answer

    def close(self, fd: int) -> None:
        self.closed.append(fd)


def test_the_attributes_are_those_of_the_first_published_layout() -> None:
    """Offsets as in Linux include/uapi/linux/perf_event.h: type 0, size 4, config 8, read_format 32, flags 40."""
    attributes = encoded(Event("branch_misses", HARDWARE, 5), INHERIT | EXCLUDE_KERNEL)
    assert attributes.hex(" ", 8) == (
        "0000000040000000 0500000000000000 0000000000000000 0000000000000000 "
        "0f00000000000000 2200000000000000 0000000000000000 0000000000000000"
    )


def test_a_group_reports_two_times_and_each_value_under_its_id() -> None:
    content = struct.pack("=7Q", 2, 5000, 4000, 77, 9, 2**63 + 1, 8)
    assert decoded(content, {8: "cycles", 9: "instructions"}) == Counts(
        {"instructions": 77, "cycles": 2**63 + 1}, enabled=5000, running=4000
    )


@pytest.mark.parametrize("length", [0, 24, 39, 48])
def test_a_group_that_answers_short_or_long_is_an_error(length: int) -> None:
    with pytest.raises(OSError, match="expected 40 bytes"):
        decoded(bytes(length), {8: "cycles"})


def test_the_first_counter_leads_and_all_start_together() -> None:
    kernel = FakePerf()
    group = opened(kernel, [CYCLES, INSTRUCTIONS], Target(4242), with_kernel=True)
    assert kernel.asked == [(HARDWARE, 0, INHERIT | DISABLED, 4242, -1), (HARDWARE, 1, INHERIT, 4242, 11)]
    assert kernel.enabled == [11]
    assert group.names == {111: "cycles", 112: "instructions"}


def test_what_a_core_runs_is_not_inherited() -> None:
    kernel = FakePerf()
    opened(kernel, [CYCLES], Target(-1, 3), with_kernel=True)
    assert kernel.asked == [(HARDWARE, 0, DISABLED, -1, -1)]


def test_an_event_that_the_machine_lacks_is_left_out_and_reported() -> None:
    kernel = FakePerf({0: errno.ENOENT})
    group = opened(kernel, [CYCLES, INSTRUCTIONS], Target(1), with_kernel=True)
    assert group.refusals == {"cycles": errno.ENOENT}
    assert kernel.asked[1] == (HARDWARE, 1, INHERIT | DISABLED, 1, -1)


def test_without_the_right_to_count_in_the_kernel_what_happens_there_alone_is_not_shown_as_zero() -> None:
    kernel = FakePerf()
    group = opened(kernel, [CYCLES, SWITCHES], Target(1), with_kernel=False)
    assert kernel.asked == [(HARDWARE, 0, INHERIT | EXCLUDE_KERNEL | DISABLED, 1, -1)]
    assert group.refusals == {"switches": errno.EACCES}


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EACCES, errno.ESRCH])
def test_a_group_that_cannot_be_had_leaves_no_descriptor_open(code: int) -> None:
    kernel = FakePerf({1: code})
    with pytest.raises(OSError, match="refused"):
        opened(kernel, [CYCLES, INSTRUCTIONS], Target(1), with_kernel=True)
    assert kernel.closed == [11]


def test_on_a_machine_whose_numbers_are_not_known_nothing_can_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = type("Name", (), {"machine": "vax"})()
    monkeypatch.setattr("os.uname", lambda: unknown)
    with pytest.raises(OSError, match="not implemented"):
        LinuxPerf().open(encoded(CYCLES, 0), Target(0), -1)

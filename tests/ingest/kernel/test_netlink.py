import socket
import struct
from collections.abc import Iterator

import pytest

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.ingest.kernel.netlink import Netlink, attributes

REQUEST = 38
DONE = 3


def message(content: bytes, kind: int = 36, flags: int = 2, sequence: int = 1) -> bytes:
    padding = b"\0" * (-len(content) % 4)
    return struct.pack("=IHHII", 16 + len(content), kind, flags, sequence, 4711) + content + padding


def done(number: int = 0, flags: int = 2, sequence: int = 1) -> bytes:
    return message(struct.pack("=i", number), DONE, flags, sequence)


class Kernel:
    """The other end of the socket, which has its answers ready before it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.kernel, self.ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def connect(self) -> socket.socket:
        self.asked += 1
        return self.ours.dup()


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    made = Kernel()
    with made.kernel, made.ours:
        yield made


def table_of(kernel: Kernel, *datagrams: bytes) -> list[bytes]:
    for datagram in datagrams:
        kernel.kernel.send(datagram)
    return Netlink(kernel.connect).table(REQUEST, b"body")


def test_a_question_asks_for_the_whole_table(kernel: Kernel) -> None:
    table_of(kernel, done())
    assert kernel.kernel.recv(100) == struct.pack("=IHHII", 20, REQUEST, 0x301, 1, 0) + b"body"


def test_the_answer_may_come_in_several_datagrams_of_several_messages(kernel: Kernel) -> None:
    assert table_of(kernel, message(b"one") + message(b"two"), message(b"three"), done()) == [b"one", b"two", b"three"]


def test_the_socket_is_kept_and_each_question_has_a_number(kernel: Kernel) -> None:
    netlink = Netlink(kernel.connect)
    kernel.kernel.send(message(b"one") + done())
    kernel.kernel.send(message(b"late", sequence=1) + message(b"two", sequence=2) + done(sequence=2))
    assert (netlink.table(REQUEST, b""), netlink.table(REQUEST, b"")) == ([b"one"], [b"two"])
    assert kernel.asked == 1


@pytest.mark.parametrize("first", [message(b"torn", flags=0x12) + done(), message(b"torn") + done(flags=0x12)])
def test_a_table_that_changed_while_being_read_is_read_again(kernel: Kernel, first: bytes) -> None:
    assert table_of(kernel, first, message(b"whole", sequence=2) + done(sequence=2)) == [b"whole"]


def test_a_table_that_never_rests_is_unavailable(kernel: Kernel) -> None:
    torn = [message(b"torn", flags=0x12, sequence=turn) + done(sequence=turn) for turn in (1, 2, 3)]
    with pytest.raises(UnavailableError, match="changed 3 times"):
        table_of(kernel, *torn)


@pytest.mark.parametrize("kind", [2, 3])
def test_a_refusal_is_unavailable_and_says_why(kernel: Kernel, kind: int) -> None:
    with pytest.raises(UnavailableError, match="Operation not permitted"):
        table_of(kernel, message(struct.pack("=i", -1), kind))


@pytest.mark.parametrize("length", [0, 15, 17, 2**32 - 1])
def test_a_length_that_cannot_be_is_refused(kernel: Kernel, length: int) -> None:
    with pytest.raises(MalformedError, match="bytes"):
        table_of(kernel, struct.pack("=IHHII", length, 36, 2, 1, 0))


def test_a_torn_header_is_refused(kernel: Kernel) -> None:
    with pytest.raises(MalformedError, match="5 bytes left"):
        table_of(kernel, message(b"1234") + b"torn!")


def test_a_datagram_that_does_not_fit_is_refused(kernel: Kernel) -> None:
    kernel.kernel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**20)
    with pytest.raises(MalformedError, match="262144 bytes"):
        table_of(kernel, b"\0" * 270_000)


def test_after_a_failure_a_new_socket_is_opened(kernel: Kernel) -> None:
    netlink = Netlink(kernel.connect)
    kernel.kernel.send(b"torn!")
    with pytest.raises(MalformedError):
        netlink.table(REQUEST, b"")
    kernel.kernel.send(message(b"whole", sequence=2) + done(sequence=2))
    assert netlink.table(REQUEST, b"") == [b"whole"]
    assert kernel.asked == 2


def test_a_kernel_without_an_answer_is_unavailable(kernel: Kernel) -> None:
    kernel.kernel.close()
    with pytest.raises(UnavailableError, match="netlink request 38"):
        table_of(kernel)


def test_attributes_are_separated_and_padded() -> None:
    content = b"head" + struct.pack("=HH3sx", 7, 1, b"tbf") + struct.pack("=HHI", 8, 0x8007, 9) + b"\0\0"
    assert attributes(content, 4, len(content)) == {1: (8, 11), 7: (16, 20)}


@pytest.mark.parametrize("length", [0, 3, 9, 65535])
def test_an_attribute_of_a_length_that_cannot_be_is_refused(length: int) -> None:
    with pytest.raises(MalformedError, match=f"of {length} bytes, 8 are left"):
        attributes(struct.pack("=HHI", length, 1, 0), 0, 8)

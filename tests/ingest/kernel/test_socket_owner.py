import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.needs import ROOT, needs, program

from crosswind.ingest.kernel import socket_owner
from crosswind.ingest.kernel.netlink import HEADER
from crosswind.ingest.kernel.socket_owner import _uid_in, is_own_or_root, owner_of_peer

NOBODY = 65534
as_root = needs(ROOT, "acts as another user", unless=os.geteuid() == 0)
CONNECT = "import socket, sys; held = socket.create_connection((sys.argv[1], int(sys.argv[2]))); sys.stdin.read()"


@contextmanager
def listening(host: str = "127.0.0.1") -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.bind((host, 0))
        listener.listen()
        yield listener


@contextmanager
def connected(listener: socket.socket) -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_connection(listener.getsockname()[:2]) as client, listener.accept()[0] as accepted:
        yield client, accepted


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1"])
def test_a_connection_of_our_own_has_our_uid(host: str) -> None:
    with listening(host) as listener, connected(listener) as (_, accepted):
        assert owner_of_peer(accepted) == os.geteuid()


def test_a_client_that_connects_by_ipv6_to_an_ipv4_address_has_its_uid() -> None:
    with listening() as listener, socket.socket(socket.AF_INET6) as client:
        client.connect(("::ffff:127.0.0.1", listener.getsockname()[1]))
        with listener.accept()[0] as accepted:
            assert owner_of_peer(accepted) == os.geteuid()


@as_root
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_process_of_another_user_has_that_users_uid(host: str) -> None:
    with listening(host) as listener:
        command = ["/usr/bin/python3", "-c", CONNECT, host, str(listener.getsockname()[1])]
        popen = subprocess.Popen(command, stdin=subprocess.PIPE, user="nobody", cwd="/")
        with popen as other, listener.accept()[0] as accepted:
            assert owner_of_peer(accepted) == NOBODY
            other.communicate()
            assert owner_of_peer(accepted) is None


def test_a_socket_that_its_process_closed_is_nobodys_although_the_kernel_says_root() -> None:
    with listening() as listener, connected(listener) as (client, accepted):
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        client.close()
        assert owner_of_peer(accepted) is None


def test_a_reset_connection_is_nobodys_also_where_another_has_taken_its_addresses() -> None:
    with listening() as listener, connected(listener) as (client, accepted):
        port = client.getsockname()[1]
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        with socket.socket() as second:
            second.bind(("127.0.0.1", port))
            second.connect(listener.getsockname())
            assert owner_of_peer(accepted) is None
            with listener.accept()[0] as newer:
                assert owner_of_peer(newer) == os.geteuid()


def test_a_listener_on_the_clients_port_does_not_answer_for_it() -> None:
    with listening() as listener, connected(listener) as (client, _):
        port = client.getsockname()[1]
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        with socket.socket() as stranger:
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            stranger.bind(("127.0.0.1", port))
            stranger.listen()
            assert socket_owner._owner(socket.AF_INET, ("127.0.0.1", port), listener.getsockname()) is None


@as_root
def test_a_client_in_another_network_namespace_is_nobodys() -> None:
    unshare = program("unshare", "util-linux")
    script = "import socket, sys\nfrom crosswind.ingest.kernel.socket_owner import _owner\n"
    script += "print(_owner(socket.AF_INET, ('127.0.0.1', int(sys.argv[1])), ('127.0.0.1', int(sys.argv[2]))))"
    with listening() as listener, connected(listener) as (client, _):
        ports = [str(client.getsockname()[1]), str(listener.getsockname()[1])]
        said = subprocess.run(
            [unshare, "--net", sys.executable, "-c", script, *ports], capture_output=True, text=True, check=True
        )
    assert said.stdout == "None\n"


def test_a_unix_sockets_peer_is_known_by_its_credentials() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert owner_of_peer(ours) == os.geteuid()


def test_an_address_beyond_loopback_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Elsewhere:
        family = socket.AF_INET

        def getpeername(self) -> tuple[str, int]:
            return "192.0.2.1", 4711

        def getsockname(self) -> tuple[str, int]:
            return "127.0.0.1", 80

    monkeypatch.setattr(socket_owner, "_owner", lambda *_: 0)
    assert owner_of_peer(Elsewhere()) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", [b"", b"\0" * 10, HEADER.pack(16, 2, 0, 1, 0) + b"\xfe\xff\xff\xff", b"\0" * 200])
def test_an_answer_that_names_no_socket_names_no_user(answer: bytes) -> None:
    assert _uid_in(answer, ("127.0.0.1", 1), ("127.0.0.1", 2)) is None


def test_where_a_namespace_lacks_numbers_the_number_for_those_is_nobodys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "uid_map").write_text("         0       1000          1\n")
    (tmp_path / "overflow").write_text(f"{os.geteuid()}\n")
    monkeypatch.setattr(socket_owner, "UID_MAP", tmp_path / "uid_map")
    monkeypatch.setattr(socket_owner, "OVERFLOW_UID", tmp_path / "overflow")
    socket_owner._ambiguous_uid.cache_clear()
    try:
        with listening() as listener, connected(listener) as (_, accepted):
            assert owner_of_peer(accepted) is None
    finally:
        socket_owner._ambiguous_uid.cache_clear()


def test_own_user_and_root_are_meant_and_nobody_unknown() -> None:
    assert is_own_or_root(os.geteuid())
    assert is_own_or_root(0)
    assert not is_own_or_root(None)
    assert not is_own_or_root(NOBODY)

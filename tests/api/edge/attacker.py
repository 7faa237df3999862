"""Clients that behave badly, over real sockets."""

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

STUDY_HEAD = b"POST /v1/studies HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SEGMENT_HEAD = (
    b"POST /v1/ingest/batches HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/vnd.crosswind.segment\r\n"
    b"Crosswind-Segment: 00000001767323045000-0123abcd.agent.n1.segment\r\nCrosswind-Batch: " + b"0" * 64 + b"\r\n"
)


class Answer:
    """An answer as it came."""

    def __init__(self, octets: bytes) -> None:
        head, _, self.body = octets.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(status.split()[1]) if status else 0
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def kind(self) -> str:
        """The kind of the problem."""
        assert self.headers["content-type"] == "application/problem+json"
        assert self.json["status"] == self.status
        return str(self.json["type"]).removeprefix("/problems/")


class Attacker:
    """Opens connections to a server, and keeps them until the end."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.address = (str(parts.hostname), int(parts.port or 0))
        self.connections: list[socket.socket] = []

    def send(self, octets: bytes, user: int | None = None) -> socket.socket:
        """Open a connection, as this user if one is named, which root alone may, and send this over it."""
        own = os.geteuid()
        os.seteuid(own if user is None else user)
        try:
            connection = socket.create_connection(self.address, timeout=30)
        finally:
            os.seteuid(own)
        self.connections.append(connection)
        connection.sendall(octets)
        return connection

    def ask(self, octets: bytes) -> Answer:
        """Return the answer to what is sent over a connection of its own, up to its end."""
        return read(self.send(octets))

    def get(self, path: str) -> tuple[int, float]:
        """Return the status of the answer to a GET, and the seconds that it took."""
        began = time.perf_counter()
        answer = self.ask(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        return answer.status, time.perf_counter() - began

    def close(self) -> None:
        """Leave."""
        for connection in self.connections:
            connection.close()
        self.connections.clear()


@contextmanager
def attacking(url: str) -> Iterator[Attacker]:
    """Yield an attacker, who leaves at the end."""
    attacker = Attacker(url)
    try:
        yield attacker
    finally:
        attacker.close()


def read(connection: socket.socket) -> Answer:
    """Return the answer that comes over a connection, up to its end."""
    octets = b""
    while chunk := connection.recv(1 << 16):
        octets += chunk
    return Answer(octets)


def is_closed(connection: socket.socket, seconds: float = 0.5) -> bool:
    """Return whether the other side has closed a connection, without an answer."""
    connection.settimeout(seconds)
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def is_cut_off(connection: socket.socket, octets: bytes, *, pause_seconds: float = 0.0, within: float = 8.0) -> bool:
    """Return whether the other side ends a connection over which the same is sent again and again."""
    began = time.monotonic()
    while time.monotonic() - began < within:
        try:
            connection.sendall(octets)
        except OSError:
            return True
        time.sleep(pause_seconds)
    return False


def resident_mb(pid: int, what: str = "VmRSS") -> float:
    """Return the memory of a process; `VmHWM` is the most that it ever had."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(what)]
    return int(line.split()[1]) / 1024


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / 100

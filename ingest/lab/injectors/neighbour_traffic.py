"""Foreign transfers on the rank's link."""

import socket
import threading
import time
from typing import ClassVar

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.lab.hosts import companion
from crosswind.ingest.lab.hosts.companion import Companion
from crosswind.ingest.lab.hosts.cores import all_but, stay_on
from crosswind.ingest.lab.injectors.injector import Target

PORT = 5201  # of iperf3, which people recognise
CHUNK_BYTES = 1 << 18


class NeighbourTraffic:
    """TCP streams between the rank's host and its neighbours in turn, each as fast as it can in both directions."""

    kind: ClassVar[str] = "neighbour_traffic"
    unit: ClassVar[str] = "streams"
    limits: ClassVar[tuple[float, float]] = (1.0, 64.0)

    def __init__(self) -> None:
        self._companions: list[Companion] = []

    def start(self, target: Target, strength: float) -> int:
        """Open the streams, and wait until bytes have arrived on each. Raises: UnavailableError."""
        if not target.neighbours:
            raise UnavailableError(f"rank {target.rank}: has no neighbours for traffic with its host")
        if not self._companions:
            try:
                self._open(target, int(strength))
            except BaseException:
                self.stop()
                raise
        return time.time_ns()

    def _open(self, target: Target, streams: int) -> None:
        cores, port = all_but(target.core), PORT + target.rank  # ranks of one host may be disturbed at once
        self._companions.append(companion.start(serve, port, streams, cores, within=target.host.command))
        for stream in range(streams):
            neighbour = target.neighbours[stream % len(target.neighbours)]
            self._companions.append(companion.start(call, target.host.address, port, cores, within=neighbour.command))

    def stop(self) -> int:
        """End the streams."""
        companions, self._companions = self._companions, []
        companion.kill_all(companions)
        return time.time_ns()


def serve(port: int, streams: int, cores: list[int]) -> None:
    """Accept as many streams and keep them busy."""
    with socket.create_server(("", port), backlog=streams) as listener:
        _begin(cores)
        companion.say_ready()
        for _ in range(streams):
            connection, _address = listener.accept()
            threading.Thread(target=_send, args=[connection]).start()
            threading.Thread(target=_receive, args=[connection]).start()


def call(address: str, port: int, cores: list[int]) -> None:
    """Open one stream and keep it busy."""
    _begin(cores)
    connection = socket.socket()
    connection.connect((address, port))  # create_connection() would import a codec, which the user nobody may not read
    threading.Thread(target=_send, args=[connection]).start()
    connection.recv(1)
    companion.say_ready()
    _receive(connection)


def _begin(cores: list[int]) -> None:
    companion.become_nobody()
    companion.end_with_lab()
    stay_on(cores)


def _send(connection: socket.socket) -> None:
    chunk = bytes(CHUNK_BYTES)
    while True:
        connection.sendall(chunk)


def _receive(connection: socket.socket) -> None:
    room = bytearray(CHUNK_BYTES)
    while connection.recv_into(room):
        pass

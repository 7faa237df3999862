"""An answer that a dying server did not send to its end is no answer."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.ship.client import Answer, Client

WHOLE = b'{"state": "open"}'


@contextmanager
def answering(body: bytes) -> Iterator[str]:
    """A server that says how long WHOLE is, sends this body to one connection, and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(WHOLE)}\r\n\r\n"
                connection.sendall(head.encode() + body)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def asked(url: str, **limits: int) -> Answer:
    with closing(Client(url, None, **limits)) as client:
        return client.get("/v1/studies/ddp")


@pytest.mark.parametrize("kept", [0, 1, len(WHOLE) - 1])
def test_an_answer_that_breaks_off_is_none(kept: int) -> None:
    with answering(WHOLE[:kept]) as url, pytest.raises(UnavailableError, match="does not answer"):
        asked(url)


def test_a_whole_answer_is_one() -> None:
    with answering(WHOLE) as url:
        assert asked(url).said == {"state": "open"}


def test_of_an_answer_longer_than_wanted_the_beginning_is_looked_at() -> None:
    with answering(WHOLE) as url:
        assert asked(url, answer_bytes=5).status == 200

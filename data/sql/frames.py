"""Frames between the server and the process of a statement: a kind of one byte, a length of eight, and the content."""

import json
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO

HEAD = struct.Struct("<cQ")
QUESTION, PLAN, TABLE, BATCH, RUN, RESULT, FAILED = b"Q", b"P", b"T", b"B", b"R", b"A", b"F"
NAME = b"crosswind.table"  # in the metadata of a schema: the table that it is of


class EndedError(Exception):
    """The other side has closed its end."""


def send(pipe: BinaryIO, kind: bytes, content: "bytes | memoryview") -> None:
    """Write one frame. Raises: OSError."""
    pipe.write(HEAD.pack(kind, len(content)))
    pipe.write(content)
    pipe.flush()


def send_json(pipe: BinaryIO, kind: bytes, value: Mapping[str, Any]) -> None:
    """Write a frame that holds a JSON object. Raises: OSError."""
    send(pipe, kind, json.dumps(value).encode())


def receive(pipe: BinaryIO, limit_bytes: int) -> tuple[bytes, bytes]:
    """Return kind and content of the next frame. Raises: EndedError, also for a frame beyond the limit; OSError."""
    kind, length = HEAD.unpack(_exactly(pipe, HEAD.size))
    if length > limit_bytes:
        raise EndedError
    return kind, _exactly(pipe, length)


def _exactly(pipe: BinaryIO, count: int) -> bytes:
    content = pipe.read(count)
    if content is None or len(content) < count:
        raise EndedError
    return content


def parsed(content: bytes) -> Mapping[str, Any]:
    """Return the JSON object of a frame. Raises: EndedError, as what writes none is not to be spoken with."""
    try:
        value = json.loads(content)
    except ValueError as error:
        raise EndedError from error
    if not isinstance(value, dict):
        raise EndedError
    return value

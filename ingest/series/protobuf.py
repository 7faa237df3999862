"""Protocol Buffers' wire format in telemetry and trackers' files: a message's fields, one after another.

Source: https://protobuf.dev/programming-guides/encoding/
"""

import struct
from collections.abc import Iterator

from crosswind.data.schema.errors import MalformedError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
SIZES = {FIXED64: 8, FIXED32: 4}
MOST_SHIFT = 63
DOUBLE = struct.Struct("<d")
Value = int | bytes


def varint(data: bytes, place: int) -> tuple[int, int]:
    """Return the number at a place, and the place after it. Raises: MalformedError."""
    value = shift = 0
    try:
        if (octet := data[place]) < 128:  # as nearly all are
            return octet, place + 1
        while (octet := data[place]) > 127:
            value |= (octet & 127) << shift
            place, shift = place + 1, shift + 7
            if shift > MOST_SHIFT:
                raise MalformedError("protobuf: a number of more than 64 bits")
    except IndexError as error:
        raise MalformedError("protobuf: cut off within a number") from error
    return (value | octet << shift) & 0xFFFF_FFFF_FFFF_FFFF, place + 1


def fields(data: bytes) -> Iterator[tuple[int, int, Value]]:
    """Yield number, wire type and value of each field; of all but varints, the octets. Raises: MalformedError."""
    place, size = 0, len(data)
    while place < size:
        key = data[place]
        if key < 128:  # as nearly all are; a call costs more than the rest
            place += 1
        else:
            key, place = varint(data, place)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            value, place = varint(data, place)
            yield number, wire, value
            continue
        length, place = varint(data, place) if wire == BYTES else (SIZES.get(wire, size), place)
        if wire not in (BYTES, FIXED64, FIXED32) or place + length > size:
            raise MalformedError(f"protobuf: field {number} is cut off, or of wire type {wire}, which is not in use")
        yield number, wire, data[place : place + length]
        place += length


def octets_of(value: Value) -> bytes:
    """Return the value of a field that must hold octets. Raises: MalformedError."""
    if isinstance(value, bytes):
        return value
    raise MalformedError("protobuf: a number where a text or message was expected")


def text_of(value: Value) -> str:
    """Return the value of a field that must hold a text. Raises: MalformedError."""
    try:
        return octets_of(value).decode()
    except UnicodeDecodeError as error:
        raise MalformedError(f"protobuf: {octets_of(value)[:40]!r}: expected UTF-8") from error


def double_of(value: Value) -> float:
    """Return the value of a field that must hold a double. Raises: MalformedError."""
    octets = octets_of(value)
    if len(octets) != DOUBLE.size:
        raise MalformedError("protobuf: expected a double")
    number: float = DOUBLE.unpack(octets)[0]
    return number


def signed(value: Value) -> int:
    """Return a varint as a signed number of 64 bits. Raises: MalformedError."""
    if not isinstance(value, int):
        raise MalformedError("protobuf: expected a number")
    return value - (1 << 64) if value >> 63 else value

"""Protocol Buffers on the wire: fields by number, without the classes that a compiler would make of them."""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from crosswind.data.errors import MalformedError

VARINT_BYTES = 10
SIGN = 1 << 63


@dataclass(frozen=True)
class Message:
    """The fields of one message; of a number told several times, `each` has all and the others the last.

    Source: protobuf.dev/programming-guides/encoding.
    """

    fields: Mapping[int, list[int | bytes]]

    @classmethod
    def parsed(cls, data: bytes) -> Self:
        """The message in these bytes. Raises: MalformedError."""
        fields: dict[int, list[int | bytes]] = {}
        for number, value in _fields(data):
            fields.setdefault(number, []).append(value)
        return cls(fields)

    def each(self, number: int) -> list[bytes]:
        """All values of a repeated field of bytes, texts or messages. Raises: MalformedError."""
        values = [value for value in self.fields.get(number, []) if isinstance(value, bytes)]
        if len(values) < len(self.fields.get(number, [])):
            raise MalformedError(f"field {number} is a number; expected bytes")
        return values

    def data(self, number: int) -> bytes | None:
        """Bytes, or None where the field is not there. Raises: MalformedError."""
        values = self.fields.get(number)
        if values is None:
            return None
        value = values[-1]
        if not isinstance(value, bytes):
            raise MalformedError(f"field {number} is a number; expected bytes")
        return value

    def message(self, number: int) -> "Message | None":
        """A message in the message, or None. Raises: MalformedError."""
        data = self.data(number)
        return None if data is None else Message.parsed(data)

    def text(self, number: int) -> str:
        """A text, empty where the field is not there. Raises: MalformedError."""
        try:
            return (self.data(number) or b"").decode()
        except UnicodeDecodeError as error:
            raise MalformedError(f"field {number} is no UTF-8: {error.reason} at byte {error.start + 1}") from error

    def whole(self, number: int) -> int | None:
        """A signed whole number of at most 64 bits, or None. Raises: MalformedError."""
        value = next(reversed(self.fields.get(number, [])), None)
        if isinstance(value, bytes):
            raise MalformedError(f"field {number} is no whole number")
        return value if value is None or value < SIGN else value - 2 * SIGN

    def real(self, number: int) -> float | None:
        """A float or double, or None. Raises: MalformedError."""
        data = self.data(number)
        if data is None:
            return None
        if len(data) not in (4, 8):
            raise MalformedError(f"field {number} has {len(data)} bytes; expected a float or double")
        value: float = struct.unpack("<f" if len(data) == 4 else "<d", data)[0]
        return value


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    place, end = 0, len(data)
    while place < end:
        key = data[place]
        if key < 128:  # as nearly all are
            place += 1
        else:
            key, place = _varint(data, place)
        match key & 7:
            case 0:
                value, place = _varint(data, place)
                yield key >> 3, value
                continue
            case 1:
                length = 8
            case 5:
                length = 4
            case 2:
                length, place = _varint(data, place)
            case other:
                raise MalformedError(f"wire type {other} at byte {place}; expected 0, 1, 2 or 5")
        if place + length > end:
            raise MalformedError(f"field {key >> 3} wants {length} bytes at {place} of {end}")
        yield key >> 3, data[place : place + length]
        place += length


def _varint(data: bytes, place: int) -> tuple[int, int]:
    if place < len(data) and data[place] < 128:
        return data[place], place + 1
    value = 0
    for index, byte in enumerate(data[place : place + VARINT_BYTES]):
        value |= (byte & 127) << (7 * index)
        if byte < 128:
            return value & (2 * SIGN - 1), place + index + 1
    raise MalformedError(f"a number at byte {place} is cut short, or longer than {VARINT_BYTES} bytes")

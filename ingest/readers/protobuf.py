"""Protocol Buffers messages as fields by number, without compiled classes."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.series.protobuf import fields, signed


@dataclass(frozen=True)
class Message:
    """The fields of one message; of a repeated field, `repeated` returns all values and the others the last."""

    fields: Mapping[int, list[int | bytes]]

    @classmethod
    def parsed(cls, data: bytes) -> Self:
        """Parse the message in these bytes. Raises: MalformedError."""
        by_number: dict[int, list[int | bytes]] = {}
        for number, _wire, value in fields(data):
            by_number.setdefault(number, []).append(value)
        return cls(by_number)

    def repeated(self, number: int) -> list[bytes]:
        """Return all values of a repeated field of bytes, texts or messages. Raises: MalformedError."""
        values = [value for value in self.fields.get(number, []) if isinstance(value, bytes)]
        if len(values) < len(self.fields.get(number, [])):
            raise MalformedError(f"field {number} is a number; expected bytes")
        return values

    def data(self, number: int) -> bytes | None:
        """Return bytes, or None without the field. Raises: MalformedError."""
        values = self.fields.get(number)
        if values is None:
            return None
        value = values[-1]
        if not isinstance(value, bytes):
            raise MalformedError(f"field {number} is a number; expected bytes")
        return value

    def message(self, number: int) -> "Message | None":
        """Return a message in the message, or None. Raises: MalformedError."""
        data = self.data(number)
        return None if data is None else Message.parsed(data)

    def text(self, number: int) -> str:
        """Return a text, empty without the field. Raises: MalformedError."""
        try:
            return (self.data(number) or b"").decode()
        except UnicodeDecodeError as error:
            raise MalformedError(f"field {number} is no UTF-8: {error.reason} at byte {error.start + 1}") from error

    def whole(self, number: int) -> int | None:
        """Return a signed whole number of at most 64 bits, or None. Raises: MalformedError."""
        value = next(reversed(self.fields.get(number, [])), None)
        if isinstance(value, bytes):
            raise MalformedError(f"field {number} is no whole number")
        return None if value is None else signed(value)

    def real(self, number: int) -> float | None:
        """Return a float or double, or None. Raises: MalformedError."""
        data = self.data(number)
        if data is None:
            return None
        if len(data) not in (4, 8):
            raise MalformedError(f"field {number} has {len(data)} bytes; expected a float or double")
        value: float = struct.unpack("<f" if len(data) == 4 else "<d", data)[0]
        return value

"""TensorFlow's record files: length, its checksum, data, their checksum."""

import struct
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.binary import Bytes

RECORD_LIMIT = 1 << 20  # bytes; scalars are far smaller, only images, graphs and so on are larger
HEADER = struct.Struct("<QI")
CASTAGNOLI = 0x82F63B78  # reversed
MASK = 0xA282EAD8
BLOCK = 256  # bytes: of images, many blocks are processed at once, byte by byte


def records(stream: Bytes, report: Report) -> Iterator[tuple[int, bytes]]:
    """Yield numbers from 1 and data of the records that are whole and not large; the report has the others.

    Source: tensorflow.org/tutorials/load_data/tfrecord, "TFRecords format details". Raises: as `Bytes.take`.
    """
    number, large = 0, 0
    while header := stream.take(HEADER.size):
        number += 1
        length = _length(header)
        if length is None:
            report.skip(number, "", f"record {number} has no valid header: nothing after it can be read")
            break
        if length > RECORD_LIMIT:
            large += 1
            is_whole = stream.skip(length + 4) == length + 4
        else:
            data = stream.take(length + 4)
            is_whole = len(data) == length + 4
            if is_whole and masked(data[:-4]) == int.from_bytes(data[-4:], "little"):
                yield number, data[:-4]
            elif is_whole:
                report.skip(number, "", f"record {number} does not have its checksum")
        if not is_whole:
            report.skip(number, "", f"record {number} is cut short: its file may still be written")
    if large:
        report.notes.append(f"{large} records of more than {RECORD_LIMIT} bytes left out: no scalars")


def is_record_file(head: bytes) -> bool:
    """Return whether a file's beginning has a whole header."""
    return _length(head[: HEADER.size]) is not None


def masked(data: bytes) -> int:
    """Return the checksum as stored: rotated, so that it is not weak for data with checksums in it."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + MASK) & 0xFFFFFFFF


def crc32c(data: bytes) -> int:
    """Return the CRC-32 of Castagnoli's polynomial. Source: RFC 3720, section 12.1."""
    crc, table = 0xFFFFFFFF, _TABLE
    before = len(data) % BLOCK
    for byte in data[:before]:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    if len(data) > before:
        blocks = np.frombuffer(data, np.uint8, offset=before).reshape(-1, BLOCK)
        crc = _joined(crc, _remainders(np.zeros(len(blocks), np.uint32), blocks))
    return crc ^ 0xFFFFFFFF


def _remainders(states: NDArray[np.uint32], blocks: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Return the states after the bytes of their blocks."""
    table = np.array(_TABLE, np.uint32)
    for column in np.ascontiguousarray(blocks.T):
        states = table[(states ^ column) & 255] ^ states >> np.uint32(8)
    return states


def _joined(crc: int, remainders: NDArray[np.uint32]) -> int:
    """Return the state after all blocks, from the remainders of each."""
    first, second, third, fourth = _moved()
    for remainder in remainders.tolist():
        crc = first[crc & 255] ^ second[crc >> 8 & 255] ^ third[crc >> 16 & 255] ^ fourth[crc >> 24] ^ remainder
    return crc


@cache
def _moved() -> list[list[int]]:
    """Return the table of states after a block of zeros, for each value of each byte of a state."""
    states = np.concatenate([np.arange(256, dtype=np.uint32) << np.uint32(8 * place) for place in range(4)])
    moved = _remainders(states, np.zeros((len(states), BLOCK), np.uint8))
    return [row.tolist() for row in moved.reshape(4, 256)]


def _entry(value: int) -> int:
    for _ in range(8):
        value = value >> 1 ^ (CASTAGNOLI if value & 1 else 0)
    return value


_TABLE = tuple(map(_entry, range(256)))


def _length(header: bytes) -> int | None:
    """Return the length in a header, None when it is not valid."""
    if len(header) < HEADER.size:
        return None
    length, checksum = HEADER.unpack(header)
    return int(length) if masked(header[:8]) == checksum else None

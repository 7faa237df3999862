"""Delays that a training program imposes on itself: a small file in shared memory, read in every step.

Reading one takes a fifth of a microsecond: no system call, no lock. A float64 at a multiple of eight bytes is written
in one piece.
"""

import mmap
import struct
from pathlib import Path
from types import TracebackType
from typing import Self

from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError

KNOBS = ("slow_input_ms", "slow_rank_ms", "late_checkpoint_ms")
VALUE = struct.Struct("d")
RANK_BYTES = len(KNOBS) * VALUE.size
PLACES = {knob: index * VALUE.size for index, knob in enumerate(KNOBS)}


class Conditions:
    """Milliseconds per rank and knob; all who have attached the file see a change at once."""

    def __init__(self, path: Path) -> None:
        """Raises: UnavailableError, MalformedError."""
        try:
            with path.open("r+b") as file:
                self._memory = mmap.mmap(file.fileno(), 0)
        except OSError as error:
            raise UnavailableError(f"{path}: {error.strerror}") from error
        except ValueError as error:
            raise MalformedError(f"{path}: empty, expected {RANK_BYTES} bytes a rank") from error
        self.path = path
        self.ranks, rest = divmod(len(self._memory), RANK_BYTES)
        if rest:
            raise MalformedError(f"{path}: {len(self._memory)} bytes, expected a multiple of {RANK_BYTES}")

    @classmethod
    def create(cls, path: Path, ranks: int) -> Self:
        """Create a file in which nothing is disturbed. Raises: InvalidInputError, UnavailableError."""
        if ranks < 1:
            raise InvalidInputError(f"ranks {ranks}: expected 1 or more")
        try:
            path.write_bytes(bytes(ranks * RANK_BYTES))
        except OSError as error:
            raise UnavailableError(f"{path}: {error.strerror}") from error
        return cls(path)

    @classmethod
    def attach(cls, path: Path) -> Self:
        """Attach a file that another process has created. Raises: UnavailableError, MalformedError."""
        return cls(path)

    def set(self, rank: int, knob: str, value: float) -> None:
        """Set a delay of a rank from now on. Raises: InvalidInputError."""
        if not (0 <= rank < self.ranks and knob in PLACES and 0 <= value < float("inf")):
            raise InvalidInputError(
                f"rank {rank}, knob {knob!r}, value {value}: expected a rank below {self.ranks}, "
                f"one of {', '.join(KNOBS)} and milliseconds from 0 on"
            )
        VALUE.pack_into(self._memory, rank * RANK_BYTES + PLACES[knob], value)

    def get(self, rank: int, knob: str) -> float:
        """Return the present delay of this rank in milliseconds, 0 for none. Raises: KeyError, struct.error."""
        value: float = VALUE.unpack_from(self._memory, rank * RANK_BYTES + PLACES[knob])[0]
        return value

    def close(self) -> None:
        """Detach the file; it stays."""
        self._memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

"""Entries of traceEvents as torch.profiler, Perfetto's and Chrome's tools write them, and their times."""

import re
from collections.abc import Sequence
from decimal import Decimal, DecimalException
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from crosswind.data.traces.trace import NONE, Flags, Integers

MICROSECOND_NS = 1000
EXACT_BELOW = 2**43  # microseconds: up to here a double holds whole nanoseconds
LATEST_US = 9.0e15  # microseconds that fit 64 bits as nanoseconds: the year 2255
FINE = re.compile(rb'"ts"\s*:\s*"?(\d{13,})\.\d*[1-9]')


class Arguments(msgspec.Struct, gc=False):
    """Arguments of an event, of any type, as producers differ."""

    correlation: Any = NONE
    external: Any = msgspec.field(default=NONE, name="External id")
    stream: Any = None
    device: Any = NONE
    bytes: Any = NONE
    flops: Any = None
    collective: Any = msgspec.field(default=None, name="Collective name")
    elements_in: Any = msgspec.field(default=NONE, name="In msg nelems")
    elements_out: Any = msgspec.field(default=NONE, name="Out msg nelems")
    dtype: Any = None
    group_size: Any = msgspec.field(default=0, name="Group size")
    group: Any = msgspec.field(default=None, name="Process Group Name")
    ranks: Any = msgspec.field(default=None, name="Process Group Ranks")
    sequence: Any = msgspec.field(default=NONE, name="Seq")
    source: Any = msgspec.field(default=NONE, name="Src Rank")  # of a receive, and of this rank itself otherwise
    destination: Any = msgspec.field(default=NONE, name="Dst Rank")  # of a send
    communicator: Any = msgspec.field(default=None, name="Comms Id")
    name: Any = None  # of a thread or process


class Event(msgspec.Struct, gc=False):
    """An entry of traceEvents."""

    ph: str
    name: str = ""
    cat: str = ""
    pid: int | str | None = None
    tid: int | str | None = None
    ts: float = 0.0
    dur: float = 0.0
    args: Arguments | None = None


class ExactEvent(msgspec.Struct, gc=False):
    """An entry whose times a double does not hold, or are texts, or whose other members are of odd types."""

    ph: str
    name: Any = ""
    cat: Any = ""
    pid: Any = None
    tid: Any = None
    ts: msgspec.Raw = msgspec.Raw(b"0")
    dur: msgspec.Raw = msgspec.Raw(b"0")
    args: Arguments | None = None

    def __post_init__(self) -> None:
        """Make texts of names, and what can be hashed of ids."""
        self.name, self.cat = str(self.name or "")[:1000], str(self.cat or "")[:1000]
        self.pid, self.tid = (one if isinstance(one, int | str) else str(one) for one in (self.pid, self.tid))


NO_ARGUMENTS = Arguments()


def needs_exact(head: bytes) -> bool:
    """Return whether a trace that begins so has times that doubles do not hold."""
    return any(int(match.group(1)) >= EXACT_BELOW for match in FINE.finditer(head))


def nanoseconds(microseconds: Sequence[float | msgspec.Raw]) -> tuple[Integers, Flags]:
    """Return times in whole nanoseconds, and which of them are times that fit; the others are 0."""
    if len(microseconds) and isinstance(microseconds[0], msgspec.Raw):  # then all are
        return _exact(microseconds)
    times = np.array(microseconds, np.float64)
    is_good = np.abs(times) < LATEST_US
    if not is_good.all():
        times = np.where(is_good, times, 0.0)
    units = np.floor(times)  # the parts before and after the point apart, as their product is not exact
    fractions = np.rint((times - units) * MICROSECOND_NS)
    return np.asarray(units.astype(np.int64) * MICROSECOND_NS + fractions.astype(np.int64)), is_good


def _exact(raws: Sequence[float | msgspec.Raw]) -> tuple[Integers, Flags]:
    values = [_one_exact(bytes(raw).strip(b'" ')) for raw in raws if isinstance(raw, msgspec.Raw)]
    is_good = np.array([value is not None for value in values], bool)
    return np.array([value or 0 for value in values], np.int64), is_good


def _one_exact(text: bytes) -> int | None:
    units, _, fraction = text.partition(b".")
    if units.isdigit() and len(units) < 16 and len(fraction) < 4 and (not fraction or fraction.isdigit()):
        return int(units) * MICROSECOND_NS + int(fraction.ljust(3, b"0"))
    try:
        value = Decimal(text.decode())
        return round(value * MICROSECOND_NS) if abs(value) < LATEST_US else None
    except (DecimalException, UnicodeDecodeError):
        return None


def integers(values: list[Any]) -> NDArray[np.int64]:
    """Return whole numbers; NONE for anything else."""
    try:
        array = np.array(values)
    except (ValueError, OverflowError):
        array = np.empty(0, object)
    if array.dtype == np.int64:
        return array
    return np.array([whole(value) for value in values], np.int64)


def whole(value: object) -> int:
    """Return a whole number from 0, also one written as text; NONE for anything else."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 19:
        return int(value)
    is_number = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63
    return value if is_number else NONE  # type: ignore[return-value]

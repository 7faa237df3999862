"""Metric sets: wide tables of one source each, with the unit, width and meaning of every column.

Raw integers are stored; `scale` turns them into the base unit that the column's name ends in, at query time.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import ClassVar, Protocol, Self

from crosswind.data.schema.errors import InvalidInputError, MalformedError

Scalar = int | float | str | bool | None
MAX_COLUMNS = 1000  # of a set: every query names them all
MAX_SCALE = 1e30


class Kind(StrEnum):
    """The kinds of columns: a key of the row, a counter, a gauge, a fact, or an epoch.

    Counters were reset whenever an epoch differs from that of the row before: after a boot, or a driver's reload.
    """

    KEY = "key"
    COUNTER = "counter"
    GAUGE = "gauge"
    FACT = "fact"
    EPOCH = "epoch"


class OnFull(StrEnum):
    """The behaviour of a counter at the end of its range, and so the meaning of its fall.

    It starts again from 0, stays at its end, or resets at any time. One that is clamped never gets there, but is
    corrected downwards now and then: that is no growth, and no new beginning.
    """

    WRAP = "wrap"
    SATURATE = "saturate"
    RESET = "reset"
    CLAMP = "clamp"


@dataclass(frozen=True)
class Column:
    """One column of a metric set; value in base unit = raw value x scale.

    A counter's range is 2 ** width_bits, or what the column `range_from` of the same row says, if anything, in the same
    raw unit.
    `max_rate` is what it never grows faster than, in base units a second; 0 when nobody knows. It limits how long a gap
    may be until a counter that wraps could have done so twice.
    """

    name: str
    description: str
    kind: Kind = Kind.GAUGE
    dtype: str = "int64"  # int64, uint64, float64, string or bool
    unit: str = ""
    scale: float = 1.0
    width_bits: int = 64
    on_full: OnFull = OnFull.WRAP
    range_from: str = ""
    max_rate: float = 0.0

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise InvalidInputError(f"column {self.name!r:.80}: expected lower-case letters, digits and underscores")
        if self.dtype not in DTYPES:
            raise InvalidInputError(f"column {self.name}: dtype {self.dtype!r:.80} is not one of {', '.join(DTYPES)}")
        if isinstance(self.scale, bool) or not 0 < abs(self.scale) < MAX_SCALE:
            raise InvalidInputError(f"column {self.name}: scale {self.scale!r:.80}, expected a finite number, not 0")
        if self.scale != 1.0 and self.dtype not in NUMERIC:
            raise InvalidInputError(f"column {self.name}: scale {self.scale!r:.80} of a {self.dtype}, expected 1.0")
        _check_range(self)


def _check_range(column: Column) -> None:
    if not 1 <= column.width_bits <= 64:
        raise InvalidInputError(f"column {column.name}: width_bits {column.width_bits!s:.80}, expected 1 to 64")
    if isinstance(column.max_rate, bool) or not 0 <= column.max_rate < MAX_SCALE:
        raise InvalidInputError(f"column {column.name}: max_rate {column.max_rate!r:.80}, expected 0 or more")
    if column.kind is Kind.COUNTER and column.scale < 0:
        raise InvalidInputError(f"column {column.name}: scale {column.scale!r:.80} of a counter, expected more than 0")


DTYPES: Mapping[str, tuple[type, ...]] = {
    "int64": (int,),
    "uint64": (int,),
    "float64": (float, int),
    "string": (str,),
    "bool": (bool,),
}


NUMERIC = ("int64", "uint64", "float64")


def is_name(text: object) -> bool:
    """Return whether this is a text that can safely become a column, a table and a folder."""
    return isinstance(text, str) and text.isascii() and text.isidentifier() and text == text.lower() and len(text) <= 64


@dataclass(frozen=True)
class MetricSet:
    """A wide table: its name, its version and its columns."""

    name: str
    description: str
    columns: tuple[Column, ...]
    version: int = 1

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise InvalidInputError(f"metric set {self.name!r:.80}: expected a name of a-z, 0-9 and _")
        if len(self.columns) > MAX_COLUMNS:
            raise InvalidInputError(f"metric set {self.name}: {len(self.columns)} columns, at most {MAX_COLUMNS} go")
        names = [column.name for column in self.columns]
        if len(names) != len(set(names)):
            raise InvalidInputError(f"metric set {self.name}: a column stands twice in {names!s:.300}")

    def __hash__(self) -> int:
        return hash((self.name, self.version))  # every sweep looks sets up; hashing all their columns would cost more

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise InvalidInputError(f"metric set {self.name} has no column {name!r}")

    def convert(self, sample: "Sample") -> dict[str, Scalar]:
        """The sample's values in base units; missing stays missing."""
        return {name: _scaled(self[name], value) for name, value in sample.values.items()}

    def as_json(self) -> dict[str, object]:
        """The set as plain JSON values, as it stands in front of a spool segment."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Self:
        """The set that `as_json` wrote.

        Raises: MalformedError when a field is missing or of another type.
        """
        try:
            columns = tuple(_column_from_json(column) for column in value["columns"])  # type: ignore[attr-defined]
            return cls(str(value["name"]), str(value["description"]), columns, int(str(value["version"])))
        except (KeyError, TypeError, ValueError, InvalidInputError) as error:
            raise MalformedError(f"metric set in segment: {error!s:.400}") from error


def _column_from_json(value: Mapping[str, object]) -> Column:
    kind, on_full = Kind(str(value["kind"])), OnFull(str(value["on_full"]))
    return Column(**{**value, "kind": kind, "on_full": on_full})  # type: ignore[arg-type]


def _scaled(column: Column, value: Scalar) -> Scalar:
    if value is None or isinstance(value, str | bool) or column.scale == 1.0:
        return value
    return value * column.scale


@dataclass(frozen=True, slots=True)
class Sample:
    """Raw values that one device showed at one instant, by column name."""

    device: str
    values: Mapping[str, Scalar]


class Collector(Protocol):
    """Turns one source on this node into rows of its metric set."""

    metric_set: ClassVar[MetricSet]

    def available(self) -> bool:
        """Return whether the source is here; cheap, never raises."""
        ...

    def read(self) -> Iterator[Sample]:
        """One sample a device. Raises: UnavailableError, MalformedError."""
        ...


# The loop adds these in front of every collector's columns.
NODE_KEYS = (
    Column("ts_ns", "time of the sweep, UTC", Kind.KEY, unit="ns"),
    Column("node", "host name", Kind.KEY, "string"),
    Column("device", "part of the node that the row is about", Kind.KEY, "string"),
    Column("boot_id", "epoch of the node's counters", Kind.EPOCH, "string"),
    Column("mono_ns", "the node's clock since boot, which nobody sets: for durations", Kind.FACT, unit="ns"),
)


def with_node_keys(metric_set: MetricSet) -> MetricSet:
    """The set as it stands in the spool and the lake: a collector's own columns behind the keys of the row."""
    return replace(metric_set, columns=NODE_KEYS + metric_set.columns)

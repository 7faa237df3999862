"""The names of columns outside, and the labels that distinguish their rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from crosswind.data.schema.metric import Scalar

Labels = tuple[tuple[str, str], ...]


class Row(NamedTuple):
    """The device of a row, and what else it says about what it is."""

    device: str
    facts: Mapping[str, Scalar]


LabelsOf = Callable[[Row], Labels | None]


def of_device(row: Row) -> Labels | None:
    """The device by its own name."""
    return (("device", row.device),)


def of_node(row: Row) -> Labels | None:  # noqa: ARG001 - a node has one of these
    """No label at all."""
    return ()


@dataclass(frozen=True, slots=True)
class Name:
    """A name in use for a column.

    `of` labels a row, or says None of one that has no place under this name. `family` may hold `{part}`, which `part`
    takes from the device. `is_raw` asks for the number as the kernel gave it, without its scale. `help` stands for the
    column's description where several columns share the name.
    """

    family: str
    of: LabelsOf = of_device
    labels: Labels = ()
    kind: str = ""  # counter, gauge or untyped; what the column is, when empty
    is_raw: bool = False
    part: Callable[[str], str | None] | None = None
    help: str = ""

"""Names of columns for Prometheus, and the labels that distinguish their rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from crosswind.data.schema.metric import Scalar

Labels = tuple[tuple[str, str], ...]


class Row(NamedTuple):
    """The device of a row, and its other facts."""

    device: str
    facts: Mapping[str, Scalar]


LabelsOf = Callable[[Row], Labels | None]


def of_device(row: Row) -> Labels | None:
    """Return the device by its own name."""
    return (("device", row.device),)


def of_node(row: Row) -> Labels | None:  # noqa: ARG001 - a node has one of these
    """Return no label."""
    return ()


@dataclass(frozen=True, slots=True)
class Name:
    """An established name for a column.

    `of` gives a row's labels, or None if the name does not fit it. `family` may hold `{part}`, which `part`
    takes from the device. `is_raw` shows the kernel's number, without its scale. `help` replaces the column's
    description if several columns share the name.
    """

    family: str
    of: LabelsOf = of_device
    labels: Labels = ()
    kind: str = ""  # counter, gauge or untyped; the column's kind, when empty
    is_raw: bool = False
    part: Callable[[str], str | None] | None = None
    help: str = ""

    def family_of(self, device: str) -> str | None:
        """Return the family of a device's row; None if the name does not fit the device."""
        if self.part is None:
            return self.family
        part = self.part(device)
        return None if part is None else self.family.replace("{part}", part)

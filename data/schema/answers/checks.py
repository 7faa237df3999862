"""Measurements that nodes took before their jobs."""

from dataclasses import dataclass, field

from crosswind.data.schema.answers.fields import about


@dataclass(frozen=True)
class EarlierChecks:
    """The newest values of one measure on one node, device or pair, newest first, in the measure's unit."""

    measure: str
    method: str = field(metadata=about("only values of one method compare"))
    hardware: str = field(metadata=about("only values of one model compare; empty of disk and network"))
    node: str
    device: str = field(metadata=about("empty of the network"))
    peer: str = field(metadata=about("the other node of a pair; empty without one"))
    at_ns: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class SystemChecks:
    """The checks of a system; empty before its first."""

    system: str
    earlier: tuple[EarlierChecks, ...]

"""Measurements of a check of nodes before a job: the set of its rows, and one value as all layers hand it on."""

from collections.abc import Mapping
from dataclasses import dataclass

from crosswind.data.schema.metric import Column, Kind, MetricSet


@dataclass(frozen=True)
class Quantity:
    """The unit and the good direction of one measure."""

    unit: str
    is_more_better: bool
    description: str
    of_pair: bool = False  # of two nodes rather than of one


QUANTITIES: Mapping[str, Quantity] = {
    "gemm": Quantity("flop/s", True, "matrix product"),
    "memory": Quantity("bytes/s", True, "memory traffic of a STREAM triad"),
    "disk_write": Quantity("bytes/s", True, "writing a file until it is on the disk"),
    "disk_read": Quantity("bytes/s", True, "reading that file again"),
    "loop": Quantity("seconds", False, "a fixed amount of work on one core, in the median"),
    "noise": Quantity("ratio", False, "mean over least time of that work: 1 where nothing interrupts it"),
    "latency": Quantity("seconds", False, "what any message between two nodes costs (alpha)", of_pair=True),
    "bandwidth": Quantity("bytes/s", True, "at which the bytes of long messages follow (1 / beta)", of_pair=True),
}
MESSAGE, ALL_REDUCE = "message", "all_reduce"  # seconds by size, from which others are made or which no node is held to

PREFLIGHT = MetricSet(
    "preflight",
    "One value that `crosswind check` measured on one node, or between two.",
    (
        Column("ts_ns", "when the check began, clock of its rank 0, UTC", Kind.KEY, unit="ns"),
        Column("check_id", "the check: all rows of one have it", Kind.KEY, "string"),
        Column("node", "host name", Kind.KEY, "string"),
        Column("device", "part of the node: cpu, a GPU, a mount point; null of the network", Kind.KEY, "string"),
        Column("peer", "the other node of a pair; null without one", Kind.KEY, "string"),
        Column("measure", "what was measured", Kind.KEY, "string"),
        Column("size_bytes", "bytes of the message or buffer; null where size is no matter", Kind.KEY, unit="bytes"),
        Column("value", "in the measure's unit: flop/s, bytes/s, seconds, ratio", dtype="float64"),
        Column("method", "how it was measured; only values of one method compare", Kind.FACT, "string"),
        Column("hardware", "model of the processor or GPU; only values of one model compare", Kind.FACT, "string"),
        Column("system", "the cluster", Kind.FACT, "string"),
        Column("job_id", "the job in which it was measured; null outside of any", Kind.FACT, "string"),
    ),
)


@dataclass(frozen=True)
class Measured:
    """One value of one node, or of a pair of nodes, in the unit of its measure."""

    node: str
    measure: str
    value: float
    device: str | None = None
    peer: str | None = None
    size_bytes: int | None = None
    method: str = ""
    hardware: str = ""

"""Energy of runs, measured and predicted."""

from dataclasses import dataclass, field
from enum import StrEnum

from crosswind.data.schema.answers.fields import about
from crosswind.data.schema.carbon import Origin


class MeterScope(StrEnum):
    """The part of the nodes that a meter covers, the largest first."""

    NODE = "node"  # all that they draw
    ACCOUNTED = "accounted"  # whatever the scheduler's plug-in meters: its accounts do not say
    RECORDED = "recorded"  # whatever was metered for a record of the run, such as a table's row
    CHIPS = "chips"  # processors, memory and accelerators; no fans, network, disks, losses of power supplies
    ACCELERATORS = "accelerators"
    PROCESSORS = "processors"  # and their memory, where it is counted


class PowerBasis(StrEnum):
    """The basis of a node's power, the surest first."""

    COHORT = "cohort"  # metered runs of this configuration and scale on this system
    WORKLOAD = "workload"  # metered runs of the workload on this system
    RELATED = "related"  # the workload's elsewhere, or others' here, with the same accelerator if one is named
    DATA_SHEET = "data_sheet"  # no such run was metered


@dataclass(frozen=True)
class EnergyForecast:
    """Energy of a predicted run: its median and 90 % interval, and the basis of a node's power.

    `origin` is measured where runs of the workload were metered on this system.
    """

    joules: float
    low_joules: float
    high_joules: float
    node_watts: float | None = field(metadata=about("null where it is unknown how ranks are spread over nodes"))
    node_count: int | None
    origin: Origin
    scope: MeterScope
    basis: PowerBasis
    metered_runs: int
    carbon_grams: float | None = field(default=None, metadata=about("of the median; null where no intensity is set"))


@dataclass(frozen=True)
class MeasuredEnergy:
    """Energy of a run's nodes by their meters, whoever else was on them."""

    joules: float
    origin: Origin
    scope: MeterScope
    meter: str
    coverage: float = field(metadata=about("share of the time that the worst node's meter covers"))
    node_watts: float = field(metadata=about("mean power of a node"))
    carbon_grams: float | None = field(metadata=about("null where no intensity is set"))

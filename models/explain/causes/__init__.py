"""Causes of a run's excess: our own in an explicit list, other people's by entry points of `crosswind.causes`."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from crosswind.models.explain.causes.busy_loaders import BusyLoaders
from crosswind.models.explain.causes.cause import Cause
from crosswind.models.explain.causes.congestion import Congestion
from crosswind.models.explain.causes.contract import check
from crosswind.models.explain.causes.cpu_contention import CpuContention
from crosswind.models.explain.causes.cpu_quota import CpuQuota
from crosswind.models.explain.causes.cpu_steal import CpuSteal
from crosswind.models.explain.causes.heat_throttling import HeatThrottling
from crosswind.models.explain.causes.link_rate import LinkRate
from crosswind.models.explain.causes.low_clock import LowClock
from crosswind.models.explain.causes.major_faults import MajorFaults
from crosswind.models.explain.causes.marked_phases import OtherWork, SlowCheckpoint
from crosswind.models.explain.causes.memory_pressure import MemoryPressure
from crosswind.models.explain.causes.memory_traffic import MemoryTraffic
from crosswind.models.explain.causes.neighbour_traffic import NeighbourTraffic
from crosswind.models.explain.causes.network import Network
from crosswind.models.explain.causes.packet_loss import PacketLoss
from crosswind.models.explain.causes.placement import Placement
from crosswind.models.explain.causes.power_cap import PowerCap
from crosswind.models.explain.causes.recompilation import Recompilation
from crosswind.models.explain.causes.retransmission import Retransmission
from crosswind.models.explain.causes.slow_compute import SlowCompute
from crosswind.models.explain.causes.slow_input import SlowInput
from crosswind.models.explain.causes.slow_node import SlowNode
from crosswind.models.explain.causes.slow_storage import SlowStorage
from crosswind.models.explain.causes.software_change import SoftwareChange
from crosswind.models.explain.causes.stall import Stall
from crosswind.models.explain.causes.swap import Swap
from crosswind.models.explain.causes.uneven_work import UnevenWork

log = logging.getLogger(__name__)

# In the order in which they may claim: direct evidence first, the rest of a phase last.
CAUSES: tuple[Cause, ...] = (
    SlowStorage(),
    BusyLoaders(),
    SlowInput(),
    SlowCheckpoint(),
    OtherWork(),
    CpuQuota(),
    CpuContention(),
    CpuSteal(),
    Swap(),
    MajorFaults(),
    MemoryPressure(),
    HeatThrottling(),
    PowerCap(),
    LowClock(),
    NeighbourTraffic(),
    PacketLoss(),
    Stall(),
    Recompilation(),
    UnevenWork(),
    SlowNode(),
    SoftwareChange(),
    Placement(),
    MemoryTraffic(),
    SlowCompute(),
    LinkRate(),
    Retransmission(),
    Congestion(),
    Network(),
)
ENTRY_POINT_GROUP = "crosswind.causes"


@dataclass(frozen=True, slots=True)
class Refused:
    """A cause of somebody else's that cannot be used, and why."""

    name: str
    reason: str


def plugged_in_causes() -> tuple[list[Cause], list[Refused]]:
    """Return other people's causes, and those that cannot be used, with the reason.

    An entry point names a callable without arguments that makes a cause.
    """
    causes: list[Cause] = []
    refused: list[Refused] = []
    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            causes.append(_made_by(point, [*causes, *CAUSES]))
        except Exception as error:  # noqa: BLE001 - a stranger's module may raise anything, and must not stop ours
            reason = f"{type(error).__name__}: {error}".replace("\n", " ")[:500]
            log.warning("cause %s (%s) is left out: %s", point.name, point.value, reason)
            refused.append(Refused(point.name, reason))
    return causes, refused


def _made_by(point: EntryPoint, others: Sequence[Cause]) -> Cause:
    cause: Cause = point.load()()
    check(cause, others)
    return cause


# Other people's claim before ours, of which the last take all that is left of a phase.
PLUGGED_IN, REFUSED = plugged_in_causes()
BY_NAME: Mapping[str, Cause] = {cause.name: cause for cause in (*PLUGGED_IN, *CAUSES)}

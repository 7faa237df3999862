"""The causes, in the order in which they may claim: direct evidence first, what is left last."""

from crosswind.models.explain.causes.busy_loaders import BusyLoaders
from crosswind.models.explain.causes.cause import Cause
from crosswind.models.explain.causes.congestion import Congestion
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

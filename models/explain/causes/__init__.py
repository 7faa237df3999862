"""The causes, in the order in which they may claim: direct evidence first, what is left last."""

from crosswind.models.explain.causes.cause import Cause
from crosswind.models.explain.causes.cpu_contention import CpuContention
from crosswind.models.explain.causes.cpu_quota import CpuQuota
from crosswind.models.explain.causes.link_rate import LinkRate
from crosswind.models.explain.causes.marked_phases import OtherWork, SlowCheckpoint
from crosswind.models.explain.causes.memory_traffic import MemoryTraffic
from crosswind.models.explain.causes.network import Network
from crosswind.models.explain.causes.packet_loss import PacketLoss
from crosswind.models.explain.causes.slow_compute import SlowCompute
from crosswind.models.explain.causes.slow_input import SlowInput
from crosswind.models.explain.causes.stall import Stall

CAUSES: tuple[Cause, ...] = (
    SlowInput(),
    SlowCheckpoint(),
    OtherWork(),
    CpuQuota(),
    CpuContention(),
    PacketLoss(),
    Stall(),
    MemoryTraffic(),
    SlowCompute(),
    LinkRate(),
    Network(),
)

"""Injectors of real faults, most with a file of their own."""

from crosswind.ingest.lab.injectors.cpu_hog import CpuHog
from crosswind.ingest.lab.injectors.cpu_quota import CpuQuota
from crosswind.ingest.lab.injectors.disk_pressure import DiskPressure
from crosswind.ingest.lab.injectors.injector import Injector, Target
from crosswind.ingest.lab.injectors.latency import Latency
from crosswind.ingest.lab.injectors.memory_traffic import MemoryTraffic
from crosswind.ingest.lab.injectors.neighbour_traffic import NeighbourTraffic
from crosswind.ingest.lab.injectors.own_delay import LateCheckpoint, SlowInput, SlowRank
from crosswind.ingest.lab.injectors.packet_loss import PacketLoss
from crosswind.ingest.lab.injectors.pause import Pause
from crosswind.ingest.lab.injectors.rate_cap import RateCap

INJECTORS: dict[str, type[Injector]] = {
    injector.kind: injector
    for injector in (
        RateCap,
        PacketLoss,
        Latency,
        NeighbourTraffic,
        CpuHog,
        CpuQuota,
        MemoryTraffic,
        DiskPressure,
        SlowInput,
        SlowRank,
        LateCheckpoint,
        Pause,
    )
}

__all__ = ["INJECTORS", "Injector", "Target"]

"""Processes on NVIDIA GPUs, which connect a GPU with its ranks."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.metric import Column, Kind, MetricSet, Sample
from crosswind.ingest.collectors.nvml import is_nvml_here
from crosswind.ingest.collectors.source import Source
from crosswind.ingest.gpu.nvml_session import LostError, NvmlSession

GPU_PROCESS = MetricSet(
    "gpu_process",
    "each process that computes on an NVIDIA GPU; the device is the UUID of the GPU, or of its part",
    (
        Column("pid", "process", Kind.KEY),
        Column("memory_used_bytes", "memory that it uses on this GPU; missing where the driver hides it", unit="bytes"),
    ),
)


@dataclass(frozen=True)
class GpuProcessCollector:
    """Each computing process. A GPU that has parts (MIG) is represented by them.

    Source: https://docs.nvidia.com/deploy/nvml-api/ (nvmlDeviceGetComputeRunningProcesses)
    """

    session: NvmlSession = field(default_factory=NvmlSession, repr=False, compare=False)
    proc: Path = Path("/proc")
    metric_set: ClassVar[MetricSet] = GPU_PROCESS

    def available(self) -> bool:
        """Return whether the driver is loaded and the library installed."""
        return is_nvml_here(self.proc)

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every process and GPU; none where nobody computes. Raises: UnavailableError."""
        for device in self.session.devices():
            if device.has_parts:
                continue
            try:
                processes = self.session.ask(device, "nvmlDeviceGetComputeRunningProcesses")
            except LostError:
                continue
            for process in processes or ():
                memory = {"memory_used_bytes": process.usedGpuMemory} if process.usedGpuMemory is not None else {}
                yield Sample(device.uuid, {"pid": process.pid} | memory)


SOURCE = Source(
    "gpu_process",
    lambda host, _: GpuProcessCollector(NvmlSession(proc=host.proc), host.proc),
    advice="load NVIDIA's driver and pip install 'crosswind[gpu]'; see docs/gpu.md",
    interval_seconds=10.0,
    timeout_seconds=5.0,
    is_default=False,
)

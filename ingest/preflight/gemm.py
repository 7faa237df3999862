"""Matrix products: floating point performance of the processor and every visible GPU."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import median
from typing import Any, ClassVar

from crosswind.data.schema.checks import Measured
from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.preflight.measure import Bench, cores, processor

SIDE, GPU_SIDE = 2048, 8192  # 17 Gflop, 1.1 Tflop a product: milliseconds on fast devices, less than a second on others


@dataclass(frozen=True)
class Gemm:
    """Products of square matrices: in 32 bits by PyTorch or NumPy on the processor, in 16 bits on each GPU.

    The median of the products that fit into the time: a steady disturbance shows, a single one does not.
    """

    name: ClassVar[str] = "gemm"
    weight: ClassVar[float] = 2.0
    side: int = SIDE
    gpu_side: int = GPU_SIDE

    def measure(self, bench: Bench) -> Iterator[Measured]:
        """Yield flop/s of the processor, then of each GPU. Raises: UnavailableError."""
        if find_spec("torch"):
            yield from self._by_torch(bench)
        elif find_spec("numpy"):
            yield self._by_numpy(bench)
        else:
            raise UnavailableError("gemm needs torch or numpy: pip install numpy")

    def _by_torch(self, bench: Bench) -> Iterator[Measured]:
        import torch  # noqa: PLC0415 - no heavy import during a job before it is needed

        gpus = torch.cuda.device_count()
        seconds = bench.seconds / (1 + gpus)
        torch.set_num_threads(cores())  # torchrun sets it to 1
        left, right = (torch.rand(self.side, self.side) for _ in range(2))
        out = torch.empty_like(left)
        taken = _median_seconds(lambda: torch.mm(left, right, out=out), seconds)
        method = f"torch float32 {self.side} threads={cores()}"
        yield Measured(bench.node, self.name, _flops(self.side, taken), "cpu", method=method, hardware=processor())
        for index in range(gpus):
            yield self._on_gpu(torch, index, Bench(bench.node, bench.folder, seconds))

    def _on_gpu(self, torch: Any, index: int, bench: Bench) -> Measured:
        where = torch.device("cuda", index)
        left, right = (torch.rand(self.gpu_side, self.gpu_side, device=where, dtype=torch.float16) for _ in range(2))
        out = torch.empty_like(left)

        def product() -> None:
            torch.mm(left, right, out=out)
            torch.cuda.synchronize(where)

        taken = _median_seconds(product, bench.seconds)
        model, method = torch.cuda.get_device_name(index), f"torch float16 {self.gpu_side}"
        value = _flops(self.gpu_side, taken)
        return Measured(bench.node, self.name, value, f"gpu{index}", method=method, hardware=model)

    def _by_numpy(self, bench: Bench) -> Measured:
        import numpy as np  # noqa: PLC0415 - as above

        threads = os.environ.get("OMP_NUM_THREADS") or str(cores())
        random = np.random.default_rng(0)
        left, right = (random.random((self.side, self.side), dtype=np.float32) for _ in range(2))
        out = np.empty_like(left)
        taken = _median_seconds(lambda: np.matmul(left, right, out=out), bench.seconds)
        method = f"numpy float32 {self.side} threads={threads[:10]}"
        return Measured(bench.node, self.name, _flops(self.side, taken), "cpu", method=method, hardware=processor())


def _flops(side: int, seconds: float) -> float:
    """Return the speed: 2 n^3 floating point operations a product."""
    return 2.0 * side**3 / seconds


def _median_seconds(product: Callable[[], object], seconds: float) -> float:
    """Return the median of the products in that time, at least one, after one to warm up."""
    product()
    times: list[float] = []
    ends = time.perf_counter() + seconds
    while not times or time.perf_counter() < ends:
        began = time.perf_counter()
        product()
        times.append(time.perf_counter() - began)
    return median(times)

"""Cost of reading a GPU by NVML, and of the probe in trainings on it; says so where there is none.

NVML: wall and processor time of a reading of all columns and of its dearest parts, on the idle GPU and next to matrix
products. Probe: two like trainings take turns in blocks of steps that go plain, watched, watched, plain, each block up
to a synchronisation; a turn is one pair. Given are the mean of the pairs with its 95 % interval and their median, of
wall time and of the processor time of the loop's thread. The small model is bound by the host, which shows the whole
cost of the probe; the other one is bound by the GPU. Anchors: the share that an otherwise busy GPU passes in time.
"""

import itertools
import json
import math
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import torch

import crosswind
from crosswind.ingest.collectors.nvml import FIELDS, NvmlCollector, is_nvml_here
from crosswind.ingest.gpu.nvml_session import NvmlSession
from crosswind.ingest.kernel.node_facts import node_facts
from crosswind.ingest.probe.cuda_events import CudaEvents
from crosswind.ingest.probe.device_clock import DeviceClock

READINGS = 30
TURNS = {"host_bound": (100, 40), "gpu_bound": (10, 16)}  # steps of a block, turns
ANCHORS = 100
T_95 = 1.96
Costs = tuple[float, float]  # wall, processor


def main() -> None:
    if not is_nvml_here(Path("/proc")) or not torch.cuda.is_available():
        print("no NVIDIA GPU with PyTorch and nvidia-ml-py here: nothing is measured")
        return
    figures: dict[str, object] = {"accelerator": node_facts().get("accelerator"), "driver": node_facts().get("driver")}
    figures["nvml_idle_us"] = nvml_costs()
    with matrix_products():
        figures["nvml_busy_us"] = nvml_costs()
    figures["anchors_passed"] = anchors()
    with tempfile.TemporaryDirectory() as spool:
        for name, (steps, turns) in TURNS.items():
            figures[f"probe_{name}"] = probe_costs(name, steps, turns, spool)
    for name, value in figures.items():
        print(f"{name}: {value}")
    print(json.dumps(figures))


def nvml_costs() -> dict[str, list[float]]:
    """Return the median wall time and the mean processor time of readings, microseconds."""
    session = NvmlSession()
    collector, device = NvmlCollector(session), session.devices()[0]
    parts: dict[str, Callable[[], object]] = {
        "reading": lambda: list(collector.read()),
        "devices": session.devices,
        "energy": lambda: session.ask(device, "nvmlDeviceGetFieldValues", (83,)),
        "throttling": lambda: session.ask(device, "nvmlDeviceGetFieldValues", tuple(range(74, 80))),
        "all_fields": lambda: session.ask(device, "nvmlDeviceGetFieldValues", tuple(FIELDS)),
    }
    return {name: [round(1e6 * cost, 1) for cost in cost_of(part)] for name, part in parts.items()}


def cost_of(part: Callable[[], object]) -> Costs:
    part()
    walls, before = [], time.thread_time()
    for _ in range(READINGS):
        began = time.perf_counter()
        part()
        walls.append(time.perf_counter() - began)
    return statistics.median(walls), (time.thread_time() - before) / READINGS


class matrix_products:  # noqa: N801 - used as a function
    """Keeps the GPU busy from another thread."""

    def __init__(self) -> None:
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._multiply)

    def _multiply(self) -> None:
        matrix = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
        while not self._is_over.is_set():
            for _ in range(10):
                matrix @ matrix
            torch.cuda.synchronize()

    def __enter__(self) -> None:
        self._thread.start()
        time.sleep(1.0)

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()


def anchors() -> float:
    """Return the share of anchors that are passed in time while the queue is full."""
    clock = DeviceClock(CudaEvents(torch.device("cuda")))
    step, passed = training("gpu_bound"), 0
    for _ in range(ANCHORS):
        step()
        passed += clock._take_anchor()
    torch.cuda.synchronize()
    return passed / ANCHORS


def training(kind: str) -> Callable[[], None]:
    """Return one optimizer step of a perceptron; its model is an attribute."""
    width, depth, batch = (256, 8, 64) if kind == "host_bound" else (4096, 8, 8192)
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(depth))).to("cuda")
    optimizer, inputs = torch.optim.SGD(model.parameters(), lr=1e-3), torch.ones(batch, width, device="cuda")

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=kind == "gpu_bound"):
            loss = model(inputs).float().square().mean()
        loss.backward()
        optimizer.step()

    step.model = model  # type: ignore[attr-defined]
    return step


def probe_costs(kind: str, steps: int, turns: int, spool: str) -> dict[str, float]:
    plain, watched = training(kind), training(kind)
    with crosswind.run(workload="benchmark", run_id=f"bench-{kind}", spool=spool) as run:
        run.watch(watched.model)  # type: ignore[attr-defined]
        numbers = iter(run.steps(itertools.count()))

        def block(*, is_watched: bool) -> Costs:
            torch.cuda.synchronize()
            began = time.perf_counter(), time.thread_time()
            for _ in range(steps):
                if is_watched:
                    next(numbers)
                (watched if is_watched else plain)()
            torch.cuda.synchronize()
            return (time.perf_counter() - began[0]) / steps, (time.thread_time() - began[1]) / steps

        for is_watched in (True, False, True, False):  # the first ones compile and allocate
            block(is_watched=is_watched)
        pairs = [[block(is_watched=is_watched) for is_watched in (False, True, True, False)] for _ in range(turns)]
    wall = [(turn[1][0] + turn[2][0] - turn[0][0] - turn[3][0]) / 2 for turn in pairs]
    used = [(turn[1][1] + turn[2][1] - turn[0][1] - turn[3][1]) / 2 for turn in pairs]
    level = statistics.mean((turn[0][0] + turn[3][0]) / 2 for turn in pairs)
    half = T_95 * statistics.stdev(wall) / math.sqrt(turns)
    return {
        "step_seconds": round(level, 7),
        "slowdown": round(statistics.mean(wall) / level, 5),
        "half_interval": round(half / level, 5),
        "median_slowdown": round(statistics.median(wall) / level, 5),
        "wall_us_per_step": round(1e6 * statistics.mean(wall), 2),
        "loop_thread_us_per_step": round(1e6 * statistics.mean(used), 2),
    }


if __name__ == "__main__":
    main()

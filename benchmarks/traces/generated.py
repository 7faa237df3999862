"""Generates a rank's trace as torch.profiler writes it: operators, calls, kernels, collectives, flows, allocations.

The shares of its entries and their lengths are about those of a recorded trace of a model on two V100.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

Place: TypeAlias = tuple[int, int]  # process and thread, or device and stream
PROCESS, BACKWARD, STREAM, COMMUNICATION = 4711, 4790, 7, 20
LAYERS = 48  # kernels of a step; every sixth is followed by a collective
HEAD = """{
  "schemaVersion": 1,
  "deviceProperties": [
    {"id": 0, "name": "Generated", "totalGlobalMem": 34089730048, "computeMajor": 8, "computeMinor": 0, "numSms": 108}
  ],
  "distributedInfo": {"backend": "nccl", "rank": %d, "world_size": %d},
  "baseTimeNanoseconds": 1727740800000000000,
  "traceEvents": [
"""
KERNELS = (
    "ampere_sgemm_128x64_tn",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>"
    " >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)",
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float, float const*)",
)
OPERATORS = (
    ("aten::linear", "aten::addmm"),
    ("aten::add", "aten::add_"),
    ("aten::layer_norm", "aten::native_layer_norm"),
)


def write_rank(path: Path, rank: int, world_size: int, *, megabytes: float) -> None:
    """Write steps until the file is so large. Ranks differ in how long their kernels take."""
    chance = random.Random(rank)
    size, step, at = 0, 0, 1000.0 + 137 * rank
    with path.open("w") as stream:
        size += stream.write(HEAD % (rank, world_size))
        while size < megabytes * 1e6:
            entries, end = _step(step, at, chance)
            size += stream.write(",\n".join(entries) + ",\n")
            step, at = step + 1, end
        stream.write(f'  {{"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": {at:.3f}}}\n')
        stream.write(f'  ],\n  "traceName": "rank{rank}.json"\n}}\n')


def _step(step: int, at: float, chance: random.Random) -> tuple[list[str], float]:
    """Return a step's entries, and when it ends, microseconds."""
    entries, begin, device = [], at, at + 60.0
    for layer in range(LAYERS):
        number = (step * LAYERS + layer) * 10 + 10
        busy = chance.uniform(20, 90)
        entries += _layer(number, layer, at, (device, busy))
        at, device = at + 40.0, max(device, at + 40.0) + busy + 2.0
        if layer % 6 == 5:
            entries += _collective(number + 5, at, device, chance.uniform(100, 300))
            at += 15.0
    end = max(at, device) + 20.0
    entries.append(_entry(("user_annotation", f"ProfilerStep#{step}"), (PROCESS, PROCESS), (begin, end - begin), ""))
    return entries, end


def _layer(number: int, layer: int, at: float, work: tuple[float, float]) -> Iterator[str]:
    """Yield operators, one in the other, their calls, the kernel, and what memory they take."""
    host = (PROCESS, PROCESS if layer % 3 else BACKWARD)
    outer, inner = OPERATORS[layer % len(OPERATORS)]
    shapes = '"Input Dims": [[64, 1024], [1024, 1024], [1024]], "Input type": ["float", "float", "float"]'
    for depth, name in enumerate((f"nn.Module: Block_{layer}", outer, inner)):
        facts = f'"External id": {number + depth}, "Ev Idx": {number + depth}, {shapes}, "Fwd thread id": 0'
        yield _entry(("cpu_op", name), host, (at + depth, 34.0 - 8 * depth), facts)
    yield (
        f'  {{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": {host[0]}, "tid": {host[1]},'
        f' "ts": {at + 3:.3f}, "args": {{"Ev Idx": {number}, "Device Type": 1, "Device Id": 0, "Addr": {number << 20},'
        f' "Bytes": 262144, "Total Allocated": 5435638784, "Total Reserved": 12782141440}}}}'
    )
    yield _entry(
        ("cuda_runtime", "cudaStreamIsCapturing"), host, (at + 4, 0.6), f'"cbid": 317, "correlation": {number + 1}'
    )
    yield from _launched(number, (KERNELS[layer % len(KERNELS)], ""), (host, at + 5), (STREAM, *work))


def _collective(number: int, at: float, device: float, length: float) -> Iterator[str]:
    """Yield an all-reduce: its annotation on the host, its call, and its kernel, which computation may overlap."""
    host = (PROCESS, BACKWARD)
    ids = f'"External id": {number}, "Ev Idx": {number}'
    yield _entry(("user_annotation", "nccl:all_reduce"), host, (at, 12.0), ids)
    facts = (
        ', "Collective name": "allreduce", "In msg nelems": 1048576, "Out msg nelems": 1048576, "Group size": 8,'
        ' "dtype": "Float", "Process Group Name": "0", "Process Group Description": "default_pg"'
    )
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"
    yield from _launched(number, (name, facts), (host, at + 1), (COMMUNICATION, device - 40.0, length))


def _launched(
    number: int, kernel: tuple[str, str], call: tuple[Place, float], work: tuple[int, float, float]
) -> Iterator[str]:
    """Yield a launching call, the kernel that it launched, and the flow between them."""
    (name, facts), ((pid, tid), at) = kernel, call
    stream, begin, length = work
    begin = max(begin, at + 6.0)
    ids = f'"External id": {number}, "correlation": {number}'
    yield _entry(("cuda_runtime", "cudaLaunchKernel"), (pid, tid), (at, 4.5), f'"cbid": 211, {ids}')
    yield f'  {{"ph": "s", "id": {number}, "pid": {pid}, "tid": {tid}, "ts": {at:.3f}, "cat": "ac2g", "name": "ac2g"}}'
    shape = '"registers per thread": 32, "shared memory": 0, "blocks per SM": 2.5, "warps per SM": 20.0'
    grid = '"grid": [270, 1, 1], "block": [256, 1, 1], "est. achieved occupancy %": 62'
    device = f'{ids}, "queued": 0, "device": 0, "context": 1, "stream": {stream}, {shape}, {grid}{facts}'
    yield _entry(("kernel", name), (0, stream), (begin, length), device)
    yield (
        f'  {{"ph": "f", "id": {number}, "pid": 0, "tid": {stream}, "ts": {begin:.3f}, "cat": "ac2g", "name": "ac2g",'
        ' "bp": "e"}'
    )


def _entry(what: tuple[str, str], place: Place, time: tuple[float, float], facts: str) -> str:
    """Return an entry as Kineto writes it: category and name; process and thread; begin and length, microseconds."""
    return (
        f'  {{\n    "ph": "X", "cat": "{what[0]}", "name": "{what[1]}", "pid": {place[0]}, "tid": {place[1]},\n'
        f'    "ts": {time[0]:.3f}, "dur": {time[1]:.3f},\n    "args": {{\n      {facts}\n    }}\n  }}'
    )

"""The kind of a device's work by the name of its kernel, for traces that state none."""

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from crosswind.data.traces.trace import Kind

UNKNOWN = "unknown collective"
# NCCL and RCCL (ncclKernel_, ncclDevKernel_), MSCCL, oneCCL, NVSHMEM; all-reduces of vLLM, TensorRT-LLM, PyTorch
LIBRARIES = re.compile(
    r"nccl|rccl|msccl|oneccl|nvshmem|cross_device_reduce|symm_mem|multimem_|(one|two)_shot_all_?reduce|deep_ep|lamport"
    r"|xla::.*all[-_]?reduce|^(all-?(reduce|gather|to-?all)|reduce-?scatter|collective-?permute)",
    re.IGNORECASE,
)
COPIES = re.compile(
    r"memcpy|memset|^copy(buffer|device|host)|^fill(buffer|host)|__amd_rocclr_(copy|fill)", re.IGNORECASE
)
OPERATIONS = {  # in the order in which they are tried: "reducescatter" before "reduce"
    "all_reduce": r"all_?-?reduce|cross_device_reduce|allReduce",
    "reduce_scatter": r"reduce_?-?scatter",
    "all_gather": r"all_?-?gather",
    "all_to_all": r"all_?-?to_?-?all",
    "broadcast": r"broad_?cast|bcast",
    "send_receive": r"send_?recv|^nccl:(send|recv)|\b(send|recv)|collective-?permute|ppermute|deep_ep|irecv|isend",
    "barrier": r"barrier",
    "gather": r"gather",
    "scatter": r"scatter",
    "reduce": r"reduce",
}
PATTERNS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in OPERATIONS.items()}


def kind_of_kernel(name: str) -> Kind:
    """Return whether a kernel of this name computes, communicates or copies."""
    if LIBRARIES.search(name) and not name.startswith("void at::"):
        return Kind.COLLECTIVE
    return Kind.COPY if COPIES.search(name) else Kind.KERNEL


def kinds_of_kernels(names: Sequence[str]) -> NDArray[np.uint8]:
    """Return the kind of each name."""
    return np.array([kind_of_kernel(name) for name in names], np.uint8)


@lru_cache(maxsize=4096)
def with_operation(name: str, stated: str) -> str:
    """Return the name of a collective's kernel with its operation, where the trace states it and the name does not.

    RCCL, and NCCL where several collectives share a kernel, run "ncclDevKernel_Generic" for all; a name of no library
    that we know does not count.
    """
    says_it = kind_of_kernel(name) == Kind.COLLECTIVE and operation_of(name) != UNKNOWN
    return name if says_it or operation_of(stated) == UNKNOWN else f"{name} {stated}"


def operation_of(name: str) -> str:
    """Return a collective's operation by the name of its kernel, operator or call, or UNKNOWN."""
    for operation, pattern in PATTERNS.items():
        if pattern.search(name):
            return operation
    return UNKNOWN

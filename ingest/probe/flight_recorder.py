"""Gradient buckets from PyTorch's own flight recorder, which notes every collective when it is launched.

DistributedDataParallel reduces its gradients from C++. A communication hook in Python would see them, at 0.1 to 0.2 ms
of processor time a bucket; the recorder has them for nothing, and reading it costs some 20 us an entry, on another
thread. It does not tell when a collective ended: that of the last bucket is the end of the backward pass.
Source: torch/csrc/distributed/c10d/FlightRecorder.hpp; PyTorch's tutorial on the flight recorder.
"""

import json
import os
from collections.abc import Sequence
from typing import Any, Final

from crosswind.data.errors import UnavailableError
from crosswind.ingest.probe.step import Arrival, Step, Stretch

SIZE: Final = "TORCH_FR_BUFFER_SIZE"
MOST_ENTRIES: Final = 512  # every look reads all of them
TORCH_ENTRIES: Final = 2000  # where nobody asked for another number
WAIT_SECONDS: Final = 0.5
LEAST_WAIT_SECONDS: Final = 0.05
BYTES: Final = {"Double": 8, "Long": 8, "Float": 4, "Int": 4, "Half": 2, "BFloat16": 2, "Short": 2}  # others have 1


def entries_kept() -> int:
    """How many collectives PyTorch's recorder keeps in this process."""
    text = os.environ.get(SIZE) or os.environ.get("TORCH_NCCL_TRACE_BUFFER_SIZE") or str(TORCH_ENTRIES)
    return int(text) if text.isdigit() else TORCH_ENTRIES


class FlightRecorder:
    """The all-reduces of one process group that the recorder saw since it was last asked."""

    def __init__(self, group: str) -> None:
        """The recorder of this process, for the group of this name.

        Raises: UnavailableError when PyTorch has none, or one so large that reading it would disturb.
        """
        self.lost = 0
        self.wait_seconds = WAIT_SECONDS
        self._group = group
        self._kept = entries_kept()
        if not 0 < self._kept <= MOST_ENTRIES:
            raise UnavailableError(f"{SIZE} is {self._kept}, expected 1 to {MOST_ENTRIES}")
        entries = self._entries()
        self._last = entries[-1]["record_id"] if entries else -1
        self._waiting: list[dict[str, Any]] = []  # for the end of the step that they are of

    def hand_to(self, steps: Sequence[Step]) -> None:
        """Adds what arrived since it was last asked to the steps, all ended, in whose backward passes it did."""
        entries = [entry for entry in self._entries() if entry["record_id"] > self._last]
        if entries:
            self.lost += entries[0]["record_id"] - self._last - 1
            self._last = entries[-1]["record_id"]
        self._hurry(len(entries) / self._kept)
        self._waiting += [entry for entry in entries if entry["profiling_name"].endswith(":all_reduce")]
        for step in steps:
            for backward in step.backwards:
                self._add(step, backward)
        ended = steps[-1].end + steps[-1].to_utc if steps else 0
        later = [entry for entry in self._waiting if entry["time_created_ns"] > ended]
        self._waiting = later[-MOST_ENTRIES:]

    def _hurry(self, filled: float) -> None:
        """Is asked more often when more than half of what the recorder keeps was new."""
        half = self.wait_seconds * 0.5 / filled if filled else WAIT_SECONDS
        self.wait_seconds = max(LEAST_WAIT_SECONDS, min(WAIT_SECONDS, half))

    def _add(self, step: Step, backward: Stretch) -> None:
        begin, end = backward.begin + step.to_utc, backward.end + step.to_utc
        launched = [entry for entry in self._waiting if begin <= entry["time_created_ns"] <= end]
        calls = [each.time + step.to_utc for each in step.arrivals if each.operation == "all_reduce"]
        buckets = [each for each in _without(launched, calls) if each["process_group"][0] == self._group]
        step.arrivals += [_arrival(step, entry) for entry in buckets]
        if buckets:
            step.arrivals[-1].end = backward.end

    def _entries(self) -> list[dict[str, Any]]:
        from torch._C import _distributed_c10d  # noqa: PLC0415 - torch is the user's

        c10d: Any = _distributed_c10d

        try:
            entries: list[dict[str, Any]] = json.loads(c10d._dump_fr_trace_json()).get("entries", [])
        except (AttributeError, ValueError) as error:
            raise UnavailableError(f"flight recorder: {error}") from error
        return sorted(entries, key=lambda entry: int(entry["record_id"]))


def _without(launched: list[dict[str, Any]], calls: list[int]) -> list[dict[str, Any]]:
    """Those that were not launched by a call in Python, each of which launches the next entry after it."""
    left = list(launched)
    for call in sorted(calls):
        own = next((entry for entry in left if entry["time_created_ns"] >= call), None)
        if own:
            left.remove(own)
    return left


def _arrival(step: Step, entry: dict[str, Any]) -> Arrival:
    size_bytes = 0
    for shape, dtype in zip(entry["input_sizes"], entry["input_dtypes"], strict=True):
        count = 1
        for length in shape:
            count *= length
        size_bytes += count * BYTES.get(dtype, 1)
    time = entry["time_created_ns"] - step.to_utc
    return Arrival(step, time, True, True, None, size_bytes, "all_reduce", "data_parallel")

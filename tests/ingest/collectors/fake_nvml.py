"""NVIDIA's C library as nvidia-ml-py calls it: the real Python package on top, made-up or recorded answers below.

Types, sizes and codes are those of nvml.h; made-up values are plausible ones of an H100.
"""

import ctypes
import json
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

from tests.ingest.trees import RECORDINGS

NOT_SUPPORTED, LOST, NO_LIBRARY, NO_DRIVER, NOT_FOUND, TOO_SMALL = 3, 15, 12, 9, 6, 7
UUID = "GPU-5f5fa5ad-1111-2222-3333-444455556666"
OTHER = "GPU-0c0ffee0-1111-2222-3333-444455556666"
PART = "MIG-9b9b9b9b-1111-2222-3333-444455556666"
FIELDS = {  # by field: nvmlValueType_t (1 unsigned int, 3 unsigned long long), value
    83: (3, 417_358_921_004),
    186: (1, 402_117),
    82: (1, 61),
    138: (3, 5_000_000_001),
    139: (3, 4_999_999_999),
    3: (3, 2),
    4: (3, 0),
    5: (3, 12),
    6: (3, 1),
    142: (1, 1),
    143: (1, 0),
    144: (1, 1),
    145: (1, 0),
    94: (1, 7),
    74: (3, 81_000_000_000),
    **dict.fromkeys((75, 76, 77, 79), (3, 0)),
    78: (3, 4_900_000),
}
MEMORY = {"total": 85_520_809_984, "used": 71_940_702_208, "free": 12_984_516_608, "reserved": 595_591_168}
H100: dict[str, Any] = {
    "nvmlDeviceGetUUID": UUID.encode(),
    "nvmlDeviceGetName": b"NVIDIA H100 80GB HBM3",
    "nvmlDeviceGetPciInfo_v3": {"busId": b"00000000:1B:00.0"},
    "fields": FIELDS,
    "nvmlDeviceGetPowerUsage": 398_204,
    "nvmlDeviceGetEnforcedPowerLimit": 700_000,
    "nvmlDeviceGetUtilizationRates": {"gpu": 97, "memory": 41},
    "nvmlDeviceGetMemoryInfo_v2": MEMORY,
    "nvmlDeviceGetTemperature": {0: 54},
    "nvmlDeviceGetClockInfo": {0: 1980, 1: 1965, 2: 2619},
    "nvmlDeviceGetPerformanceState": 0,
    "nvmlDeviceGetCurrentClocksEventReasons": 4,
    "nvmlDeviceGetViolationStatus": {0: 81_000_000_123, 1: 0, 2: 0, 3: 0, 4: 5_000_000, 5: 0},
    "nvmlDeviceGetPcieThroughput": {0: 12_345, 1: 54_321},
}
RECORDED: dict[str, Any] = json.loads((RECORDINGS / "nvml/h100.json").read_text())


def recorded_gpu(state: str, *more_fields: list[Any]) -> dict[str, Any]:
    """Return the recorded answers of an `idle` or `busy` H100."""
    by_constant = {
        call: {int(constant): value for constant, value in answer.items()}
        for call, answer in RECORDED[state]["calls"].items()
        if isinstance(answer, dict) and all(key.isdigit() for key in answer)
    }
    fields = {
        number: (kind, value)
        for number, _, code, kind, value in (*RECORDED[state]["fields"], *more_fields)
        if code == 0
    }
    named = {
        "nvmlDeviceGetUUID": RECORDED["uuid"].encode(),
        "nvmlDeviceGetName": RECORDED["name"].encode(),
        "nvmlDeviceGetPciInfo_v3": {"busId": RECORDED["bus_id"].encode()},
    }
    return {**RECORDED[state]["calls"], **by_constant, **named, "fields": fields}


class FakeNvml:
    """Answers by GPU number, from 1; a call that a GPU has no answer for is not supported."""

    def __init__(
        self, *gpus: dict[str, Any], parts: dict[int, list[dict[str, Any]]] | None = None, driver: str = "570.86.15"
    ) -> None:
        self.gpus, self.driver = list(gpus), driver
        self.parts = parts or {}
        self.init = 0
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Callable[..., int]:
        return partial(self._call, name)

    def _call(self, name: str, *arguments: Any) -> int:
        self.calls[name] += 1
        special = getattr(type(self), f"_{name}", None)
        if special is not None:
            return int(special(self, *arguments))
        return self._answer(self._behind(arguments[0]), name, arguments)

    def _behind(self, handle: Any) -> dict[str, Any]:
        number = ctypes.cast(handle, ctypes.c_void_p).value or 0
        if number < 100:
            return self.gpus[number - 1]
        return self.parts[number // 100 - 1][number % 100]

    def _answer(self, gpu: dict[str, Any], name: str, arguments: tuple[Any, ...]) -> int:
        if gpu.get("code"):
            return int(gpu["code"])
        if name not in gpu:
            return NOT_SUPPORTED
        value = gpu[name]
        if isinstance(value, bytes):
            arguments[1].value = value
            return 0
        if isinstance(value, dict) and all(isinstance(key, int) for key in value):
            if arguments[1].value not in value:
                return NOT_SUPPORTED
            value = value[arguments[1].value]
        target = arguments[-1]._obj
        if name == "nvmlDeviceGetViolationStatus":
            value = {"referenceTime": 1, "violationTime": value}
        for member, content in (value if isinstance(value, dict) else {"value": value}).items():
            setattr(target, member, content)
        return 0

    def _nvmlInitWithFlags(self, flags: int) -> int:  # noqa: N802 - NVML's names
        return self.init

    def _nvmlShutdown(self) -> int:  # noqa: N802
        return 0

    def _nvmlSystemGetDriverVersion(self, buffer: Any, size: Any) -> int:  # noqa: N802
        buffer.value = self.driver.encode()
        return 0

    def _nvmlDeviceGetCount_v2(self, count: Any) -> int:  # noqa: N802
        count._obj.value = len(self.gpus)
        return 0

    def _nvmlDeviceGetHandleByIndex_v2(self, index: Any, handle: Any) -> int:  # noqa: N802
        gpu = self.gpus[index.value]
        return int(gpu.get("code", 0)) or _point(handle, index.value + 1)

    def _nvmlDeviceGetMigMode(self, handle: Any, current: Any, pending: Any) -> int:  # noqa: N802
        current._obj.value = int(self.gpus.index(self._behind(handle)) in self.parts)
        return 0

    def _nvmlDeviceGetMaxMigDeviceCount(self, handle: Any, count: Any) -> int:  # noqa: N802
        count._obj.value = 7
        return 0

    def _nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Any, index: Any, part: Any) -> int:  # noqa: N802
        gpu = self.gpus.index(self._behind(handle))
        if index.value >= len(self.parts[gpu]):
            return NOT_FOUND
        return _point(part, (gpu + 1) * 100 + index.value)

    def _nvmlDeviceGetFieldValues(self, handle: Any, count: Any, array: Any) -> int:  # noqa: N802
        gpu = self._behind(handle)
        if gpu.get("code"):
            return int(gpu["code"])
        for value in array._obj:
            kind, number = gpu.get("fields", {}).get(value.fieldId, (0, None))
            value.nvmlReturn = gpu.get("field_code") or (NOT_SUPPORTED if number is None else 0)
            value.valueType = kind
            if number is not None:
                setattr(value.value, {0: "dVal", 1: "uiVal", 3: "ullVal"}[kind], number)
        return 0

    def _nvmlDeviceGetComputeRunningProcesses_v3(self, handle: Any, count: Any, array: Any) -> int:  # noqa: N802
        processes = self._behind(handle).get("processes", [])
        if array is None:
            count._obj.value = len(processes)
            return TOO_SMALL if processes else 0
        count._obj.value = len(processes)
        for place, (pid, used) in enumerate(processes):
            array[place].pid, array[place].usedGpuMemory = pid, used
        return 0


def _point(handle: Any, number: int) -> int:
    ctypes.memmove(ctypes.addressof(handle._obj), number.to_bytes(8, sys.byteorder), 8)
    return 0


def library(driver: FakeNvml) -> ModuleType:
    """A copy of nvidia-ml-py of its own over this C library."""
    installed = find_spec("pynvml")
    assert installed is not None
    spec = spec_from_file_location("pynvml_of_its_own", installed.origin)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)  # where it looks itself up while it is made
    spec.loader.exec_module(module)
    del sys.modules[spec.name]
    module.nvmlLib = driver  # type: ignore[attr-defined]
    return module

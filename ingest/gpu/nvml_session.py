"""A session of NVML: opened when first needed, kept open; refused calls are remembered, lost GPUs recognised."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import Scalar
from crosswind.ingest.gpu.refusals import Refusals
from crosswind.ingest.kernel.printable import printable

REOPEN_NS = 60_000_000_000  # at most once in so long, to see GPUs that were reset
# Codes of nvmlReturn_t.
UNKNOWN_TO_IT = frozenset({2, 3, 4, 13, 25, 26})  # arguments, support, permission, function, version, deprecated
LOST = frozenset({15, 16, 28})  # GPU is lost, requires a reset, is not found
CLOSED = frozenset({1, 9, 12, 18})  # uninitialized, no driver, no library, versions of library and driver differ
ENABLED = 1


def driver_file(proc: Path) -> Path:
    """Return the file that exists while NVIDIA's driver is loaded."""
    return proc / "driver/nvidia/version"


class LostError(Exception):
    """This GPU fell off the bus, or needs a reset."""


@dataclass(frozen=True, slots=True)
class NvmlDevice:
    """A GPU, or a part of one that MIG made."""

    handle: Any
    uuid: str
    facts: dict[str, Scalar] = field(default_factory=dict)
    is_part: bool = False
    has_parts: bool = False


class NvmlSession:
    """Calls NVML. Not for several threads at once.

    Source: https://docs.nvidia.com/deploy/nvml-api/
    """

    def __init__(
        self, library: Any = None, clock: Callable[[], int] = time.monotonic_ns, *, proc: Path = Path("/proc")
    ) -> None:
        self.library = library
        self._proc = proc
        self.refusals = Refusals(clock)
        self._clock = clock
        self._opened_ns: int | None = None
        self._has_lost_one = False

    def devices(self) -> list[NvmlDevice]:
        """Return every GPU that answers, with its parts behind it. Raises: UnavailableError when there is none."""
        self._open()
        count = self._asked("nvmlDeviceGetCount") or 0
        driver = _text(self._asked("nvmlSystemGetDriverVersion"))
        devices = [device for index in range(count) for device in self._gpu(index, driver)]
        if not devices:
            raise UnavailableError(f"NVML: none of {count} GPUs answers")
        return devices

    def ask(self, device: NvmlDevice, call: str, *arguments: Any) -> Any:
        """Return the answer to a call about a device; None if there is none. Raises: LostError, UnavailableError."""
        question = (device.uuid, call, arguments)
        if self.refusals.holds(question):
            return None
        try:
            return getattr(self.library, call)(device.handle, *arguments)
        except AttributeError:  # an older nvidia-ml-py
            self.refusals.note(question)
        except self.library.NVMLError as error:
            self._judge(error)
            if error.value in UNKNOWN_TO_IT:
                self.refusals.note(question)
        return None

    def judge_code(self, code: int, name: str) -> None:
        """Raise the error that a return code stands for. Raises: LostError, UnavailableError."""
        if code in CLOSED:
            self.close()
            raise UnavailableError(f"NVML: {name}")
        if code in LOST:
            self._has_lost_one = True
            raise LostError(name)

    def close(self) -> None:
        """Close NVML; the next call opens it again."""
        if self._opened_ns is not None:
            self._opened_ns = None
            with suppress(self.library.NVMLError):
                self.library.nvmlShutdown()

    def _open(self) -> None:
        now_ns = self._clock()
        if self._opened_ns is not None and self._has_lost_one and now_ns - self._opened_ns > REOPEN_NS:
            self.close()
        if self._opened_ns is not None:
            return
        if self.library is None:
            self.library = _imported(self._proc)
        try:
            self.library.nvmlInit()
        except self.library.NVMLError as error:
            raise UnavailableError(f"NVML: {error}") from error
        self._opened_ns, self._has_lost_one = now_ns, False

    def _judge(self, error: Any) -> None:
        self.judge_code(error.value, str(error))

    def _asked(self, call: str, *arguments: Any) -> Any:
        try:
            return getattr(self.library, call)(*arguments)
        except (AttributeError, UnicodeDecodeError):  # it lacks the call, or decodes a text that is none
            return None
        except self.library.NVMLError as error:
            self._judge(error)
            return None

    def _gpu(self, index: int, driver: str) -> Iterator[NvmlDevice]:
        with suppress(LostError):
            handle = self._asked("nvmlDeviceGetHandleByIndex", index)
            uuid = _text(self._asked("nvmlDeviceGetUUID", handle)) if handle is not None else ""
            if not uuid:
                return
            facts: dict[str, Scalar] = {
                "index": index,
                "name": _text(self._asked("nvmlDeviceGetName", handle)) or None,
                "pci_bus_id": self._bus_id(handle),
                "driver_version": driver or None,
            }
            parts = self._parts(handle, uuid, facts)
            yield NvmlDevice(handle, uuid, _known(facts), has_parts=bool(parts))
            yield from parts

    def _bus_id(self, handle: Any) -> str | None:
        answer = self._asked("nvmlDeviceGetPciInfo", handle)
        return _text(answer.busId) or None if answer is not None else None

    def _parts(self, handle: Any, uuid: str, facts: dict[str, Scalar]) -> Sequence[NvmlDevice]:
        mode = self._asked("nvmlDeviceGetMigMode", handle)
        if not mode or mode[0] != ENABLED:
            return ()
        places = range(self._asked("nvmlDeviceGetMaxMigDeviceCount", handle) or 0)
        handles = [self._asked("nvmlDeviceGetMigDeviceHandleByIndex", handle, place) for place in places]
        return [
            part
            for part_handle in handles
            if part_handle is not None and (part := self._part(part_handle, uuid, facts))
        ]

    def _part(self, handle: Any, parent: str, facts: dict[str, Scalar]) -> NvmlDevice | None:
        uuid = _text(self._asked("nvmlDeviceGetUUID", handle))
        instance = (
            self._asked("nvmlDeviceGetGpuInstanceId", handle),
            self._asked("nvmlDeviceGetComputeInstanceId", handle),
        )
        if not uuid:
            return None
        own: dict[str, Scalar] = {"name": _text(self._asked("nvmlDeviceGetName", handle)) or None, "parent": parent}
        if None not in instance:
            own["mig_instance"] = f"{instance[0]}/{instance[1]}"
        return NvmlDevice(handle, uuid, _known(facts | own), is_part=True)


def _imported(proc: Path) -> Any:
    if not driver_file(proc).exists():  # most nodes have none, and need not load the library
        raise UnavailableError(f"{driver_file(proc)}: NVIDIA's driver is not loaded")
    try:
        return import_module("pynvml")
    except ImportError as error:
        raise UnavailableError(f"NVML: {error}; pip install 'crosswind[gpu]'") from error


def _text(answer: Any) -> str:
    if isinstance(answer, str):  # newer versions decode for us
        answer = answer.encode("utf-8", "surrogateescape")
    return printable(answer) if isinstance(answer, bytes) else ""


def _known(facts: dict[str, Scalar]) -> dict[str, Scalar]:
    return {name: value for name, value in facts.items() if value is not None}

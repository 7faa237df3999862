"""A session of AMD SMI: opened when first needed, kept open; refused calls are remembered."""

import io
import time
from collections.abc import Callable, Hashable
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import Scalar
from crosswind.ingest.gpu.refusals import Refusals
from crosswind.ingest.kernel.printable import printable

# Codes of amdsmi_status_t.
UNKNOWN_TO_IT = frozenset({1, 2, 3, 5, 10})  # arguments, support, implementation, symbol, permission
CLOSED = frozenset({32, 34, 51})  # not initialised, driver not loaded, no driver
NOT_KNOWN = "N/A"


@dataclass(frozen=True, slots=True)
class AmdDevice:
    """A GPU, or a partition of one."""

    handle: Any
    name: str
    facts: dict[str, Scalar] = field(default_factory=dict)


class AmdSession:
    """Calls AMD SMI. Not for several threads at once.

    Source: https://rocm.docs.amd.com/projects/amdsmi/en/docs-7.0.1/reference/amdsmi-py-api.html
    """

    def __init__(
        self, library: Any = None, sysfs: Path = Path("/sys"), clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self.library = library
        self.refusals = Refusals(clock)
        self._sysfs = sysfs
        self._is_open = False

    def devices(self) -> list[AmdDevice]:
        """Return every GPU that is listed. Raises: UnavailableError when there is none."""
        self._open()
        handles = self._asked("amdsmi_get_processor_handles") or []
        devices: dict[str, AmdDevice] = {}
        for index, handle in enumerate(handles):
            device = self._device(index, handle, devices)
            devices[device.name] = device
        if not devices:
            raise UnavailableError("AMD SMI: no GPU on this node")
        return list(devices.values())

    def ask(self, device: AmdDevice, call: str, *arguments: Any) -> Any:
        """Return the answer to a call about a device; None if there is none. Raises: UnavailableError."""
        question = (device.name, call, arguments)
        return None if self.refusals.holds(question) else self._asked(call, device.handle, *arguments, note=question)

    def close(self) -> None:
        """Close AMD SMI; the next call opens it again."""
        if self._is_open:
            self._is_open = False
            with suppress(self.library.AmdSmiException):
                self.library.amdsmi_shut_down()

    def _open(self) -> None:
        if self._is_open:
            return
        if not (self._sysfs / "module/amdgpu").is_dir():
            raise UnavailableError(f"{self._sysfs}/module/amdgpu: AMD's driver is not loaded")
        if self.library is None:
            self.library = _imported()
        try:
            self.library.amdsmi_init()
        except self.library.AmdSmiException as error:
            raise UnavailableError(f"AMD SMI: {_line(error)}") from error
        self._is_open = True

    def _asked(self, call: str, *arguments: Any, note: Hashable = None) -> Any:
        try:
            return getattr(self.library, call)(*arguments)
        except AttributeError:  # another version
            code: object = 2
        except self.library.AmdSmiException as error:
            code = getattr(error, "err_code", None)
            if code in CLOSED:
                self.close()
                raise UnavailableError(f"AMD SMI: {_line(error)}") from error
        if note is not None and code in UNKNOWN_TO_IT:
            self.refusals.note(note)
        return None

    def _device(self, index: int, handle: Any, devices: dict[str, AmdDevice]) -> AmdDevice:
        place = _text(self._asked("amdsmi_get_gpu_device_bdf", handle))
        name = _text(self._asked("amdsmi_get_gpu_device_uuid", handle)) or place or f"gpu{index}"
        if name in devices:  # partitions of one GPU may share its UUID
            name = f"{name}/{place or index}"
        model = self._asked("amdsmi_get_gpu_asic_info", handle) or {}
        driver = self._asked("amdsmi_get_gpu_driver_info", handle) or {}
        facts: dict[str, Scalar] = {
            "index": index,
            "name": _text(model.get("market_name")),
            "pci_bus_id": place,
            "driver_version": _text(driver.get("driver_version")),
        }
        return AmdDevice(handle, name, {key: value for key, value in facts.items() if value not in (None, "")})


def _imported() -> Any:
    try:
        with redirect_stdout(io.StringIO()):  # it prints that it finds no library
            return import_module("amdsmi")
    except Exception as error:
        raise UnavailableError(f"AMD SMI: cannot import amdsmi: {type(error).__name__}: {_line(error)}") from error


def _text(answer: object) -> str:
    return printable(answer.encode("utf-8", "replace")) if isinstance(answer, str) and answer != NOT_KNOWN else ""


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]

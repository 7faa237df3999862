"""Facts about this node by the kernel's files: its accelerators, their driver, its processors and network."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from crosswind.ingest.kernel.printable import printable

FILE_MAX = 16_384  # bytes: of /proc/cpuinfo, the first processors; the other files are short
AMD, DISPLAY = "0x1002", "0x03"  # vendor, and class of display controllers and their kind
DRIVER = re.compile(r"\b(\d{3,4}\.\d+(?:\.\d+)*)\b")
ACCELERATORS = ("dev/accel", "sys/class/accel", "dev/kfd", "proc/driver/nvidia/gpus", "dev/nvidiactl", "dev/hl0")
Fact = str | int


@lru_cache(maxsize=4)
def node_facts(root: Path = Path("/")) -> MappingProxyType[str, Fact]:
    """Return the facts that this node's files state, by their names in `Facts`; a few milliseconds, once a process.

    `accelerators_per_node` counts the node's, not the job's; it is 0 where no trace of any is found.
    """
    nvidia, amd = list(_nvidia(root)), list(_amd(root))
    stated: dict[str, Fact | None] = {
        "accelerator": _most_frequent([*nvidia, *amd]),
        "accelerators_per_node": len(nvidia) + len(amd) or (0 if _has_none(root) else None),
        "driver": _nvidia_driver(root) if nvidia else _text(root / "sys/module/amdgpu/version") if amd else None,
        "processor": _processor(root),
        "processors_per_node": _sockets(root),
        "interconnect": _network(root),
    }
    return MappingProxyType({name: value for name, value in stated.items() if value not in (None, "")})


def _nvidia(root: Path) -> Iterator[str]:
    """Models as the driver names them. Source: NVIDIA driver README, "The /proc file system interface"."""
    for file in _paths(root, "proc/driver/nvidia/gpus/*/information"):
        if model := re.search(r"^Model:[ \t]*(.+)$", _text(file), re.MULTILINE):
            yield model[1].strip()


def _amd(root: Path) -> Iterator[str]:
    """Product names of cards with AMD's compute driver. Source: docs.kernel.org/gpu/amdgpu/driver-misc.html."""
    for device in _paths(root, "sys/class/drm/card*/device"):
        if _text(device / "vendor") == AMD and (name := _text(device / "product_name")):
            yield name


def _nvidia_driver(root: Path) -> str | None:
    match = DRIVER.search(_text(root / "proc/driver/nvidia/version").partition("\n")[0])
    return match[1] if match else None


def _has_none(root: Path) -> bool:
    """Return whether this node shows no sign of an accelerator that the files above would not name."""
    return not any((root / path).exists() for path in ACCELERATORS)


def _processor(root: Path) -> str | None:
    match = re.search(r"^(?:model name|cpu)[ \t]*:[ \t]*(.+)$", _text(root / "proc/cpuinfo"), re.MULTILINE)
    return match[1].strip() if match else None


def _sockets(root: Path) -> int | None:
    packages = _paths(root, "sys/devices/system/cpu/cpu[0-9]*/topology/physical_package_id")
    return len({_text(file) for file in packages} - {"", "-1"}) or None


def _network(root: Path) -> str | None:
    """The active ports of the fastest kind: `4x InfiniBand 400 Gb/sec (4X NDR)`."""
    if slingshot := len(_paths(root, "sys/class/cxi/cxi*")):
        return f"{slingshot}x Slingshot"
    ports = Counter(_port(port) for port in _paths(root, "sys/class/infiniband/*/ports/*"))
    del ports[""]
    if not ports:
        return None
    kind, count = max(ports.items(), key=lambda item: (_gigabits(item[0]), item[1]))
    return f"{count}x {kind}"


def _port(port: Path) -> str:
    if "ACTIVE" not in _text(port / "state"):
        return ""
    layer = _text(port / "link_layer") or "InfiniBand"
    family = "Omni-Path" if "hfi1" in str(port) else "RoCE" if layer == "Ethernet" else layer
    return f"{family} {_text(port / 'rate')}".strip()


def _gigabits(kind: str) -> float:
    match = re.search(r"([\d.]+) Gb/sec", kind)
    return float(match[1]) if match else 0.0


def _most_frequent(names: Iterable[str]) -> str | None:
    counts = Counter(names).most_common(1)
    return counts[0][0] if counts else None


def _paths(root: Path, pattern: str) -> list[Path]:
    try:
        return sorted(root.glob(pattern))
    except OSError:
        return []


def _text(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            content = stream.read(FILE_MAX)
    except OSError:
        return ""
    return "\n".join(printable(line) for line in content.replace(b"\t", b" ").splitlines()).strip()

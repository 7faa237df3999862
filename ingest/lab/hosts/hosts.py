"""Several hosts on one machine: a network namespace each, on a bridge in a namespace of its own.

The machine's own network does not change. Everything has the lab's name, so that two labs can exist side by side and
the remains of a killed one can be recognised.
"""

import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.ingest.lab.hosts import cgroups
from crosswind.ingest.lab.hosts.names import NAMESPACES, PREFIX, PROC, is_abandoned, new_name
from crosswind.ingest.lab.hosts.programs import ask, program, require_lab
from crosswind.ingest.lab.hosts.wire import Wire

MOST = 200
MTU_BYTES = 9000  # as in clusters; the wire moves six times as much as with 1500
END_SECONDS = 10.0
# `ip netns exec` would show the namespace's own /sys, too, but without the control groups below it.
ENTER = (
    "mount -t sysfs sysfs /mnt; mount --rbind /sys/fs/cgroup /mnt/fs/cgroup; "
    'mount --rbind /mnt /sys; umount -l /mnt; exec "$@"'
)


@dataclass(frozen=True)
class Host:
    """A network namespace with one device, connected to a port of the bridge."""

    lab: str
    index: int
    wire: Wire | None = None  # between the device and the port; without one they are a veth pair
    megabits: float | None = None  # per second, the speed of the link; none: unlimited
    device: str = "eth0"

    @property
    def namespace(self) -> str:
        """Return its name for ip-netns(8)."""
        return f"{self.lab}-{self.index}"

    @property
    def bridge(self) -> str:
        """Return the namespace of the bridge."""
        return f"{self.lab}-net"

    @property
    def port(self) -> str:
        """Return the device on the bridge's side."""
        return f"port{self.index}"

    @property
    def address(self) -> str:
        """Return the address at which the other hosts reach it."""
        return f"10.77.0.{self.index + 1}"

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command that runs this one inside: as the same process, with the host's own /sys/class/net."""
        inside = [program("nsenter"), f"--net={NAMESPACES / self.namespace}", program("unshare"), "--mount"]
        return [*inside, "/bin/sh", "-ec", ENTER, "sh", *argv]


@contextmanager
def hosts(count: int, *, wired: Sequence[int] = (), megabits: float | None = None) -> Iterator[tuple[Host, ...]]:
    """Make as many connected hosts; those in `wired` have a wire that can delay.

    All processes in them are killed at the end. Raises: InvalidInputError, UnavailableError.
    """
    if not 1 <= count <= MOST or not set(wired) <= set(range(count)):
        raise InvalidInputError(f"count {count}, wired {list(wired)}: expected 1 to {MOST} hosts and some of them")
    require_lab()
    lab = new_name()
    namespaces = [f"{lab}-net", *(f"{lab}-{index}" for index in range(count))]
    with ExitStack() as at_end:
        at_end.callback(cgroups.remove, lambda name: name.startswith(lab))
        at_end.callback(remove_namespaces, namespaces)
        ask("ip", "-batch", "-", lines=[f"netns add {namespace}" for namespace in namespaces])
        ask("ip", "-n", f"{lab}-net", "-batch", "-", lines=_bridge())
        net = [
            Host(lab, index, _wire(lab, index, at_end) if index in wired else None, megabits) for index in range(count)
        ]
        for host in net:
            _connect(host)
        yield tuple(net)


def _bridge() -> list[str]:
    return ["link set lo up", f"link add bridge mtu {MTU_BYTES} type bridge", "link set bridge up"]


def _wire(lab: str, index: int, at_end: ExitStack) -> Wire:
    host = Host(lab, index)
    wire = Wire.between(host.bridge, host.port, host.namespace, host.device)
    at_end.callback(wire.cut)
    return wire


def _connect(host: Host) -> None:
    lines = [f"link set {host.port} mtu {MTU_BYTES} master bridge up"]
    if host.wire is None:
        # One packet a frame: a loss is that of a frame, as on a real wire, not of up to 64 KiB before segmentation.
        veth = f"link add {host.port} gso_max_segs 1 type veth peer name {host.device} gso_max_segs 1"
        lines.insert(0, f"{veth} netns {host.namespace}")
    ask("ip", "-n", host.bridge, "-batch", "-", lines=lines)
    inside = [
        "link set lo up",
        f"addr add {host.address}/24 dev {host.device}",
        f"link set {host.device} mtu {MTU_BYTES} up",
    ]
    ask("ip", "-n", host.namespace, "-batch", "-", lines=inside)
    if host.megabits is not None:
        limit_rate(host, host.megabits)


def limit_rate(host: Host, megabits: float | None) -> None:
    """Set the speed of both ends of a host's link, in Mbit/s; None for no limit. Raises: UnavailableError.

    Source: tc-tbf(8); the bucket holds the bytes of 2 ms, but at least two frames.
    """
    for namespace, device in ((host.namespace, host.device), (host.bridge, host.port)):
        if megabits is None:
            ask("tc", "-n", namespace, "qdisc", "del", "dev", device, "root")
        else:
            burst_bytes = max(2 * MTU_BYTES, round(megabits * 1e6 / 8 * 0.002))
            shape = f"tbf rate {round(megabits * 1e6)}bit burst {burst_bytes} latency 100ms"
            ask("tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", *shape.split())


def remove_abandoned() -> list[str]:
    """Remove what killed labs left in the kernel, with its processes. Return the names. Raises: UnavailableError."""
    require_lab()
    abandoned = [path.name for path in NAMESPACES.glob(f"{PREFIX}*") if is_abandoned(path.name)]
    remove_namespaces(abandoned)
    return abandoned + cgroups.remove(is_abandoned)


def remove_namespaces(namespaces: Iterable[str]) -> None:
    """Kill all processes in these namespaces, and remove them. Raises: UnavailableError."""
    there = [namespace for namespace in namespaces if (NAMESPACES / namespace).exists()]
    _kill_all_in(there)
    if there:
        ask("ip", "-force", "-batch", "-", lines=[f"netns del {namespace}" for namespace in there])


def _kill_all_in(namespaces: Iterable[str]) -> None:
    files = {(NAMESPACES / namespace).stat().st_ino for namespace in namespaces}
    deadline = time.monotonic() + END_SECONDS
    while pids := [pid for pid in _pids() if _namespace_of(pid) in files]:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise UnavailableError(f"processes {pids}: still there {END_SECONDS:g} s after they were killed")
        time.sleep(0.005)


def _pids() -> list[int]:
    return [int(path.name) for path in PROC.iterdir() if path.name.isdigit() and int(path.name) != os.getpid()]


def _namespace_of(pid: int) -> int | None:
    """Return the network namespace of a process; None if it has ended, reaped or not."""
    try:
        return (PROC / str(pid) / "ns" / "net").stat().st_ino
    except OSError:
        return None

"""Cost of the agent at 1 and 10 Hz, spooling included, beside prometheus-node-exporter scraped in the same seconds.

Eight idle processes are announced as ranks, and as root all of it runs in a network namespace with as many veth
interfaces as a sweep of a thousand values takes. In every other slice a sender drives traffic through half of them, and
those slices give the figures; what the agent pays for interfaces at rest, whose rows it keeps, stands beside. CPU time
is what the scheduler counted for all threads of a program; lateness is what the agent itself recorded. The reader is
what no Python program can go below: it reads the files that the agent keeps open, as often, and does no more.

Where a host lends its memory and cores to others as well, a guest that slept pays for every page that it touches again,
which a program at 1 Hz pays in full: the cost of a page is given, and all programs are also measured at a pace at which
pages stay warm, as they do on a node of its own. Of several slices the least disturbed one is given, with the median
behind it.
"""

import json
import os
import platform
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from crosswind.ingest.spool.registration import announce
from crosswind.ingest.spool.spool import RowsFrame, read_segment

SECONDS = 5.0  # of a slice
SLICES = 4  # with traffic, and as many without
WARM = 50
WANTED_VALUES = 1000
RANKS = 8
PAIRS = 2  # of interfaces, made at a time
MOST_PAIRS = 40
APART = "CROSSWIND_BENCHMARK_APART"
EXPORTER = "prometheus-node-exporter"
READER = """
import os, sys, time
interval, *paths = sys.argv[1:]
fds = []
for path in paths:
    try:
        fds.append(os.open(path, os.O_RDONLY))
    except OSError:  # of a process that has ended
        pass
while True:
    time.sleep(float(interval) - time.time() % float(interval))
    for fd in fds:
        try:
            os.pread(fd, 65536, 0)
        except OSError:
            pass
"""
SENDER = """
import socket, sys, time
interval, *names = sys.argv[1:]
sockets = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW) for name in names]
for each, name in zip(sockets, names):
    each.bind((name, 0))
while True:
    for each in sockets:
        each.send(b"\\xff" * 6 + b"\\2\\0\\0\\0\\0\\1" + b"\\x88\\xb5" + bytes(46))
    time.sleep(float(interval))
"""
AGENT = (sys.executable, "-m", "crosswind.cli.main", "agent")


@dataclass(frozen=True)
class Cost:
    """CPU seconds a second in the least disturbed slice and in the median one, values a second, resident bytes."""

    cpu_share: float
    median_share: float
    values_per_second: float
    resident_bytes: int

    @property
    def microseconds_per_value(self) -> float:
        return self.cpu_share / self.values_per_second * 1e6


@dataclass(frozen=True)
class Measured:
    """Costs of each program in slices with traffic, of the agent also without, and how late its sweeps were."""

    agent: Cost
    idle: Cost
    reader: Cost
    exporter: Cost | None
    lateness: list[float]


def main() -> None:
    if os.geteuid() == 0 and shutil.which("ip") and APART not in os.environ:
        script = 'ip link set lo up && exec "$0" -m benchmarks agent'
        apart = ("unshare", "--net", "sh", "-c", script, sys.executable)
        subprocess.run(apart, check=True, env=os.environ | {APART: "1"})
        return
    with tempfile.TemporaryDirectory() as folder, sleepers(Path(folder)), interfaces(Path(folder)) as pairs:
        print(
            f"{RANKS} idle processes stand for ranks, {2 * pairs} veth interfaces, traffic through half of them; "
            f"{SLICES} slices of {SECONDS:.0f} s"
        )
        print(f"{'':<24} {'CPU of a core':>17} {'values/s':>10} {'us/value':>9} {'memory':>8} {'lateness p50/p99':>20}")
        figures: dict[str, object] = {}
        print(page_costs())
        for hertz, scrapes in ((1, 1), (10, 1), (50, 20)):
            costs = measured(Path(folder), hertz, scrapes, pairs)
            agent, idle, reader, exporter = costs.agent, costs.idle, costs.reader, costs.exporter
            row(f"agent at {hertz} Hz", agent, costs.lateness)
            row("  interfaces at rest", idle)
            row("reader of its files", reader)
            figures |= {
                f"agent_{hertz}hz_cpu_ratio": round(agent.cpu_share, 5),
                f"agent_{hertz}hz_at_rest_cpu_ratio": round(idle.cpu_share, 5),
                f"reader_{hertz}hz_cpu_ratio": round(reader.cpu_share, 5),
                f"agent_{hertz}hz_median_cpu_ratio": round(agent.median_share, 5),
                f"agent_{hertz}hz_values_per_sweep": round(agent.values_per_second / hertz),
                f"agent_{hertz}hz_microseconds_per_value": round(agent.microseconds_per_value, 2),
                f"agent_{hertz}hz_at_rest_microseconds_per_value": round(idle.microseconds_per_value, 2),
                f"agent_{hertz}hz_resident_bytes": agent.resident_bytes,
                f"agent_{hertz}hz_lateness_p99_seconds": round(percentile(costs.lateness, 0.99), 5),
            }
            if exporter:
                row(f"node_exporter at {scrapes} Hz", exporter)
                ratio = exporter.microseconds_per_value / agent.microseconds_per_value
                print(f"{'':<24} node_exporter costs {ratio:.1f} x as much a value")
                figures |= {
                    f"exporter_beside_{hertz}hz_microseconds_per_value": round(exporter.microseconds_per_value, 2),
                    f"exporter_over_agent_{hertz}hz": round(ratio, 2),
                }
            if hertz == WARM:
                print(f"{'':<24} warm, 1000 values cost {agent.microseconds_per_value / 10:.3f} % of a core at 1 Hz")
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(json.dumps(figures | {"ranks": RANKS, "interfaces": 2 * pairs, "machine": machine}))


def page_costs() -> str:
    """Return a line that says what touching a page of memory costs at once and after a second."""
    memory = bytearray(8 * 2**20)
    costs = []
    for seconds in (0.0, 1.0):
        memory[::4096]
        time.sleep(seconds)
        begin = time.thread_time()
        memory[::4096]
        costs.append((time.thread_time() - begin) / (len(memory) / 4096) * 1e9)
    return f"touching a page of memory costs {costs[0]:.0f} ns at once, and {costs[1]:.0f} ns after a second"


def measured(folder: Path, hertz: int, scrapes: int, pairs: int) -> Measured:
    spool, interval = folder / f"spool-{hertz}", str(1 / hertz)
    with ExitStack() as stack:
        exporter = stack.enter_context(node_exporter()) if shutil.which(EXPORTER) else None
        agent = stack.enter_context(
            program((*AGENT, "--spool", str(spool), "--run-dir", str(folder), "--interval", interval))
        )
        names = [f"a{number}" for number in range(0, pairs, 2)]
        sender = stack.enter_context(program((sys.executable, "-c", SENDER, str(0.4 / hertz), *names)))
        time.sleep(5)  # until absent sources are left alone
        reader = stack.enter_context(program((sys.executable, "-c", READER, interval, *kernel_files_of(agent.pid))))
        pids = [agent.pid, reader.pid, *([exporter[0]] if exporter else [])]
        slices, at_rest = [], []
        for _ in range(SLICES):
            slices.append(measured_slice(pids, exporter[1] if exporter else None, scrapes))
            with stopped(sender):
                at_rest.append(measured_slice(pids, exporter[1] if exporter else None, scrapes))
        memory = [resident(pid) for pid in pids]
        agent.terminate()
        agent.wait(20)
    values, lateness = spooled(spool)
    rates = [values * hertz, values * hertz, statistics.median(samples for _, samples in slices)]
    costs = [
        cost_of([shares[place] for shares, _ in slices], rates[place], memory[place]) for place in range(len(pids))
    ]
    idle = cost_of([shares[0] for shares, _ in at_rest], rates[0], memory[0])
    return Measured(costs[0], idle, costs[1], costs[2] if exporter else None, lateness)


@contextmanager
def stopped(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def kernel_files_of(pid: int) -> list[str]:
    """The files below /proc and /sys that a process keeps open."""
    opened = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}
    return sorted(path for path in opened if path.startswith(("/proc/", "/sys/")))


def cost_of(shares: list[float], values_per_second: float, resident_bytes: int) -> Cost:
    return Cost(min(shares), statistics.median(shares), values_per_second, resident_bytes)


def measured_slice(pids: list[int], url: str | None, scrapes: int) -> tuple[list[float], float]:
    """The share of a core that each program took for SECONDS, and the samples a second that the exporter gave."""
    before, begin = [cpu_seconds(pid) for pid in pids], time.monotonic()
    samples, until = 0, begin + SECONDS
    while (now := time.monotonic()) < until:
        if url:
            with urllib.request.urlopen(url, timeout=10) as answer:
                samples += sum(1 for line in answer if not line.startswith(b"#"))
        time.sleep(max(0.0, min(now + 1 / scrapes, until) - time.monotonic()))
    passed = time.monotonic() - begin
    return [(cpu_seconds(pid) - spent) / passed for pid, spent in zip(pids, before, strict=True)], samples / passed


def spooled(spool: Path) -> tuple[float, list[float]]:
    """Median values a sweep, keys not counted, and the lateness of each sweep."""
    by_sweep: list[int] = []
    lateness, values = [], 0
    for path in sorted(spool.glob("*.segment")):
        for frame in read_segment(path):
            if not isinstance(frame, RowsFrame):
                continue
            keys = ("ts_ns", "mono_ns", "node", "device", "boot_id")
            values += sum(
                sum(value is not None for value in column) for name, column in frame.columns.items() if name not in keys
            )
            if frame.metric_set.name == "agent":  # the last set of a sweep
                lateness += [float(str(late)) for late in frame.columns["lateness_seconds"] if late is not None]
                by_sweep.append(values)
                values = 0
    return statistics.median(by_sweep[3:]), lateness[3:]


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def row(name: str, cost: Cost, lateness: list[float] | None = None) -> None:
    late = f"{percentile(lateness, 0.5) * 1e3:7.2f} /{percentile(lateness, 0.99) * 1e3:7.2f} ms" if lateness else ""
    shares = f"{cost.cpu_share:7.3%} ({cost.median_share:7.3%})"
    print(
        f"{name:<24} {shares} {cost.values_per_second:10.0f} {cost.microseconds_per_value:9.2f} "
        f"{cost.resident_bytes / 2**20:4.0f} MiB {late:>20}"
    )


def cpu_seconds(pid: int) -> float:
    """Time that all threads of a process, ended ones left out, ran on a core."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) * 1e-9


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def program(command: tuple[str, ...]) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def node_exporter() -> Iterator[tuple[int, str]]:
    """The pid of a node exporter with its default collectors, and where it shows its metrics."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    with program((EXPORTER, f"--web.listen-address={address}", "--log.level=error")) as process:
        yield process.pid, f"http://{address}/metrics"


@contextmanager
def sleepers(folder: Path) -> Iterator[None]:
    """Announces idle processes as ranks."""
    with ExitStack() as stack:
        for rank in range(RANKS):
            sleeper = stack.enter_context(program(("sleep", "3600")))
            announce(folder, run_id="idle", rank=rank, node="here", pid=sleeper.pid)
        yield


@contextmanager
def interfaces(folder: Path) -> Iterator[int]:
    """Makes pairs of interfaces, which go with the namespace, until a sweep holds enough values; says how many."""
    pairs = 0
    while APART in os.environ and pairs < MOST_PAIRS and values_now(folder) < WANTED_VALUES:
        for number in range(pairs, pairs + PAIRS):
            names = (f"a{number}", f"b{number}")
            subprocess.run(("ip", "link", "add", names[0], "type", "veth", "peer", "name", names[1]), check=True)
            for name in names:
                subprocess.run(("ip", "link", "set", name, "up"), check=True)
        pairs += PAIRS
    yield pairs


def values_now(folder: Path) -> float:
    """Values of a sweep at 10 Hz, where slower sources are seldom due."""
    with tempfile.TemporaryDirectory() as spool:
        command = (*AGENT, "--spool", spool, "--run-dir", str(folder), "--interval", "0.1")
        with program(command):
            time.sleep(2.5)
        return spooled(Path(spool))[0]


if __name__ == "__main__":
    main()

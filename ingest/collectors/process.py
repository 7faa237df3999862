"""Processes of watched runs: resources used, and the time that they waited for a core."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet, Sample
from crosswind.ingest.collectors.row import Row, samples_of
from crosswind.ingest.collectors.source import Source, no_pids
from crosswind.ingest.kernel.fd_limits import OUT_OF_FILES
from crosswind.ingest.kernel.kernel_files import KernelFiles, OutOfFilesError, unavailable
from crosswind.ingest.kernel.procfs import NamedLines, counts, stat_fields

Nanoseconds = tuple[int, int]  # run, waited
NEVER: Nanoseconds = (-1, -1)
TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")


def _nanoseconds(name: str, description: str) -> Column:
    return Column(name, description, Kind.COUNTER, unit="seconds", scale=1e-9)


# The place of each column among the fields of /proc/<pid>/stat from the state on.
STAT = {
    7: Column("minor_page_faults_total", "page faults served from memory, ended threads included", Kind.COUNTER),
    9: Column("major_page_faults_total", "page faults that waited for a disk", Kind.COUNTER),
    11: Column("user_seconds_total", "run in the program", Kind.COUNTER, unit="seconds", scale=TICK_SECONDS),
    12: Column("system_seconds_total", "run in the kernel", Kind.COUNTER, unit="seconds", scale=TICK_SECONDS),
    17: Column("threads", "living threads"),
    19: Column("start_ticks", "start in clock ticks since boot; a pid used again has another", Kind.EPOCH),
}
SCHEDULE = (
    _nanoseconds("run_seconds_total", "its threads ran on a core, summed"),
    _nanoseconds("run_queue_wait_seconds_total", "its threads were ready and waited for a core, summed"),
    _nanoseconds("main_thread_run_seconds_total", "its main thread ran on a core"),
    _nanoseconds("main_thread_run_queue_wait_seconds_total", "its main thread was ready and waited for a core"),
)
STATUS = {
    b"VmRSS": Column("resident_bytes", "memory in use", unit="bytes", scale=1024),
    b"voluntary_ctxt_switches": Column(
        "main_thread_voluntary_context_switches_total", "times it gave up its core to wait", Kind.COUNTER
    ),
    b"nonvoluntary_ctxt_switches": Column(
        "main_thread_involuntary_context_switches_total", "times its core was taken away", Kind.COUNTER
    ),
}
IO = {
    b"rchar": Column("read_bytes_total", "asked of read calls, cache hits included", Kind.COUNTER, unit="bytes"),
    b"wchar": Column("written_bytes_total", "handed to write calls", Kind.COUNTER, unit="bytes"),
    b"read_bytes": Column("storage_read_bytes_total", "fetched from storage", Kind.COUNTER, unit="bytes"),
    b"write_bytes": Column("storage_written_bytes_total", "sent to storage", Kind.COUNTER, unit="bytes"),
}
STAT_FIELDS = itemgetter(*STAT)
START = list(STAT).index(19)  # among STAT
THREADS = list(STAT).index(17)
STATUS_LINES = NamedLines(STATUS)
IO_LINES = NamedLines(IO)
PROCESS = MetricSet(
    "process",
    "watched processes; the device is the pid",
    (*STAT.values(), *SCHEDULE, *STATUS.values(), *IO.values()),
)
NAMES = tuple(column.name for column in PROCESS.columns)


@dataclass
class _Ledger:
    """Nanoseconds that the threads of one process ran and waited.

    The kernel shows only living threads. The last values of ended ones are kept, so that the sums never fall.
    """

    start_ticks: int
    living: Mapping[str, Nanoseconds] = field(default_factory=dict)
    ended: Nanoseconds = (0, 0)
    thread_count: int = 0  # the number of threads at the last look

    def totals(self, living: Mapping[str, Nanoseconds], thread_count: int) -> Nanoseconds:
        """Return run and wait over all threads seen so far, given those that live now."""
        self.thread_count = thread_count
        run, waited = self.ended
        for thread, seen in self.living.items():
            if living.get(thread, NEVER) < seen:
                run, waited = run + seen[0], waited + seen[1]
        self.ended, self.living = (run, waited), living
        for run_now, waited_now in living.values():
            run, waited = run + run_now, waited + waited_now
        return run, waited


@dataclass(frozen=True)
class ProcessCollector:
    """Time, memory, faults, switches and bytes of each watched process.

    Source: proc_pid_stat(5), proc_pid_status(5), proc_pid_io(5); https://docs.kernel.org/scheduler/sched-stats.html
    """

    pids: Callable[[], Iterable[int]] = no_pids
    proc: Path = Path("/proc")
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    metric_set: ClassVar[MetricSet] = PROCESS
    _ledgers: dict[int, _Ledger] = field(default_factory=dict, init=False, repr=False, compare=False)

    def available(self) -> bool:
        """Return whether the kernel shows processes."""
        return self.proc.is_dir()

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every living process, without hidden values. Raises: UnavailableError, MalformedError."""
        return samples_of(self.read_rows(), NAMES)

    def read_rows(self) -> list[Row]:
        """Return a row for every living process. Raises: UnavailableError, MalformedError."""
        if not self.proc.is_dir():
            raise UnavailableError(f"{self.proc}: expected the kernel's process files")
        pids = list(self.pids())
        for ended in self._ledgers.keys() - set(pids):
            del self._ledgers[ended]
            self.files.forget(f"{self.proc}/{ended}")
        rows = []
        for pid in pids:
            try:
                rows.append(self._row(pid))
            except OutOfFilesError:  # no fault of the process
                raise
            except UnavailableError:  # it has ended
                self._ledgers.pop(pid, None)
                self.files.forget(f"{self.proc}/{pid}")
        return rows

    def _row(self, pid: int) -> Row:
        device = str(pid)
        folder = f"{self.proc}/{device}"
        # Files that may be hidden come first: when the last file is read, the process was there all the while.
        ledger = self._ledgers.get(pid)
        threads = self._threads(folder, ledger)
        status = self._lines(f"{folder}/status", STATUS_LINES)
        written = self._lines(f"{folder}/io", IO_LINES)
        stat = self._stat(f"{folder}/stat")
        if device not in threads:
            return device, *stat, None, None, None, None, *status, *written
        if ledger is None or ledger.start_ticks != stat[START]:
            ledger = self._ledgers[pid] = _Ledger(stat[START])
        for ended in ledger.living.keys() - threads.keys():
            self.files.forget(f"{folder}/task/{ended}")
        return device, *stat, *ledger.totals(threads, stat[THREADS]), *threads[device], *status, *written

    def _stat(self, path: str) -> list[int]:
        return counts(STAT_FIELDS(stat_fields(self.files.read(path), path)), path)

    def _lines(self, path: str, lines: NamedLines) -> Sequence[int | None]:
        try:
            content = self.files.read(path)
        except OutOfFilesError:
            raise
        except UnavailableError:  # another user's process, or an older kernel
            return (None,) * len(lines)
        return lines.read(content, path)

    def _threads(self, folder: str, ledger: _Ledger | None) -> dict[str, Nanoseconds]:
        """Return nanoseconds run and waited by each living thread; the process's own file has its main thread alone.

        They are listed when their number changed, or one of them cannot be read: one that is listed all the same keeps
        its last values.
        """
        living = ledger.living if ledger else {}
        if ledger is not None and len(living) == ledger.thread_count:
            times = self._read_threads(folder, living)
            if len(times) == len(living):
                return times
        try:
            names = os.listdir(f"{folder}/task")  # noqa: PTH208 - a path object would cost more than the read
        except OSError as error:
            if error.errno in OUT_OF_FILES:
                raise unavailable(f"{folder}/task", error) from error
            return {}  # the process has ended
        last_seen = {name: living[name] for name in names if name in living}
        return last_seen | self._read_threads(folder, names)

    def _read_threads(self, folder: str, names: Iterable[str]) -> dict[str, Nanoseconds]:
        times = {}
        for thread in names:
            path = f"{folder}/task/{thread}/schedstat"
            try:
                times[thread] = _run_and_wait(self.files.read(path), path)
            except OutOfFilesError:
                raise
            except UnavailableError:  # it has just ended, or this kernel keeps no schedstats
                continue
        return times


def _run_and_wait(content: bytes, path: str) -> Nanoseconds:
    fields = content.split()
    if len(fields) != 3:
        raise MalformedError(f"{path}: expected 3 numbers, found {fields!r:.80}")
    run, waited = counts(fields[:2], path)
    return run, waited


SOURCE = Source("process", lambda host, _: ProcessCollector(host.pids, host.proc, host.files), advice="mount /proc")

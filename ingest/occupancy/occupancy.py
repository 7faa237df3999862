"""The jobs and ranks on this node now, and the changes since the last look."""

import logging
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError
from crosswind.data.schema.occupancy import Allocation, Placement, Source, merge_places
from crosswind.ingest.kernel.fd_limits import is_exhausted
from crosswind.ingest.kernel.kernel_files import KernelFiles
from crosswind.ingest.kernel.procfs import started_ticks
from crosswind.ingest.occupancy.environment import NOBODY
from crosswind.ingest.occupancy.job_files import JobFile, JobFiles
from crosswind.ingest.occupancy.processes import TICKS, YOUNG_TICKS, Process, Processes
from crosswind.ingest.occupancy.ranks import Tree, passes_on, ranks_among
from crosswind.ingest.spool.registration import Announcement, announced, changed_ns

LOG = logging.getLogger("crosswind.agent")
MAX_NEWS = 10_000  # records that wait; the spool would have to refuse them for a long time
MAX_JOBS = 1024  # a user may name any job in any number of processes
MAX_RANKS = 4096
LOOK_SECONDS = 5.0  # between looks at all processes
IDLE_LOOK_SECONDS = 15.0  # while there are no new ones
ANNOUNCED_SECONDS = 20.0  # announcements that nothing seems to have touched are read again after so long
CLOCK_SET_NS = 100_000_000  # a smaller difference is that of two readings of two clocks
NANOSECONDS = 1_000_000_000
Record = tuple[str, Mapping[str, object]]
AllocationKey = tuple[str, str, str, int]  # system, job, node, restarts
ProcessKey = tuple[int, int]  # pid, start ticks


def boot_ns() -> int:
    """Return the time of this node's start, UTC: finer than the whole seconds of btime in /proc/stat."""
    return time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)


@dataclass(frozen=True)
class Seen:
    """The jobs and ranks on the node now."""

    job_ids: tuple[str, ...] = ()
    ranks: int = 0
    unreadable_processes: int = 0
    garbled_files: int = 0
    lost_records_total: int = 0  # since the agent's start
    reason: str | None = None  # why nothing could be seen


class Occupancy:
    """The jobs and ranks of this node, from job files, announcements and the environments of processes.

    `node` is the name under which the agent samples this node. Not for several threads at once.
    """

    def __init__(
        self,
        node: str,
        *,
        proc: Path = Path("/proc"),
        run_directory: Path | None = None,
        job_directory: Path | None = None,
    ) -> None:
        self.seen = Seen()
        self._node = node
        self._system = os.environ.get("CROSSWIND_SYSTEM", "")
        # An agent inside a job is of one slurmd alone, which may share the host with others.
        self._slurmd = None if "CROSSWIND_NODE" in os.environ else os.environ.get("SLURMD_NODENAME")
        self._proc = proc
        self._run_directory = run_directory
        self._processes = Processes(str(proc))
        self._job_files = None if job_directory is None else JobFiles(job_directory, node, self._system)
        self._boot_ns = boot_ns()
        self._undecided: list[int] = []
        self._programs: set[ProcessKey] = set()  # neither a shell nor a launcher
        self._announced: dict[int, Announcement] = {}
        self._announced_ns: int | None = None  # when one last came or went, as of the last reading
        self._announced_at = float("-inf")
        self._files = KernelFiles()
        self._folders_ns: tuple[int | None, ...] = ()
        self._refreshed_at = float("-inf")
        self._newest = b""
        self._garbled_announcements = 0
        self._jobs: dict[AllocationKey, Allocation] = {}  # by environment
        self._placed: dict[ProcessKey, Placement] = {}
        self._refused: set[str] = set()
        self._filed: dict[str, Allocation] = {}
        self._news: deque[tuple[str, Allocation | Placement, JobFile | None]] = deque()
        self._lost_records = 0
        self._is_behind = True  # the last look may have been cut short

    def look(self, *, now: bool = False) -> None:
        """Refresh at once when a file of a job or rank came or went or a rank ended, else every few seconds.

        A refresh goes through all processes: on an idle node most of an agent's work. `now` forces one.
        """
        folders, newest, at = self._folders_changed(), self._newest_pid(), time.monotonic()
        is_idle = newest == self._newest and not self._undecided and not self._processes.has_young
        is_due = at - self._refreshed_at >= (IDLE_LOOK_SECONDS if is_idle else LOOK_SECONDS)
        if now or folders != self._folders_ns or is_due or self._has_ended_ranks():
            self._folders_ns, self._newest, self._refreshed_at = folders, newest, at
            self.refresh()

    def refresh(self) -> None:
        """Look for changes; never raises. After a look that failed, the next one starts from scratch."""
        is_behind, self._is_behind = self._is_behind, True
        try:
            self._look(is_behind)
        except (UnavailableError, MalformedError, OSError) as error:
            self.seen = Seen(lost_records_total=self._lost_records, reason=str(error))
        else:
            self._is_behind = False

    def placements(self) -> list[Placement]:
        """Return the living ranks: those that announced themselves, and those found among the processes."""
        return list(self._placed.values())

    def pids(self) -> list[int]:
        """Return the processes of the living ranks."""
        return [placement.pid for placement in self._placed.values()]

    def records(self) -> Iterator[Record]:
        """Yield the changes since the last call, for the spool; a record counts as taken once the next is requested.

        The file of an ended job is removed once its end was taken, if this user may.
        """
        while self._news:
            record, place, file = self._news[0]
            yield record, _as_record(place)
            self._news.popleft()
            if file is not None:
                file.remove()

    def hand_to(self, take: Callable[[str, Mapping[str, object]], None]) -> None:
        """Hand the changes since the last call to `take`; records refused as invalid are lost and counted.

        Raises: UnavailableError when `take` does; the records not taken are kept for the next call.
        """
        for record, value in self.records():
            try:
                take(record, value)
            except InvalidInputError as error:
                self._lose(str(error))

    def _newest_pid(self) -> bytes:
        """Return the pid that the kernel gave last."""
        try:
            return self._files.read(f"{self._proc}/loadavg").split()[-1]
        except (UnavailableError, MalformedError, IndexError):
            return b""

    def _folders_changed(self) -> tuple[int | None, ...]:
        run = None if self._run_directory is None else changed_ns(self._run_directory)
        jobs = None if self._job_files is None else self._job_files.changed_ns()
        return run, jobs

    def _look(self, is_all_new: bool) -> None:
        now_ns = time.time_ns()
        if abs(boot_ns() - self._boot_ns) > CLOCK_SET_NS:
            self._boot_ns = boot_ns()
        is_tree_new = self._processes.refresh(self._undecided) or is_all_new
        are_files_new = (self._job_files is not None and self._job_files.refresh()) or is_all_new
        have_ended = self._has_ended_ranks()
        are_announced_new = self._look_for_announcements(have_ended or is_all_new)
        if are_files_new:
            self._take_files()
        if is_tree_new:
            self._note_refused()
        if is_tree_new or are_announced_new or are_files_new or have_ended:
            self._find_ranks(now_ns)
            self._find_jobs(now_ns)
        self._summarise()

    def _look_for_announcements(self, is_due: bool) -> bool:
        if self._run_directory is None:
            return False
        changed, now = changed_ns(self._run_directory), time.monotonic()
        if changed == self._announced_ns and not is_due and now - self._announced_at < ANNOUNCED_SECONDS:
            return False
        self._announced_ns, self._announced_at = changed, now
        answer = announced(self._run_directory, self._proc)
        before, self._announced = self._announced, {rank.pid: rank for rank in answer.ranks}
        self._garbled_announcements = answer.garbled
        return before != self._announced

    def _has_ended_ranks(self) -> bool:
        return any(not self._lives(*key) for key in self._placed)

    def _lives(self, pid: int, ticks: int) -> bool:
        path = f"{self._proc}/{pid}/stat"
        try:
            return started_ticks(self._files.read(path), path) == ticks
        except (UnavailableError, MalformedError) as error:
            if is_exhausted(error):
                return True  # as far as is known
            self._files.forget(f"{self._proc}/{pid}")
            return False

    def _take_files(self) -> None:
        files = self._job_files.files if self._job_files else {}
        for name, file in files.items():
            if self._filed.get(name) != file.allocation:
                has_ended = file.allocation.ended_ns is not None
                self._record("allocation", file.allocation, file if has_ended else None)
        self._filed = {name: file.allocation for name, file in files.items()}

    def _find_ranks(self, now_ns: int) -> None:
        living = self._trusted()
        watched = {pid for pid, _ in self._placed}
        tree = Tree(living, self._passes_on, self._processes.used_ticks)
        outcome = ranks_among(tree, announced=self._announced.keys(), watched=watched)
        self._undecided = [process.pid for process in outcome.undecided]
        placements = [self._placement(process) for process in outcome.ranks if process.pid not in self._announced]
        placements += [self._announced_placement(rank) for rank in self._announced.values()]
        placements = placements[:MAX_RANKS]
        now = {
            (placement.pid, placement.start_ticks): placement
            for placement in placements
            if self._lives(placement.pid, placement.start_ticks)
        }
        for key, placement in now.items():
            earlier = self._placed.get(key)
            merged = placement if earlier is None else merge_places(earlier, placement)
            if merged != earlier:
                self._record("placement", merged)
            now[key] = merged
        for key in self._placed.keys() - now.keys():
            self._record("placement", replace(self._placed[key], ended_ns=now_ns))
        self._placed = now

    def _trusted(self) -> dict[int, Process]:
        """Return the living processes of this node, except those that claim a job of another user, by the prolog.

        A process that the kernel confines to a job is of that job, whoever its user is.
        """
        owners = {allocation.job_id: allocation.uid for allocation in self._filed.values()}
        return {pid: process for pid, process in self._processes.living.items() if self._is_ours(process, owners)}

    def _is_ours(self, process: Process, owners: Mapping[str, int | None]) -> bool:
        identity = process.identity
        if identity is None:
            return True
        if self._slurmd is not None and identity.node not in (None, self._slurmd):
            return False
        return process.is_confined or owners.get(identity.job_id or "") in (None, process.uid)

    def _note_refused(self) -> None:
        """Log every variable once whose value did not fit, and never the value."""
        for process in self._processes.living.values():
            for name in process.identity.refused if process.identity else ():
                if name not in self._refused:
                    self._refused.add(name)
                    LOG.warning("%s in the environment of process %d does not fit: left out", name, process.pid)

    def _passes_on(self, pid: int) -> bool:
        process = self._processes.living[pid]
        key = (pid, process.start_ticks)
        if key in self._programs:
            return False
        answer = passes_on(pid, str(self._proc))
        if not answer and self._age_ticks(process) > YOUNG_TICKS:  # a younger one may be about to exec a shell
            self._programs = {program for program in self._programs if program[0] in self._processes.living} | {key}
        return answer

    def _age_ticks(self, process: Process) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) * TICKS // NANOSECONDS - process.start_ticks

    def _placement(self, process: Process) -> Placement:
        identity = process.identity or NOBODY
        return Placement(
            node=identity.node or self._node,
            pid=process.pid,
            start_ticks=process.start_ticks,
            sampled_as=self._node,
            source=Source.ENVIRONMENT,
            system=identity.system or self._system,
            **{name: getattr(identity, name) for name in ("job_id", "step_id", "run_id", "rank", "gpus")},
            local_rank=identity.local_rank,
            world_size=identity.world_size,
            started_ns=self._started_ns(process.start_ticks),
        )

    def _announced_placement(self, rank: Announcement) -> Placement:
        process = self._processes.living.get(rank.pid)
        placement = self._placement(process or Process(rank.pid, 0, rank.start_ticks, 0))
        node = placement.node if process and process.identity else rank.node
        of_rank = replace(placement, run_id=rank.run_id, rank=rank.rank, source=Source.PROBE)
        return replace(of_rank, node=node, start_ticks=rank.start_ticks)

    def _find_jobs(self, now_ns: int) -> None:
        """Find jobs by environment. A job with a file only gains facts by this: its end comes by the file alone."""
        filed = {allocation.job_id for allocation in self._filed.values()}
        now = {key: self._allocation(process) for key, process in self._first_processes(filed).items()}
        for key, allocation in now.items():
            earlier = self._jobs.get(key)
            now[key] = allocation if earlier is None else merge_places(earlier, allocation)
            if now[key] != earlier:
                self._record("allocation", now[key])
        for key in self._jobs.keys() - now.keys():
            if key[1] not in filed:
                self._record("allocation", replace(self._jobs[key], ended_ns=now_ns))
        self._jobs = now

    def _first_processes(self, filed: Collection[str]) -> dict[AllocationKey, Process]:
        """Return the process of each job that started first, those that the kernel confines before all others."""
        first: dict[AllocationKey, Process] = {}
        for process in sorted(
            self._trusted().values(), key=lambda candidate: (not candidate.is_confined, candidate.start_ticks)
        ):
            identity = process.identity
            if identity is not None and identity.job_id is not None and identity.is_allocated:
                system, node = identity.system or self._system, identity.node or self._node
                first.setdefault((system, identity.job_id, node, identity.restart_count), process)
        return first if len(first) <= MAX_JOBS else _surest(first, filed)

    def _allocation(self, process: Process) -> Allocation:
        identity = process.identity or NOBODY
        return Allocation(
            job_id=identity.job_id or "",
            node=identity.node or self._node,
            sampled_as=self._node,
            source=Source.ENVIRONMENT,
            system=identity.system or self._system,
            restart_count=identity.restart_count,
            array_id=identity.array_id,
            uid=None if process.is_hidden and process.uid == 0 else process.uid,  # Slurm's own, not the job's
            started_ns=self._started_ns(process.start_ticks),
            gpus=identity.job_gpus,
            cpus=identity.cpus,
        )

    def _started_ns(self, ticks: int) -> int:
        """Return the end of the tick in which it started, so that no job seems to begin before its prolog."""
        return self._boot_ns + (ticks + 1) * NANOSECONDS // TICKS

    def _summarise(self) -> None:
        filed = {allocation.job_id for allocation in self._filed.values() if allocation.ended_ns is None}
        jobs = filed | {key[1] for key in self._jobs}
        garbled = self._garbled_announcements + (self._job_files.garbled if self._job_files else 0)
        self.seen = Seen(tuple(sorted(jobs)), len(self._placed), self._processes.hidden, garbled, self._lost_records)

    def _record(self, record: str, place: Allocation | Placement, file: JobFile | None = None) -> None:
        if len(self._news) >= MAX_NEWS:
            self._lose(f"{MAX_NEWS} wait for the spool")
            return
        self._news.append((record, place, file))

    def _lose(self, why: str) -> None:
        self._lost_records += 1
        self.seen = replace(self.seen, lost_records_total=self._lost_records)
        LOG.error("a record of a job or rank is lost: %s", why[:300])


def _surest(first: Mapping[AllocationKey, Process], filed: Collection[str]) -> dict[AllocationKey, Process]:
    """Return as many jobs as are kept, surest first: anybody may invent others, with nodes and restarts."""
    counts: Counter[str] = Counter()
    doubts: dict[AllocationKey, tuple[bool, bool, int]] = {}
    for key, process in first.items():
        job_id = key[1]
        doubts[key] = not process.is_confined, job_id not in filed, counts[job_id]
        counts[job_id] += 1
    return {key: first[key] for key in sorted(doubts, key=doubts.__getitem__)[:MAX_JOBS]}


def _as_record(place: Allocation | Placement) -> dict[str, object]:
    """Return the record in plain values, without what is unknown."""
    facts = {name: value for name, value in vars(place).items() if value not in (None, "", ())}
    return facts | {"source": str(place.source)} | ({"gpus": list(place.gpus)} if place.gpus else {})

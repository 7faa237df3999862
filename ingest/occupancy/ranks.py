"""The rank's own process among the many that carry its variables.

Children inherit the variables, so many carry them: shells, launchers, data-loader workers, compilers. The rule:

1. A head is a process that names a job, step, run, rank or world size that its parent's environment has not: srun's
   task under slurmstepd, torchrun's and mpirun's workers. A program that repeats its rank under another name
   (`RANK=$SLURM_PROCID`) for its children makes no heads of them.
2. From a head that is a shell or a known launcher one goes down to the child of the same rank; where there are several,
   to the one that has used most processor time, once any has used some, and stays with it while it lives.
3. A process that then still has other heads below it is an unknown launcher, and no rank.
4. A process that announced itself is the rank, whatever the environments say.

A rank that sets its variables after its start, as torch's mp.spawn has it, is found by its announcement alone.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from crosswind.ingest.kernel.fd_limits import is_exhausted
from crosswind.ingest.occupancy.processes import Process

SHELLS = frozenset(["ash", "bash", "busybox", "csh", "dash", "fish", "ksh", "ksh93", "mksh", "sh", "tcsh", "zsh"])
LAUNCHERS = frozenset(
    [
        *("mpirun", "mpiexec", "mpiexec.hydra", "hydra_pmi_proxy", "orterun", "orted", "prte", "prterun", "prted"),
        *("srun", "torchrun", "torch.distributed.run", "torch.distributed.launch", "horovodrun", "crosswind"),
        *("accelerate", "accelerate.commands.launch", "deepspeed", "deepspeed.launcher.launch"),
    ]
)
MAX_COMMAND_BYTES = 4096
MAX_DEPTH = 64


def passes_on(pid: int, proc: str) -> bool:
    """Return whether a process is a shell or launcher, by its program and by its script or module.

    Raises: OSError when there is no file descriptor left.
    """
    folder = Path(proc, str(pid))
    try:
        program = (folder / "exe").readlink().name
        with (folder / "cmdline").open("rb") as file:
            first, *words = map(os.fsdecode, file.read(MAX_COMMAND_BYTES).split(b"\0"))
    except OSError as error:
        if is_exhausted(error):
            raise
        return False
    given = next((word for word in words if not word.startswith("-")), "")  # `python -u -m torch.distributed.run`
    return program in SHELLS or not LAUNCHERS.isdisjoint((program, Path(first).name, Path(given).name))


@dataclass(frozen=True)
class Tree:
    """The processes of the node by pid, with what the search asks about one of them."""

    processes: Mapping[int, Process]
    passes_on: Callable[[int], bool]
    used_ticks: Callable[[int], int]

    def ancestors(self, pid: int) -> Iterable[int]:
        """Return the pids above, nearest first."""
        for _ in range(MAX_DEPTH):
            process = self.processes.get(pid)
            if process is None or process.parent not in self.processes:
                return
            pid = process.parent
            yield pid


@dataclass(frozen=True)
class RankSearch:
    """The ranks among the processes, and the heads without one so far."""

    ranks: list[Process]
    undecided: list[Process]


def ranks_among(tree: Tree, *, announced: Collection[int] = (), watched: Collection[int] = ()) -> RankSearch:
    """Return the processes that are ranks by the rule above; `watched` are those of the look before."""
    heads = [process for process in tree.processes.values() if process.is_head]
    above = {pid for descendant in (*(head.pid for head in heads), *announced) for pid in tree.ancestors(descendant)}
    descent = _Descent(tree, watched)
    ranks, undecided = [], []
    for head in heads:
        rank = descent.below(head)
        if rank is None:
            undecided.append(head)
        elif rank.pid in announced or not (rank.pid in above or _is_below(rank, tree, announced)):
            ranks.append(rank)
    return RankSearch(_one_each(ranks, watched), undecided)


class _Descent:
    """The way down from a head through shells and launchers."""

    def __init__(self, tree: Tree, watched: Collection[int]) -> None:
        self._tree = tree
        self._watched = watched
        self._children: defaultdict[int, list[Process]] = defaultdict(list)
        for process in tree.processes.values():
            if process.identity and process.identity.is_of_a_rank and not process.is_head:
                self._children[process.parent].append(process)

    def below(self, process: Process, depth: int = 0) -> Process | None:
        """Return the program itself, this process or one below it; None while there is none."""
        if not self._tree.passes_on(process.pid):
            return process
        if depth == MAX_DEPTH:
            return None
        descendants = (self.below(child, depth + 1) for child in self._children[process.pid])
        return self._busiest([child for child in descendants if child is not None])

    def _busiest(self, processes: list[Process]) -> Process | None:
        if len(processes) < 2:
            return processes[0] if processes else None
        for process in processes:
            if process.pid in self._watched:
                return process
        used = {process.pid: self._tree.used_ticks(process.pid) for process in processes}
        busiest = max(processes, key=lambda process: used[process.pid])
        return busiest if used[busiest.pid] else None


def _is_below(process: Process, tree: Tree, pids: Collection[int]) -> bool:
    return bool(pids) and not set(pids).isdisjoint(tree.ancestors(process.pid))


def _one_each(ranks: Iterable[Process], watched: Collection[int]) -> list[Process]:
    """Return one process for every rank: a detached helper carries the rank as well, but started later."""
    chosen: dict[object, Process] = {}
    for process in sorted(
        ranks, key=lambda candidate: (candidate.pid not in watched, candidate.start_ticks, candidate.pid)
    ):
        identity = process.identity
        if identity is not None:
            key = (identity.system, identity.job_id, identity.step_id, identity.run_id, identity.node, identity.rank)
            chosen.setdefault(key, process)
    return list(chosen.values())

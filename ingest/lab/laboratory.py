"""The laboratory: hosts with agents and warm workers, in which planned runs are measured with what is done to them."""

import logging
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from crosswind.data.errors import UnavailableError
from crosswind.data.run import new_ulid
from crosswind.ingest.lab.casting import Casting, Part, Task
from crosswind.ingest.lab.conditions import Conditions
from crosswind.ingest.lab.crew import Crew, Post, WorkerLostError
from crosswind.ingest.lab.hosts import Host, hosts
from crosswind.ingest.lab.injection import Truth
from crosswind.ingest.lab.node_agents import AgentPost, agents
from crosswind.ingest.lab.plan import HOSTS, RELAYED, Cohort, PlannedRun
from crosswind.ingest.lab.run_records import LabRun, neighbour_tags, tags_of, write_ended, write_failed
from crosswind.ingest.lab.stage import Scene, Stage, node_name
from crosswind.ingest.lab.watch import Trained, train

LOG = logging.getLogger("crosswind.lab")
SYSTEM = "fault-lab"
LINK_MEGABITS = 2000.0  # of every link: fast for a gradient, slow enough that neighbours can fill it
RANKS = 4  # at most, of one run
WORKERS = 2  # at most, of one host
NEIGHBOUR_USER = "nobody"
NEIGHBOUR_JOB, NEIGHBOUR_UNIT = "neighbour_job", "ranks a node"  # in the truth, beside the injectors' kinds
LIMIT_SECONDS, LIMIT_SLOWDOWN = 20.0, 10.0  # of one run: some seconds, and so many times what it should take
PACE_STEPS, WARM_STEPS = 24, 4  # of runs that are not recorded: they warm a cohort up and tell how long its steps take


@dataclass(frozen=True)
class Folders:
    """Where a laboratory keeps its files: what is to be stored, and what goes with it."""

    spools: Path
    scratch: Path


class Laboratory:
    """Living hosts, agents and workers, as `laboratory` makes them."""

    def __init__(self, scene: Scene, spool: Path, ranks: Crew, neighbours: Crew) -> None:
        self._scene = scene
        self._spool = spool
        self._ranks = ranks
        self._neighbours = neighbours
        self._casting = Casting(scene.hosts)
        self._paces: dict[Cohort, float] = {}

    def measure(self, planned: PlannedRun, plan: str) -> str:
        """Measures one run, and its neighbour, and spools them with the truth; the run's id.

        A run whose workers die or hang, or whose fault cannot be switched, is spooled as failed. Workers that are lost
        before it begins are started once more. Raises: UnavailableError.
        """
        try:
            return self._measure(planned, plan)
        except WorkerLostError as error:
            LOG.warning("run %d begins anew: %s", planned.number, error)
            self.dismiss()
            return self._measure(planned, plan)

    def _measure(self, planned: PlannedRun, plan: str) -> str:
        seconds = self.pace(planned.cohort) * planned.steps
        task = Task(planned.cohort, new_ulid(), planned.steps, planned.seed, planned.marks())
        own = self._casting.part(self._ranks, task)
        beside = self._beside(planned, seconds)
        runs = [LabRun(own, SYSTEM, tags_of(planned, plan, beside.run_id if beside else None))]
        runs += [LabRun(beside, SYSTEM, neighbour_tags(plan, own.run_id))] if beside else []
        began_ns = time.time_ns()
        try:
            truths = self._play(planned, own, beside, LIMIT_SECONDS + LIMIT_SLOWDOWN * seconds)
        except UnavailableError as error:
            LOG.warning("run %d failed: %s", planned.number, error)
            self.dismiss()
            write_failed(self._spool, runs, began_ns)
        else:
            write_ended(self._spool, runs, truths)
        return own.run_id

    def pace(self, cohort: Cohort) -> float:
        """Seconds of a step of this cohort when nothing disturbs it, measured once. Raises: UnavailableError."""
        if cohort not in self._paces:
            for steps in (WARM_STEPS, PACE_STEPS):
                run_id = f"pace-{new_ulid()}"
                part = self._casting.part(self._ranks, Task(cohort, run_id, steps, seed=0, is_recorded=False))
                trained = train(part.ranks, [], LIMIT_SECONDS)
                self._paces[cohort] = trained[0].seconds / steps
        return self._paces[cohort]

    def dismiss(self) -> None:
        """Ends all workers; the next run starts them anew."""
        self._ranks.dismiss()
        self._neighbours.dismiss()

    def _beside(self, planned: PlannedRun, seconds: float) -> Part | None:
        """The neighbour's ranks, with steps enough for about the same time."""
        if planned.neighbour is None:
            return None
        steps = max(1, round(seconds / self.pace(planned.neighbour)))
        return self._casting.part(self._neighbours, Task(planned.neighbour, new_ulid(), steps, planned.seed))

    def _play(self, planned: PlannedRun, own: Part, beside: Part | None, limit_seconds: float) -> list[Truth]:
        """Trains while faults come and go; what was really done."""
        stage = Stage(self._scene, own.ranks)
        try:
            moments = stage.moments(planned)
            trained = train([*own.ranks, *(beside.ranks if beside else ())], moments, limit_seconds)
        finally:
            truths = stage.end_all()
        return [*truths, *(neighbour_truths(own, beside, trained) if beside else ())]


def neighbour_truths(own: Part, beside: Part, trained: Sequence[Trained]) -> list[Truth]:
    """The neighbour's job as each rank of the run had it on its node, while both were there."""
    of_beside = dict(zip([worker.post.node for worker, _ in beside.ranks], trained[len(own.ranks) :], strict=True))
    return [
        Truth(NEIGHBOUR_JOB, 1.0, NEIGHBOUR_UNIT, node, order.rank, of_beside[node].began_ns, of_beside[node].ended_ns)
        for worker, order in own.ranks
        if (node := worker.post.node) in of_beside
    ]


def _owned(folder: Path) -> Path:
    """A folder in which neighbours may write."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.chown(folder, NEIGHBOUR_USER)
    return folder


@contextmanager
def laboratory(folders: Folders) -> Iterator[Laboratory]:
    """A laboratory, from its hosts to its agents; workers come with the first run. Raises: UnavailableError."""
    shutil.rmtree(folders.scratch, ignore_errors=True)
    folders.scratch.mkdir(parents=True)
    with hosts(HOSTS, wired=(RELAYED,), megabits=LINK_MEGABITS) as net:
        scene = Scene(net, Conditions.create(folders.scratch / "conditions", RANKS), folders.scratch)
        undisturbed = Conditions.create(_owned(folders.scratch / NEIGHBOUR_USER) / "conditions", RANKS)
        shutil.chown(undisturbed.path, NEIGHBOUR_USER)
        ranks = Crew({post.place: post for post in _posts(folders, net, scene.conditions)}, SYSTEM)
        beside = Crew({post.place: post for post in _posts(folders, net, undisturbed, NEIGHBOUR_USER)}, SYSTEM)
        with agents([_agent(folders, host) for host in net]):
            lab = Laboratory(scene, folders.spools / "lab", ranks, beside)
            try:
                yield lab
            finally:
                lab.dismiss()
    shutil.rmtree(folders.scratch, ignore_errors=True)


def _agent(folders: Folders, host: Host) -> AgentPost:
    node = node_name(host)
    return AgentPost(host, node, folders.spools / node, folders.scratch / node)


def _posts(folders: Folders, net: Sequence[Host], conditions: Conditions, user: str | None = None) -> Iterator[Post]:
    for host in net:
        for slot in range(WORKERS):
            node = node_name(host)
            yield Post(
                host=host,
                slot=slot,
                node=node,
                spool=_owned(folders.spools / f"{node}-{user}") if user else folders.spools / node,
                run_directory=folders.spools / node,
                conditions=conditions.path,
                scratch=conditions.path.parent,
                log=folders.scratch / node / "workers.log",
                user=user,
            )

"""The laboratory: hosts with agents and warm workers, in which planned runs are measured under their faults."""

import logging
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.run import new_ulid
from crosswind.ingest.lab.casting import Casting, Part, Task
from crosswind.ingest.lab.conditions import Conditions
from crosswind.ingest.lab.folders import Folders
from crosswind.ingest.lab.hosts.hosts import Host, hosts
from crosswind.ingest.lab.injection import FaultRemainsError
from crosswind.ingest.lab.neighbours import neighbour_truths, node_intervals
from crosswind.ingest.lab.node_agents import AgentPost, agents
from crosswind.ingest.lab.plans.plan import HOSTS, RELAYED, Cohort, PlannedRun
from crosswind.ingest.lab.run_records import LabRun, neighbour_tags, tags_of, write_ended, write_failed
from crosswind.ingest.lab.stage import Scene, Stage, node_name
from crosswind.ingest.lab.workers.crew import Crew, Post, Worker, WorkerLostError
from crosswind.ingest.lab.workers.order import Order
from crosswind.ingest.lab.workers.watch import Trained, train

LOG = logging.getLogger("crosswind.lab")
SYSTEM = "fault-lab"
LINK_MEGABITS = 2000.0  # of every link: fast for a gradient, slow enough that neighbours can fill it
RANKS = 4  # at most, of one run
WORKERS = 2  # at most, of one host
NEIGHBOUR_USER = "nobody"
LIMIT_SECONDS, LIMIT_SLOWDOWN = 20.0, 10.0  # of one run: some seconds, and so many times its expected time
PACE_STEPS, WARM_STEPS = 24, 4  # of runs that are not recorded: they warm a cohort up and time its steps


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
        """Measure one run and its neighbour, and spool them with the truth. Return the run's id.

        A run whose workers die or hang, or whose fault cannot be switched, is spooled as failed. Workers that are lost
        before it begins are started once more. Raises: FaultRemainsError, after which nothing may be measured here;
        UnavailableError.
        """
        try:
            return self._measure(planned, plan)
        except WorkerLostError as error:
            LOG.warning("run %d is started again: %s", planned.number, error)
            self.dismiss()
            return self._measure(planned, plan)

    def _measure(self, planned: PlannedRun, plan: str) -> str:
        seconds = self.pace(planned.cohort) * planned.steps
        task = Task(planned.cohort, new_ulid(), planned.steps, planned.seed, planned.marks())
        own = self._casting.part(self._ranks, task)
        neighbour = self._neighbour(planned, seconds)
        runs = [LabRun(own, SYSTEM, tags_of(planned, plan, neighbour.run_id if neighbour else None))]
        runs += [LabRun(neighbour, SYSTEM, neighbour_tags(plan, own.run_id))] if neighbour else []
        stage = Stage(self._scene, own.ranks)
        ranks = [*own.ranks, *(neighbour.ranks if neighbour else ())]
        began_ns = time.time_ns()
        try:
            trained = _play(planned, stage, ranks, LIMIT_SECONDS + LIMIT_SLOWDOWN * seconds)
        except UnavailableError as error:
            LOG.warning("run %d failed: %s", planned.number, error)
            self.dismiss()
            write_failed(self._spool, runs, began_ns, stage.truths)
        else:
            count = len(own.ranks)
            met = (
                neighbour_truths(node_intervals(own, trained[:count]), node_intervals(neighbour, trained[count:]))
                if neighbour
                else []
            )
            write_ended(self._spool, runs, [*stage.truths, *met])
        if isinstance(stage.refusal, FaultRemainsError):
            raise stage.refusal
        return own.run_id

    def pace(self, cohort: Cohort) -> float:
        """Return the seconds of an undisturbed step of this cohort, measured once. Raises: UnavailableError."""
        if cohort not in self._paces:
            for steps in (WARM_STEPS, PACE_STEPS):
                run_id = f"pace-{new_ulid()}"
                part = self._casting.part(self._ranks, Task(cohort, run_id, steps, seed=0, is_recorded=False))
                trained = train(part.ranks, [], LIMIT_SECONDS)
                self._paces[cohort] = trained[0].seconds / steps
        return self._paces[cohort]

    def dismiss(self) -> None:
        """End all workers; the next run starts new ones."""
        self._ranks.dismiss()
        self._neighbours.dismiss()

    def _neighbour(self, planned: PlannedRun, seconds: float) -> Part | None:
        """Return the neighbour's ranks, with enough steps for about the same time."""
        if planned.neighbour is None:
            return None
        steps = max(1, round(seconds / self.pace(planned.neighbour)))
        return self._casting.part(self._neighbours, Task(planned.neighbour, new_ulid(), steps, planned.seed))


def _play(
    planned: PlannedRun, stage: Stage, ranks: Sequence[tuple[Worker, Order]], limit_seconds: float
) -> list[Trained]:
    """Train while faults come and go. Raises: UnavailableError."""
    try:
        trained = train(ranks, stage.moments(planned), limit_seconds)
    finally:
        stage.end_all()
    if stage.refusal:
        raise stage.refusal
    return trained


def _owned(folder: Path) -> Path:
    """Return a folder in which neighbours may write."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.chown(folder, NEIGHBOUR_USER)
    return folder


@contextmanager
def laboratory(folders: Folders) -> Iterator[Laboratory]:
    """Make a laboratory, from its hosts to its agents; workers come with the first run.

    Raises: ConflictError when the scratch folder is somebody else's; UnavailableError.
    """
    folders.renew_scratch()
    try:
        with hosts(HOSTS, wired=(RELAYED,), megabits=LINK_MEGABITS) as net, _equipped(folders, net) as lab:
            yield lab
    finally:
        folders.remove_scratch()


@contextmanager
def _equipped(folders: Folders, net: Sequence[Host]) -> Iterator[Laboratory]:
    """Make the laboratory in these hosts; it ends with its workers and agents."""
    scene = Scene(net, Conditions.create(folders.scratch / "conditions", RANKS), folders.scratch)
    undisturbed = Conditions.create(_owned(folders.scratch / NEIGHBOUR_USER) / "conditions", RANKS)
    shutil.chown(undisturbed.path, NEIGHBOUR_USER)
    ranks = Crew({post.place: post for post in _posts(folders, net, scene.conditions)}, SYSTEM)
    neighbours = Crew({post.place: post for post in _posts(folders, net, undisturbed, NEIGHBOUR_USER)}, SYSTEM)
    with agents([_agent(folders, host) for host in net]):
        lab = Laboratory(scene, folders.spools / "lab", ranks, neighbours)
        try:
            yield lab
        finally:
            lab.dismiss()


def _agent(folders: Folders, host: Host) -> AgentPost:
    node = node_name(host)
    return AgentPost(host, node, folders.spools / node, folders.logs / node)


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
                log=folders.logs / node / "workers.log",
                user=user,
            )

"""The job, step and rank of a process, from variables of schedulers and launchers in its environment.

A user may set them to anything: every value is checked, one that does not fit is left out and named, and no variable
but those below is kept.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from crosswind.ingest.occupancy.confinement import Confinement
from crosswind.ingest.probe.place import JOB_VARIABLES, LSF_INDEX, RANK_VARIABLES, WORLD_VARIABLES, job_id

# Bytes beyond these are not read: environments full of tiny words would cost more than all others together.
MAX_ENVIRONMENT_BYTES = 1 << 17
MAX_VARIABLES = 1024
MAX_NUMBER = 2**31 - 1
MAX_GPUS = 64
RANKS = (*RANK_VARIABLES[:-1], "PMIX_RANK", RANK_VARIABLES[-1])  # the probe's order; Slurm's own comes last
LOCAL_RANKS = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
VISIBLE_GPUS = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
NODES = ("CROSSWIND_NODE", "SLURMD_NODENAME")
SYSTEMS = ("CROSSWIND_SYSTEM", "SLURM_CLUSTER_NAME")
SITE_SCRIPT = "SLURM_SCRIPT_CONTEXT"  # in every prolog and epilog, which are the site's and not the job's
OTHERS = (
    *("SLURM_STEP_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_RESTART_COUNT"),
    *("SLURM_CPUS_ON_NODE", "SLURM_JOB_GPUS", "CROSSWIND_RUN_ID"),
    *(LSF_INDEX, SITE_SCRIPT),
)
KEPT = frozenset(
    name.encode()
    for names in (JOB_VARIABLES, RANKS, WORLD_VARIABLES, LOCAL_RANKS, VISIBLE_GPUS, NODES, SYSTEMS, OTHERS)
    for name in names
)
IDENTIFIER = re.compile(r"[\w.@:+\[\]-]{1,64}")  # Flux has an f with a hook in it, PBS brackets
NAME = re.compile(r"[\w.@:+-]{1,200}")
GPU = re.compile(r"[A-Za-z0-9:./_-]{1,80}")


@dataclass(frozen=True, slots=True)
class Identity:
    """A process's own account of its place; None if nothing fits. `refused` names the variables that did not fit."""

    job_id: str | None = None
    array_id: str | None = None
    step_id: str | None = None
    restart_count: int = 0
    run_id: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    node: str | None = None
    system: str | None = None
    cpus: int | None = None
    job_gpus: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    is_allocated: bool = False
    refused: tuple[str, ...] = ()

    @property
    def is_of_a_rank(self) -> bool:
        """Return whether it names a rank or a run."""
        return self.rank is not None or self.run_id is not None

    def continues(self, parent: "Identity | None") -> bool:
        """Return whether the parent was this rank already; a program may add its world size for its children."""
        if parent is None or (
            parent.world_size != self.world_size and None not in (parent.world_size, self.world_size)
        ):
            return False
        return all(getattr(self, name) == getattr(parent, name) for name in ("job_id", "step_id", "run_id", "rank"))

    def confined_to(self, confinement: Confinement) -> "Identity":
        """Return the identity with the job that the kernel vouches for; variables of another job are dropped."""
        node, is_of_it = self.node or confinement.node, self.job_id in (None, confinement.job_id)
        trusted = self if is_of_it else Identity(node=node, system=self.system, refused=self.refused)
        step_id = trusted.step_id or confinement.step_id
        return replace(trusted, job_id=confinement.job_id, step_id=step_id, node=node, is_allocated=True)


NOBODY = Identity()


def identity_of(environment: bytes) -> Identity:
    """Return the identity in the content of /proc/<pid>/environ.

    A Slurm job counts as allocated here only where slurmd named the node: `salloc` puts the job's id into shells of
    login nodes as well. Source: sbatch(1), srun(1), mpirun(1), torchrun's environment variables.
    """
    variables: dict[bytes, bytes] = {}
    for item in environment.split(b"\0", MAX_VARIABLES)[:MAX_VARIABLES]:
        name, mark, value = item.partition(b"=")
        if name in KEPT and mark and name not in variables:
            variables[name] = value
    named = {name.decode(): value for name, value in variables.items()}
    return _identity(_Fields(named)) if named and SITE_SCRIPT not in named else NOBODY


class _Fields:
    """Values by name, checked when read."""

    def __init__(self, variables: Mapping[str, bytes]) -> None:
        self.variables = variables
        self.refused: list[str] = []

    def text(self, names: Iterable[str], form: re.Pattern[str] = IDENTIFIER) -> str | None:
        """Return the first of these variables that has the form."""
        for name in self._given(names):
            text = self.variables[name].decode("utf-8", "replace")
            if form.fullmatch(text):
                return text
            self.refused.append(name)
        return None

    def job_id(self) -> str | None:
        """Return the job's id, of the first scheduler that names one of the right form."""
        named = ((name, self.text((name,))) for name in JOB_VARIABLES)
        first = next(((name, text) for name, text in named if text), None)
        return job_id(dict([first, (LSF_INDEX, self.text((LSF_INDEX,)) or "")])) if first else None

    def number(self, names: Iterable[str]) -> int | None:
        """Return the first of these variables that is a whole number."""
        for name in self._given(names):
            value = self.variables[name]
            if value.isdigit() and len(value) <= 10 and int(value) <= MAX_NUMBER:
                return int(value)
            self.refused.append(name)
        return None

    def gpus(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the devices that the first of these variables lists; `-1` and Slurm's NoDevFiles mean none."""
        for name in self._given(names):
            words = self.variables[name].decode("utf-8", "replace").split(",", MAX_GPUS)
            if len(words) <= MAX_GPUS and all(map(GPU.fullmatch, words)):
                return () if words[0] in ("-1", "NoDevFiles") else tuple(words)
            self.refused.append(name)
        return ()

    def _given(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if self.variables.get(name)]


def _identity(given: _Fields) -> Identity:
    job = given.job_id()
    array = given.number(("SLURM_ARRAY_JOB_ID",)), given.number(("SLURM_ARRAY_TASK_ID",))
    facts = {
        "step_id": given.text(("SLURM_STEP_ID",)),
        "restart_count": given.number(("SLURM_RESTART_COUNT",)) or 0,
        "run_id": given.text(("CROSSWIND_RUN_ID",)),
        "rank": given.number(RANKS),
        "local_rank": given.number(LOCAL_RANKS),
        "world_size": given.number(WORLD_VARIABLES),
        "node": given.text(NODES, NAME),
        "system": given.text(SYSTEMS, NAME),
        "cpus": given.number(("SLURM_CPUS_ON_NODE",)),
        "job_gpus": given.gpus(("SLURM_JOB_GPUS",)),
        "gpus": given.gpus(VISIBLE_GPUS),
    }
    return Identity(
        job_id=job,
        array_id=None if None in array else "{}_{}".format(*array),
        is_allocated=job is not None
        and ("SLURM_JOB_ID" not in given.variables or "SLURMD_NODENAME" in given.variables),
        refused=tuple(given.refused),
        **facts,  # type: ignore[arg-type]
    )

"""The rank and the run of this process, from launchers' environment variables."""

import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.login import login_name

RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
WORLD_VARIABLES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
LOCAL_RANK, LOCAL_WORLD_SIZE = "LOCAL_RANK", "LOCAL_WORLD_SIZE"
NODE_RANKS = ("GROUP_RANK", "NODE_RANK")  # torchrun's and Lightning's names of a node's number
USER_VARIABLES = ("SLURM_JOB_USER", "PBS_O_LOGNAME", "LSFUSER")
ACCOUNT_VARIABLES = ("SLURM_JOB_ACCOUNT", "LSB_PROJECT_NAME")
JOB_VARIABLES = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID")
LSF_INDEX = "LSB_JOBINDEX"  # of an element of an array; 0 in other jobs


@dataclass(frozen=True)
class Place:
    """This process in its run."""

    rank: int
    world_size: int
    node: str
    job_id: str | None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Return the place given by torchrun, mpirun, srun or Lightning; rank 0 of 1 without a launcher.

        Raises: InvalidInputError for a rank on its node that leaves open which one of the run it is.
        """
        return cls(
            rank=_first_integer(environment, RANK_VARIABLES, 0)
            if _has(environment, RANK_VARIABLES)
            else _rank_by_node(environment),
            world_size=_first_integer(environment, WORLD_VARIABLES, 1),
            node=node_name(environment),
            job_id=job_id(environment),
        )

    @classmethod
    def of_process(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Return the place of this process: as torch.distributed has it where no launcher has numbered the ranks.

        So it is under `torch.multiprocessing.spawn` and the launchers of libraries, also with one task a node.
        Raises: InvalidInputError as `from_environment`.
        """
        distributed = sys.modules.get("torch.distributed")
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return cls.from_environment(environment)
        rank, world_size = distributed.get_rank(), distributed.get_world_size()
        if _has(environment, RANK_VARIABLES) and _first_integer(environment, WORLD_VARIABLES, 1) >= world_size:
            return cls.from_environment(environment)
        return cls(rank, world_size, node_name(environment), job_id(environment))


def job_id(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the id of this process's job, as in the scheduler's accounts; None outside of any.

    Source: IBM Spectrum LSF 10.1, environment variables, LSB_JOBINDEX; Flux RFC 19, F58: an f where there is no ƒ.
    """
    name = next((name for name in JOB_VARIABLES if environment.get(name)), None)
    text, index = environment.get(name or "", ""), environment.get(LSF_INDEX, "")
    if name == "LSB_JOBID" and index.isascii() and index.isdigit() and index != "0":
        return f"{text}[{index}]"
    return f"ƒ{text[1:]}" if name == "FLUX_JOB_ID" and text.startswith("f") else text or None


def owner(environment: Mapping[str, str] = os.environ, login: str | None = None) -> dict[str, str]:
    """Return `user` and, where the job's environment says so, `account` of this process.

    Its own user is whoever the kernel says; the environment counts for root, as in a container, and where a user has no
    name. Source: sbatch(1), output environment variables; PBS Professional 2021.1, qsub; IBM Spectrum LSF 10.1,
    environment variables.
    """
    name = login or login_name()
    if name == "root" or name.isdigit():
        name = next((environment[text] for text in USER_VARIABLES if environment.get(text)), name)
    account = next((environment[text] for text in ACCOUNT_VARIABLES if environment.get(text)), None)
    return {"user": name} | ({"account": account} if account else {})


def node_name(environment: Mapping[str, str] = os.environ) -> str:
    """Return this node's name; SLURMD_NODENAME distinguishes several slurmd on one host."""
    return environment.get("CROSSWIND_NODE") or environment.get("SLURMD_NODENAME") or socket.gethostname()


def system_name(environment: Mapping[str, str] = os.environ) -> str:
    """Return the cluster's name: CROSSWIND_SYSTEM, Slurm's cluster, else this host."""
    return environment.get("CROSSWIND_SYSTEM") or environment.get("SLURM_CLUSTER_NAME") or socket.gethostname()


def is_numbered(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether a launcher has given this process a number."""
    return _has(environment, (*RANK_VARIABLES, LOCAL_RANK))


def _has(environment: Mapping[str, str], names: tuple[str, ...]) -> bool:
    return any(environment.get(name, "").isdigit() for name in names)


def _rank(environment: Mapping[str, str]) -> int:
    is_of_run = _has(environment, RANK_VARIABLES)
    return _first_integer(environment, RANK_VARIABLES, 0) if is_of_run else _rank_by_node(environment)


def _rank_by_node(environment: Mapping[str, str]) -> int:
    """Return the rank by the numbers of node and process on it; 0 without them."""
    local, node = _first_integer(environment, (LOCAL_RANK,), 0), _first_integer(environment, NODE_RANKS, 0)
    if node == 0:
        return local
    on_node = _first_integer(environment, (LOCAL_WORLD_SIZE,), 0)
    if not on_node:
        raise InvalidInputError(
            f"this process is LOCAL_RANK {local} of node {node}, and no variable says which rank of the run that is: "
            "set RANK, or LOCAL_WORLD_SIZE to the number of processes per node"
        )
    return node * on_node + local


def _first_integer(environment: Mapping[str, str], names: tuple[str, ...], default: int) -> int:
    return next((int(environment[name]) for name in names if environment.get(name, "").isdigit()), default)

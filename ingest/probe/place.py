"""Which rank of which run this process is, from what launchers put into the environment."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass

RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
WORLD_VARIABLES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")


@dataclass(frozen=True)
class Place:
    """This process in its run."""

    rank: int
    world_size: int
    node: str
    job_id: str | None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Place":
        """The place that torchrun, mpirun or srun announced; rank 0 of 1 without a launcher."""
        return cls(
            rank=_first_integer(environment, RANK_VARIABLES, 0),
            world_size=_first_integer(environment, WORLD_VARIABLES, 1),
            node=node_name(environment),
            job_id=environment.get("SLURM_JOB_ID") or environment.get("PBS_JOBID"),
        )


def node_name(environment: Mapping[str, str] = os.environ) -> str:
    """This node's name: several slurmd on one host go by SLURMD_NODENAME."""
    return environment.get("CROSSWIND_NODE") or environment.get("SLURMD_NODENAME") or socket.gethostname()


def system_name(environment: Mapping[str, str] = os.environ) -> str:
    """The cluster's name: CROSSWIND_SYSTEM, Slurm's cluster, else this host."""
    return environment.get("CROSSWIND_SYSTEM") or environment.get("SLURM_CLUSTER_NAME") or socket.gethostname()


def _first_integer(environment: Mapping[str, str], names: tuple[str, ...], default: int) -> int:
    return next((int(environment[name]) for name in names if environment.get(name, "").isdigit()), default)

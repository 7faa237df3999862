"""The rank and the run of this process, from launchers' environment variables."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass

RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
WORLD_VARIABLES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
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
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Place":
        """Return the place given by torchrun, mpirun or srun; rank 0 of 1 without a launcher."""
        return cls(
            rank=_first_integer(environment, RANK_VARIABLES, 0),
            world_size=_first_integer(environment, WORLD_VARIABLES, 1),
            node=node_name(environment),
            job_id=job_id(environment),
        )


def job_id(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the id of this process's job, as in the scheduler's accounts; None outside of any.

    Source: IBM Spectrum LSF 10.1, environment variables, LSB_JOBINDEX; Flux RFC 19, F58: an f where there is no ƒ.
    """
    name = next((name for name in JOB_VARIABLES if environment.get(name)), None)
    text, index = environment.get(name or "", ""), environment.get(LSF_INDEX, "")
    if name == "LSB_JOBID" and index.isascii() and index.isdigit() and index != "0":
        return f"{text}[{index}]"
    return f"ƒ{text[1:]}" if name == "FLUX_JOB_ID" and text.startswith("f") else text or None


def node_name(environment: Mapping[str, str] = os.environ) -> str:
    """Return this node's name; SLURMD_NODENAME distinguishes several slurmd on one host."""
    return environment.get("CROSSWIND_NODE") or environment.get("SLURMD_NODENAME") or socket.gethostname()


def system_name(environment: Mapping[str, str] = os.environ) -> str:
    """Return the cluster's name: CROSSWIND_SYSTEM, Slurm's cluster, else this host."""
    return environment.get("CROSSWIND_SYSTEM") or environment.get("SLURM_CLUSTER_NAME") or socket.gethostname()


def _first_integer(environment: Mapping[str, str], names: tuple[str, ...], default: int) -> int:
    return next((int(environment[name]) for name in names if environment.get(name, "").isdigit()), default)

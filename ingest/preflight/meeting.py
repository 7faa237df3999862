"""Rendezvous of a launcher's ranks."""

import os
import socket
import zlib
from collections.abc import Mapping
from importlib.util import find_spec

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.hostlist import expand
from crosswind.ingest.preflight.mpi_peers import MpiPeers
from crosswind.ingest.preflight.peers import Alone, Peers
from crosswind.ingest.preflight.torch_peers import TorchPeers
from crosswind.ingest.probe.place import Place

MPI_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
NO_STEP = 0xFFFFFFF0  # Slurm's ids of batch scripts and other special steps begin here. Source: slurm.h
LOWEST_PORT, PORTS = 20_000, 10_000
WITHOUT = "this node is measured alone: {why}"


def meet(seconds: float, environment: Mapping[str, str] = os.environ, *, silence_seconds: float = 60.0) -> Peers:
    """Return all ranks of this allocation: by PyTorch if torchrun or srun started them, by mpi4py if mpirun did.

    If neither is installed, or there is no address to meet at, this rank is alone and its `note` says why. Raises:
    UnavailableError naming the ranks that have not come after so many seconds. Later a message may take as long as
    `silence_seconds` (by PyTorch; MPI waits for ever).
    """
    place = Place.from_environment(environment)
    if _is_batch_script(environment):
        is_one = place.world_size == 1 and environment.get("SLURM_JOB_NUM_NODES", "1") == "1"
        why = "this is no job step; srun --ntasks-per-node=1 crosswind check measures all nodes"
        return Alone(place, "" if is_one else WITHOUT.format(why=why))
    if place.world_size == 1:
        return Alone(place)
    has_torch, has_mpi = (find_spec(name) is not None for name in ("torch", "mpi4py"))
    where = _where(environment)
    if has_torch and where:
        return TorchPeers(place, {**environment, **where}, seconds, silence_seconds=silence_seconds)
    if has_mpi and any(name in environment for name in (*MPI_VARIABLES, "SLURM_STEP_ID")):
        return MpiPeers(place, seconds)
    why = "nothing says where to meet: set MASTER_ADDR and MASTER_PORT" if has_torch else "needs torch or mpi4py"
    return Alone(place, WITHOUT.format(why=f"to measure {place.world_size} ranks together {why}"))


def _is_batch_script(environment: Mapping[str, str]) -> bool:
    """Return whether this is a batch script: Slurm gives it the number of tasks, but it is none of them."""
    others = ("MASTER_ADDR", *MPI_VARIABLES)
    if "SLURM_JOB_ID" not in environment or any(name in environment for name in others):
        return False
    step = environment.get("SLURM_STEP_ID", "")
    return not step.isdigit() or int(step) >= NO_STEP


def _where(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return PyTorch's variables for a rendezvous: torchrun's; for a Slurm step, at its first node; else none.

    Under mpirun Slurm's variables are those of its daemons, not of the ranks.
    """
    if environment.get("MASTER_ADDR") and environment.get("MASTER_PORT"):
        return {name: environment[name] for name in ("MASTER_ADDR", "MASTER_PORT")}
    step = environment.get("SLURM_STEP_ID")
    if step is None or MPI_VARIABLES[0] in environment:
        return {}
    try:
        nodes = expand(environment.get("SLURM_STEP_NODELIST", ""))
    except MalformedError:
        return {}
    if not nodes:
        return {}
    port = LOWEST_PORT + zlib.crc32(f"{environment.get('SLURM_JOB_ID')}.{step}".encode()) % PORTS
    return {"MASTER_ADDR": _address(nodes[0], environment), "MASTER_PORT": str(port)}


def _address(node: str, environment: Mapping[str, str]) -> str:
    """Return the node's name if it is a host's, else the address of the node that launched the step, a job's first."""
    try:
        socket.getaddrinfo(node, None)
    except (OSError, UnicodeError):
        return environment.get("SLURM_LAUNCH_NODE_IPADDR") or node
    return node

"""Connections to Dask clusters: one that runs already, or one made for a training, here or by Slurm."""

import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from dask.utils import parse_bytes
from distributed import Client, LocalCluster, WorkerPlugin

from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.models.training.cluster.versions import PACKAGE, Versions

LOCAL, SLURM = "local", "slurm"
ADDRESS = re.compile(r"(tcp|tls)://[^\s/@]+:\d{1,5}")
ANSWER_SECONDS = 10
WORKER_SECONDS = 600  # for the first job of Slurm to begin
SLURM_SECONDS = 60  # for its controller to answer
EXPECTED = f"expected {LOCAL}, {SLURM}, or the address of a scheduler, such as tcp://node1:8786"


@dataclass(frozen=True)
class ClusterOptions:
    """The size of a cluster that is made for a training; `None` leaves the choice to Dask's or Slurm's own settings."""

    workers: int = max(1, (os.cpu_count() or 2) - 1)
    memory: str = "2GiB"  # of a worker
    partition: str | None = None
    account: str | None = None
    walltime: str = "01:00:00"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """CROSSWIND_CLUSTER_WORKERS, CROSSWIND_CLUSTER_MEMORY, CROSSWIND_SLURM_PARTITION, CROSSWIND_SLURM_ACCOUNT,
        CROSSWIND_SLURM_WALLTIME.

        Raises: InvalidInputError naming the variable.
        """
        workers = environment.get("CROSSWIND_CLUSTER_WORKERS") or str(cls.workers)
        if not (workers.isascii() and workers.isdigit() and 0 < int(workers) <= 10_000):
            raise InvalidInputError(f"CROSSWIND_CLUSTER_WORKERS is {workers!r:.40}, expected a whole number from 1")
        memory = environment.get("CROSSWIND_CLUSTER_MEMORY") or cls.memory
        if not re.fullmatch(r"\d+(\.\d+)? ?[kMGT]?i?B", memory) or parse_bytes(memory) < 2**28:
            raise InvalidInputError(
                f"CROSSWIND_CLUSTER_MEMORY is {memory!r:.40}, expected 256MiB or more, such as 2GiB"
            )
        walltime = environment.get("CROSSWIND_SLURM_WALLTIME") or cls.walltime
        if not re.fullmatch(r"(\d+-)?\d+:\d\d(:\d\d)?", walltime):
            raise InvalidInputError(f"CROSSWIND_SLURM_WALLTIME is {walltime!r:.40}, expected HH:MM:SS")
        partition, account = (environment.get(f"CROSSWIND_SLURM_{name}") or None for name in ("PARTITION", "ACCOUNT"))
        return cls(int(workers), memory, partition, account, walltime)


class Quiet(WorkerPlugin):  # type: ignore[misc]
    """Keeps what XGBoost prints in a worker of this machine off the terminal; what goes wrong comes back by itself."""

    def setup(self, worker: Any) -> None:  # noqa: ARG002
        """Called in each worker, also in one that takes the place of another."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


@contextmanager
def connected(where: str, options: ClusterOptions) -> Iterator[Client]:
    """Yield a client of the cluster; one that was made for it ends with it.

    Raises: InvalidInputError for no such place, UnavailableError where nothing answers or no worker begins,
        ConflictError where it has another Python or another Crosswind.
    """
    check_place(where)
    if where in (LOCAL, SLURM):
        with closing(_made(where, options)) as cluster, Client(cluster) as client:
            if where == LOCAL:
                client.register_plugin(Quiet())
            yield _checked(client, WORKER_SECONDS)
    else:
        with _answering(where) as client:
            yield _checked(client, ANSWER_SECONDS)


def check_place(where: str) -> None:
    """Refuse what names no cluster. Raises: InvalidInputError."""
    if where not in (LOCAL, SLURM) and not ADDRESS.fullmatch(where):
        raise InvalidInputError(f"--cluster {where!r:.100}: {EXPECTED}")


def _answering(address: str) -> Client:
    try:
        return Client(address, timeout=ANSWER_SECONDS)
    except (OSError, ValueError) as error:
        raise UnavailableError(f"no Dask scheduler answers at {address}: {error!s:.200}") from error


def _made(where: str, options: ClusterOptions) -> Any:
    if where == SLURM:
        return _of_jobs(options)
    return LocalCluster(
        n_workers=options.workers,
        threads_per_worker=1,
        memory_limit=options.memory,
        dashboard_address="127.0.0.1:0",
        security=True,  # else other users of this machine could have their work done in our name
        silence_logs=logging.ERROR,
    )


def _of_jobs(options: ClusterOptions) -> Any:
    try:
        from dask_jobqueue import SLURMCluster  # noqa: PLC0415 - for Slurm alone
    except ImportError as error:
        raise UnavailableError("--cluster slurm needs dask-jobqueue: pip install 'crosswind[dask]'") from error
    if shutil.which("sbatch") is None:
        raise UnavailableError("--cluster slurm: there is no sbatch here, expected Slurm's commands in PATH")
    chosen = {"queue": options.partition, "account": options.account}
    cluster = SLURMCluster(
        **{name: value for name, value in chosen.items() if value},
        cores=1,
        processes=1,
        memory=options.memory,
        walltime=options.walltime,
        python=sys.executable,
        scheduler_options={"dashboard_address": "127.0.0.1:0"},
        security=True,  # else all who reach this node could have their work done in our name
        shared_temp_directory=str(Path.cwd()),
    )
    try:
        _check_job(cluster.job_script())
    except UnavailableError:
        cluster.close()
        raise
    cluster.scale(jobs=options.workers)
    return cluster


def _check_job(script: str) -> None:
    """Ask Slurm whether such a job may begin, as Dask waits for jobs that were refused."""
    words = ["sbatch", "--test-only"]
    asked = subprocess.run(words, input=script, capture_output=True, text=True, check=False, timeout=SLURM_SECONDS)
    if asked.returncode:
        raise UnavailableError(f"Slurm refuses a worker: {asked.stderr.strip():.300}")


def _checked(client: Client, seconds: float) -> Client:
    try:
        client.wait_for_workers(1, timeout=seconds)
    except TimeoutError as error:
        raise UnavailableError(f"no worker of the cluster began within {seconds:g} s: expected one at least") from error
    versions, here = client.get_versions(packages=[PACKAGE]), Versions.here()
    for name, place in {"scheduler": versions["scheduler"], **versions["workers"]}.items():
        here.check(name, Versions.reported(place), is_scheduler=name == "scheduler")
    return client

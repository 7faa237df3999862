"""Tokens for the jobs of this node, over a Unix socket: whoever connects gets that of the job that confines it.

A job needs no secret of its own for that, and no prolog has to call the scheduler: the kernel says which process
connects, and its control group, which no user can change, names the job.
"""

import json
import logging
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from crosswind.data.schema.errors import ProjectError, UnavailableError
from crosswind.ingest.occupancy.confinement import MAX_BYTES, confinement_of
from crosswind.ingest.ship.client import Client

LOG = logging.getLogger("crosswind.agent")
PATH = "/v1/tokens:job"
KEPT_SECONDS = 3600.0  # for which a job's processes get the same token; it holds for a day
AGAIN_SECONDS = 5.0  # after a refusal of the server
PATIENCE_SECONDS = 1.0
LOOK_SECONDS = 0.5  # between looks at whether to stop
KEPT_MAX = 1000
CREATED = 201

Issue = Callable[[str], str]


class JobTokens:
    """Asks a server for the tokens of jobs with the agent's own token; of each job once an hour."""

    def __init__(self, url: str, token: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._token = token
        self._clock = clock
        self._kept: dict[str, tuple[float, str | UnavailableError]] = {}

    def token_of(self, job_id: str) -> str:
        """Return the job's token. Raises: UnavailableError."""
        until, kept = self._kept.get(job_id, (0.0, ""))
        if not kept or self._clock() >= until:
            kept = self._asked(job_id)
            self._keep(job_id, kept)
        if isinstance(kept, UnavailableError):
            raise kept
        return kept

    def _asked(self, job_id: str) -> str | UnavailableError:
        body = json.dumps({"job_id": job_id}).encode()
        try:
            with closing(Client(self._url, self._token)) as client:
                answer = client.post(PATH, body, {"Content-Type": "application/json"})
        except ProjectError as error:
            return UnavailableError(str(error))
        secret = answer.said.get("secret")
        if answer.status == CREATED and isinstance(secret, str):
            return secret
        return UnavailableError(f"{self._url}: {answer.said.get('detail') or f'status {answer.status}'}")

    def _keep(self, job_id: str, kept: str | UnavailableError) -> None:
        seconds = KEPT_SECONDS if isinstance(kept, str) else AGAIN_SECONDS
        self._kept.pop(job_id, None)
        self._kept[job_id] = self._clock() + seconds, kept
        while len(self._kept) > KEPT_MAX:
            del self._kept[next(iter(self._kept))]


@contextmanager
def serving_tokens(path: Path, token_of: Issue, proc: Path = Path("/proc")) -> Iterator[None]:
    """Answer at this Unix socket within the context; it is open to every user of the node.

    Raises: UnavailableError when it cannot be bound.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            if path.is_socket():  # an agent that was killed left it: of two agents the spool lets one start
                path.unlink()
            listener.bind(str(path))
            path.chmod(0o666)
            listener.listen(64)
        except OSError as error:
            raise UnavailableError(f"job_tokens.listen {path}: {error.strerror or error}") from error
        listener.settimeout(LOOK_SECONDS)
        stop = threading.Event()
        thread = threading.Thread(target=_serve, args=(listener, token_of, proc, stop), name="tokens", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(2 * LOOK_SECONDS)
            path.unlink(missing_ok=True)


def _serve(listener: socket.socket, token_of: Issue, proc: Path, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        except OSError:  # no descriptor is free
            stop.wait(LOOK_SECONDS)
            continue
        with connection, suppress(OSError):  # whoever asked may have left
            connection.settimeout(PATIENCE_SECONDS)
            connection.sendall(json.dumps(_answer(connection, token_of, proc)).encode() + b"\n")


def _answer(connection: socket.socket, token_of: Issue, proc: Path) -> dict[str, str]:
    job_id = job_of_peer(connection, proc)
    if job_id is None:
        return {"problem": "your process is confined to no job of Slurm's"}
    try:
        return {"token": token_of(job_id)}
    except UnavailableError as error:
        LOG.warning("no token for job %s: %s", job_id, error)
        return {"problem": str(error)}


def job_of_peer(connection: socket.socket, proc: Path = Path("/proc")) -> str | None:
    """Return the job that confines the process at the other end; None if none does, or it is not known.

    The process may have ended, and its number may be another one's by now: of another user it is refused, and an open
    folder of /proc remains that of one process.
    """
    pid, uid, _ = struct.unpack("=iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    if pid <= 0:  # of another namespace
        return None
    try:
        folder = os.open(proc / str(pid), os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        if os.fstat(folder).st_uid != uid:
            return None
        with os.fdopen(os.open("cgroup", os.O_RDONLY, dir_fd=folder), "rb") as file:
            confinement = confinement_of(file.read(MAX_BYTES))
    except OSError:
        return None
    finally:
        os.close(folder)
    return None if confinement is None else confinement.job_id
